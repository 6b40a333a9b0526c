package threats

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// withoutRoot tells what nodes without root left as it was, though every trial has it set.
func withoutRoot(d *evidence.Run) (*Threat, string) {
	found := map[string]bool{}
	for _, a := range d.Results() {
		for node, p := range a.Node {
			if p.Privileges != wire.NoPrivileges || !a.Trial.EndsTCP(node) {
				continue
			}
			kept := "it is not known whether its kernel keeps what it learns of a connection for the next"
			switch p.Sysctls["net.ipv4.tcp_no_metrics_save"] {
			case "0":
				kept = "its kernel keeps what it learns of a connection for the next"
			case "1":
				kept = "its kernel keeps nothing of a connection for the next"
			}
			found[node+": "+kept] = true
		}
	}
	if len(found) == 0 {
		return nil, ""
	}
	return &Threat{"Nodes without root left TCP as it was", fmt.Sprintf("%s. A trial may begin with what the one "+
		"before it taught the kernel, as the slow-start threshold. A client that found no way may have given up "+
		"connecting within the window, as Linux's does after some two minutes. IPv6 was left as it was, and no "+
		"firewall of ours kept strangers from the flows' ports.",
		strings.Join(slices.Sorted(maps.Keys(found)), "; "))}, ""
}
