package influx

// routing are the measurements of what routing daemons do.
func routing() []Measurement {
	return []Measurement{routeChange(), routingCount(), routingEvent(), probe()}
}

func routeChange() Measurement {
	return Measurement{
		Name: "fm_route", Kind: "route",
		Meaning: "A change of the kernel's route to one destination, or a route that was there as the trial was armed.",
		Tags:    []Tag{tag("destination", "the route's prefix")},
		Fields: []Field{
			text("action", "present, set or delete"),
			integer("at_boot_ns", "ns", "when it happened, boot clock"),
			integer("hops", "hops", "to the destination along the best next hop"),
			float("metric", "", "the protocol's own, less is better"),
			{Name: "route_cause", Type: Text, Meaning: "the protocol's word for it (`cause` in the record: that name is a tag elsewhere)", from: "cause"},
		},
		LeftOut: []LeftOut{{"next_hops", "a list; whole in the archive and the report"}},
	}
}

func routingCount() Measurement {
	const maps = "by type of message; whole in the archive and the report"
	return Measurement{
		Name: "fm_routing", Kind: "routing",
		Meaning: "What the routing daemon has done since it began.",
		Tags:    []Tag{tag("protocol", "the routing protocol")},
		Fields: []Field{
			integer("packets_sent", "packets", "routing packets sent"),
			integer("bytes_sent", "bytes", "bytes of IP in them"),
			integer("packets_received", "packets", "routing packets received"),
			integer("bytes_received", "bytes", "bytes of IP in them"),
			integer("routes_installed", "routes", "in the kernel"),
			integer("held_packets", "packets", "data packets that wait for a route"),
		},
		LeftOut: []LeftOut{{"messages_sent", maps}, {"message_bytes_sent", maps}, {"neighbors", "a list; whole in the archive and the report"}},
	}
}

func routingEvent() Measurement {
	return Measurement{
		Name: "fm_routing_event", Kind: "routing_event",
		Meaning: "Something that the routing daemon found worth telling.",
		Tags:    []Tag{tag("report", "discovery_us, discovery_failed, neighbor_lost …")},
		Fields: []Field{
			integer("at_boot_ns", "ns", "when it happened, boot clock"),
			text("addr", "the node that it is about"),
			float("value", "", "in the unit that the name ends in"),
			text("note", "more in words"),
		},
	}
}

func probe() Measurement {
	return Measurement{
		Name: "fm_probe", Kind: "probe",
		Meaning: "A small packet from the measured flow's sender to its receiver that came back.",
		Tags:    []Tag{tag("peer_node", "the receiver")},
		Fields: []Field{
			integer("probe_seq", "", "from 1; numbers that are missing did not come back"),
			integer("sent_boot_ns", "ns", "when it was sent, boot clock"),
			float("probe_rtt_us", "µs", "there and back"),
		},
	}
}
