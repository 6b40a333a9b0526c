package preflight

import (
	"context"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
)

// patienceEvery is how long Patiently waits between two looks. A look makes a node's
// iperf3 send to itself, which takes about as long.
const patienceEvery = time.Second

// Generator is a need that comes to be met by itself: an iperf3 that could not send to
// itself may do so when its server is up, when the trial that kept it is over, or when
// the node has less to do.
const Generator = "generator"

// Patiently looks until every need that comes by itself is met, for as long as patience
// lasts, and returns what it saw last. What else is unmet is not waited for. With a
// patience of 0 it looks once.
func Patiently(ctx context.Context, patience time.Duration, look func(context.Context) (Report, error)) (Report,
	error) {
	for until := time.Now().Add(patience); ; {
		report, err := look(ctx)
		if err != nil || !time.Now().Add(patienceEvery).Before(until) || !slices.ContainsFunc(report.Items, comes) {
			return report, err
		}
		if err := pause.For(ctx, patienceEvery); err != nil {
			return report, err
		}
	}
}

// comes reports whether a need is not met yet, and may be without anybody's help.
func comes(i Item) bool {
	return i.Need == Generator && (i.State == Unmet || i.State == Unknown)
}
