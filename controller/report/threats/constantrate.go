package threats

import (
	"fmt"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// constantRates lists the accepted trials whose flows of kind cbr have no figures, and those whose figures are in part
// the agents' doing and not the network's.
func constantRates(d *evidence.Run) (*Threat, string) {
	var none, unsent, late []string
	sum, longest := 0.0, 0.0
	for _, a := range d.Attempts {
		constant := func(f wire.Flow) bool { return f.Kind == wire.KindCBR }
		if !d.Counts(a) || !slices.ContainsFunc(a.Trial.Traffic, constant) {
			continue
		}
		where := fmt.Sprintf("%d.%d", a.Trial.Number, a.Attempt)
		if metrics.Value(a.Rows, "", metrics.CBRFlows) == nil {
			none = append(none, where)
		}
		if n := metrics.Value(a.Rows, "", metrics.CBRUnsent); n != nil && *n > 0 {
			unsent, sum = append(unsent, fmt.Sprintf("%s: %g", where, *n)), sum+*n
		}
		if ms := metrics.Value(a.Rows, "", metrics.CBRLatencyExcessMs); ms != nil && *ms > 0 {
			late, longest = append(late, fmt.Sprintf("%s: %.3g ms", where, *ms)), max(longest, *ms)
		}
	}
	var text []string
	if len(none) > 0 {
		text = append(text, fmt.Sprintf("%s without figures of the flows of kind cbr, because an end of one did not "+
			"record the whole of it (%s). They are in no mean of these.", words.Count(len(none), "accepted trial"),
			shortList(none)))
	}
	if len(unsent) > 0 {
		text = append(text, fmt.Sprintf("Datagrams of kind cbr that were not sent, because the agent was late at "+
			"their times: %g (%s). They count as lost.", sum, shortList(unsent)))
	}
	if len(late) > 0 {
		text = append(text, fmt.Sprintf("Arrivals of kind cbr were stamped by the agent and not by the kernel: the "+
			"latency may be too long by up to %.3g ms (%s).", longest, shortList(late)))
	}
	if len(text) == 0 {
		return nil, ""
	}
	return &Threat{"Constant bit rates", strings.Join(text, " ")}, ""
}
