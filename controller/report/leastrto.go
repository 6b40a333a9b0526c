package report

import (
	"fmt"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// leastRTOs checks whether senders of different variants had different least
// RTOs, as they read them back, where the plan does not vary them.
func leastRTOs(d *data) (*threat, string) {
	variants := map[string]map[string]bool{} // least RTO → variants that had it
	asked := map[int]bool{}
	for _, a := range d.results() {
		sender := a.node[a.Trial.Sender]
		us := sender.Sysctls[tcpcc.RTOMinKey]
		if sender.TCP != nil && sender.TCP.RTOMinUs != nil {
			us = fmt.Sprint(*sender.TCP.RTOMinUs)
		}
		if us == "" {
			continue
		}
		name := a.Trial.TCP.Variant
		if a.Trial.TCP.FixedRTO {
			name += " with a fixed RTO"
		}
		if variants[us] == nil {
			variants[us] = map[string]bool{}
		}
		variants[us][name] = true
		if least := a.Trial.TCP.RTOMinMs; least != nil {
			asked[*least] = true
		}
	}
	switch {
	case len(variants) == 0 || len(asked) > 1:
		return nil, ""
	case len(variants) == 1:
		return nil, "Every sender had the same least RTO."
	}
	var parts []string
	for _, us := range sortedKeys(variants) {
		parts = append(parts, fmt.Sprintf("%s µs for %s", us, strings.Join(sortedKeys(variants[us]), ", ")))
	}
	return &threat{"Least RTOs were not the same", "As read back from the senders' kernels: " + strings.Join(parts,
		"; ") +
		". A difference between these is the least RTO's too. With tcp.rto_min_ms in the campaign they have one."}, ""
}
