package threats

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// leastRTOs checks whether senders of different variants had different least
// RTOs, as they read them back, where the plan does not vary them.
func leastRTOs(d *evidence.Run) (*Threat, string) {
	variants := map[string]map[string]bool{} // least RTO → variants that had it
	routed := map[string]bool{}              // variants of senders with a route that has one of its own
	asked := map[int]bool{}
	silent, trials := 0, 0
	for _, a := range d.Results() {
		name := a.Trial.TCP.Variant
		if a.Trial.TCP.FixedRTO {
			name += " with a fixed RTO"
		}
		trials++
		us, own := leastRTO(a.Node[a.Trial.Sender])
		switch {
		case own:
			routed[name] = true
		case us == "":
			silent++
		case variants[us] == nil:
			variants[us] = map[string]bool{name: true}
		default:
			variants[us][name] = true
		}
		if least := a.Trial.TCP.RTOMinMs; least != nil {
			asked[*least] = true
		}
	}
	var parts []string
	if len(asked) <= 1 || len(routed) > 0 {
		for _, us := range slices.Sorted(maps.Keys(variants)) {
			named := slices.Sorted(maps.Keys(variants[us]))
			parts = append(parts, fmt.Sprintf("%s µs for %s", us, strings.Join(named, ", ")))
		}
	}
	if len(routed) > 0 {
		parts = append(parts, "a route's own, which goes before the kernel's, for "+
			strings.Join(slices.Sorted(maps.Keys(routed)), ", "))
	}
	unknown := ""
	if silent > 0 {
		unknown = fmt.Sprintf(" In %d of %d accepted trials the sender does not tell its least RTO.", silent, trials)
	}
	switch {
	case len(parts) == 0:
		return nil, ""
	case len(parts) == 1 && len(routed) == 0 && silent == 0:
		return nil, "Every sender had the same least RTO."
	case len(parts) == 1 && len(routed) == 0:
		return nil, "Every sender that tells its least RTO had the same." + unknown
	}
	title, text := "Least RTOs were not the same", ". A difference between these is the least RTO's too. "+
		"With tcp.rto_min_ms in the campaign they have one."
	if len(routed) > 0 {
		title, text = "A route has a least RTO of its own", ". A difference between these may be the least RTO's: "+
			"look at the routes in the provenance, and remove rto_min from them."
	}
	return &Threat{title, "As read back from the senders' kernels: " + strings.Join(parts, "; ") + text + unknown}, ""
}

// leastRTO is a sender's least RTO in µs as it read it back, empty where it does
// not tell; own reports that one of its routes has another.
func leastRTO(sender wire.Provenance) (us string, own bool) {
	if tcp := sender.TCP; tcp != nil && tcp.RTOMinUs != nil {
		return fmt.Sprint(*tcp.RTOMinUs), false
	}
	own = slices.ContainsFunc(sender.Routes, func(r string) bool { return strings.Contains(r, tcpcc.RouteRTOMin) })
	if own || sender.TCP != nil && slices.Contains(sender.TCP.Notes, tcpcc.RouteRTOMinNote) {
		return "", true
	}
	return sender.Sysctls[tcpcc.RTOMinKey], false
}
