package metrics

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/packets"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Names of the papers' metrics that the report sets beside their figures.
const (
	PacketsSent       = "packets_sent"
	PacketLossPercent = "packet_loss_percent"
	TrueLossPercent   = "truth_packet_loss_percent"
	OneWayMeanMs      = "one_way_delay_mean_ms"
	GoodputRatio      = "goodput_ratio"
	ConnectTimeMs     = "connect_time_ms"
	ConnectCensoredMs = "connect_censored_ms"
	LinkSent          = "link_packets_sent"
	LinkLossPercent   = "link_packet_loss_percent"
	DeliveryFraction  = "delivery_fraction"
	RoutingPacketsPS  = "routing_packets_per_s"
	RoutingBytesPS    = "routing_bytes_per_s"
	MACRoutingPS      = "mac_frames_routing_per_s"
	MovingCwndName    = "cwnd_5s_mean_segments"
	ReferenceRatio    = "reference_ratio"
	ReferenceGap      = "reference_gap_kbit_s"
	HopsMean          = "hops_mean"
	PerConnection     = "throughput_per_connection_kbit_s"
	RTTMeanMs         = "rtt_mean_ms"

	CapturesUnreadable = "captures_unreadable"
)

// PaperMetric is one of the papers' metrics as it is computed here.
type PaperMetric struct {
	Name, Unit, Text string
	Source           string   // what it is computed from
	Papers           []string // that report it
}

const (
	atBothEnds = "captures at both ends of the flow, on the interface and above the routing daemon, and iperf3's own " +
		"count of datagrams"
	bothEnds = "captures at both ends of the flow, on the interface and above the routing daemon, clocks compared"
)

// PaperMetrics lists the papers' metrics, each as it is defined here.
func PaperMetrics() []PaperMetric {
	row := func(d definition, source string, papers ...string) PaperMetric {
		return PaperMetric{d.name, d.unit, d.text, source, papers}
	}
	return []PaperMetric{
		row(throughput, "tcp_info of the receiver's sockets at both edges of the window", "P1", "P2", "P3", "P4", "P5"),
		row(definition{PerConnection, "kbit/s", "sum of the measured flows' throughput_bps, each over its own " +
			"time, ÷ the number of their connections ÷ 1000 (P2: data delivered per second \"to individual " +
			"destinations\")"}, "throughput_bps", "P2"),
		row(packetLoss, atBothEnds, "P2"),
		row(definition{OneWayMeanMs, "ms", "mean " + oneWayText}, bothEnds, "P2", "P5"),
		row(goodput, atBothEnds, "P3"),
		row(connectMs, "the capture at the flow's client, and the record of its start", "P3"),
		row(routingPackets, "captures of all nodes of the trial", "P3"),
		row(routingBytes, "captures of all nodes of the trial", "P3"),
		row(macFrames("routing"), "the emulated radio's count", "P3"),
		row(cbrLatency, "both ends' records of each datagram, clocks compared", "P3"),
		row(cbrDelivery, "both ends' records of each datagram", "P3"),
		row(definition{MovingCwndName, "segments", "mean of the congestion windows of the sender's connected data " +
			"sockets over the last 5 s, over time (P3)"}, "tcp_info of the sender's sockets, sample_hz times a second",
			"P3"),
		row(definition{ReferenceRatio, "1", "throughput_bps of a variant ÷ that of the reference TCP in the trial of " +
			"the same repetition and otherwise the same factors (P4)"}, "two trials", "P4"),
		row(definition{ReferenceGap, "kbit/s", "throughput_bps of the reference TCP − that of a variant in the trial " +
			"of the same repetition and otherwise the same factors (P4)"}, "two trials", "P4"),
		row(deliveryFraction, atBothEnds, "P3", "P5"),
	}
}

// macFrames defines the MAC frames of one class of traffic.
func macFrames(class string) definition {
	return definition{"mac_frames_" + class + "_per_s", "frames/s",
		"MAC frames on the emulated air in the window, RTS, CTS and ACKs too, that were there for " + class +
			", sum over the nodes (P3's routing overhead at MAC has the RTS, CTS and ACKs of data frames too); " +
			"rehearsal only"}
}

// lostByField counts the data packets of a flow that the emulated field says it
// lost. It is not told where the field tells nothing or did not tell all, or
// where it cannot tell them from others.
func (at Attempt) lostByField(f wire.Flow) (lost uint64, told bool) {
	is := at.flowInField(f)
	w := verdict.WindowOf(f.From, at.records)
	if is == nil || w == nil {
		return 0, false
	}
	least := uint64(1) // a connection opens, acknowledges and closes with packets that have no payload
	if f.Kind == "iperf3_udp" {
		least = packets.DatagramBytesMin // iperf3 connects with fewer
	}
	for _, r := range at.records {
		switch b := r.Body.(type) {
		case *wire.MediumCount:
			if b.LossesUntold > 0 {
				return 0, false
			}
			told = true
		case *wire.Loss:
			of, known := is(b.Flow)
			if !of || !inside(*w, r.TBootNs) {
				continue
			}
			if b.PayloadBytes == nil {
				return 0, false
			}
			if *b.PayloadBytes < least {
				continue
			}
			if !known {
				return 0, false
			}
			lost++
		}
	}
	return lost, told
}

// flowInField tells the losses of a flow's packets by what the field calls them: "src:port>dst:port/proto".
// Archives made before the field looked into DSR have "src>dst/48" for whatever it carried from one node to
// another: known is false where that may be another flow's.
func (at Attempt) flowInField(f wire.Flow) func(string) (of, known bool) {
	from, to := at.address(f.From), at.address(f.To)
	if !from.IsValid() || !to.IsValid() {
		return nil
	}
	pair := fmt.Sprintf("%s>%s/48", from, to)
	alone := !slices.ContainsFunc(at.trial.Traffic, func(o wire.Flow) bool {
		return o.Name != f.Name && (o.From == f.From && o.To == f.To || o.From == f.To && o.To == f.From)
	})
	protocol := strings.TrimPrefix(f.Kind, "iperf3_")
	first := f.ClientPort + (at.key.Attempt-1)*max(f.Streams, 1)
	return func(flow string) (of, known bool) {
		if flow == pair {
			return true, alone
		}
		rest, ok := strings.CutSuffix(flow, "/"+protocol)
		src, dst, both := strings.Cut(rest, ">")
		a, errA := netip.ParseAddrPort(src)
		b, errB := netip.ParseAddrPort(dst)
		if !ok || !both || errA != nil || errB != nil || a.Addr() != from || b.Addr() != to {
			return false, true
		}
		server, client := int(b.Port()), int(a.Port())
		if f.Reverse {
			server, client = client, server
		}
		return server == f.Port && (protocol == "udp" || f.ClientPort == 0 || client >= first && client < first+
			max(f.Streams, 1)), true
	}
}

// address is a node's in the mesh; not valid when the plan has no such node.
func (at Attempt) address(node string) netip.Addr {
	for _, n := range at.plan.Nodes {
		if n.Name == node {
			prefix, err := netip.ParsePrefix(n.MeshPrefix)
			if err != nil {
				return netip.Addr{}
			}
			return prefix.Addr()
		}
	}
	return netip.Addr{}
}

// Captured computes the rows of the attempt's captures; those that cannot be
// read are left out, and counted in a row.
func (at Attempt) Captured(a *archive.Archive) []Row {
	rows, _ := at.captured(a)
	return rows
}
