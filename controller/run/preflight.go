package run

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Unmet is a need of the plan that a node does not meet, or of which nobody can tell it.
type Unmet struct {
	Node string
	wire.Problem
	Passed bool // the run goes on all the same
}

// UnmetError refuses a plan before anything moves.
type UnmetError struct{ Needs []Unmet }

func (e *UnmetError) Error() string {
	var b strings.Builder
	b.WriteString("the fleet cannot run this plan:")
	for _, u := range e.Needs {
		fmt.Fprintf(&b, "\n  node %s: %s: %s; %s", u.Node, u.Need, u.Found, u.Cure)
	}
	return b.String()
}

// Preflight asks every node that the plan names whether it can do what the
// plan needs, with the field as the first trial wants it. It repeats until
// everything is met or patience is over: a GPS receiver may still be looking
// for satellites, and a busy node's iperf3 be slow. Each need that it waits for
// is passed to tell once, when that takes a while. A damaged journal keeps no run that is resumed from its node: tell
// has it. What it has lost is lost to the trials that are done, too. A roadside node that may stand elsewhere is told,
// too.
func Preflight(ctx context.Context, plan wire.RunPlan, lane *Lane, resumed bool, patience time.Duration,
	tell func(Unmet)) error {
	if err := lane.Field.Place(ctx, plan.Trials[0], 1); err != nil {
		return fmt.Errorf("preflight: %w", err)
	}
	began, told := time.Now(), map[string]bool{}
	for {
		found, err := preflightOnce(ctx, plan, lane)
		if err != nil {
			return err
		}
		passed, unmet := apart(found, resumed)
		if len(unmet) == 0 {
			for _, u := range passed {
				tell(u)
			}
			return nil
		}
		if time.Since(began) > patience || !mayPass(unmet) {
			return &UnmetError{unmet}
		}
		for _, u := range unmet {
			if key := u.Node + " " + u.Need; time.Since(began) > tellAfter && !told[key] {
				told[key] = true
				tell(u)
			}
		}
		_ = pause.For(ctx, 250*time.Millisecond)
	}
}

// apart keeps what no run waits for apart from the needs that must be met: no resumed one does for a damaged journal.
func apart(found []Unmet, resumed bool) (passed, unmet []Unmet) {
	for _, u := range found {
		if u.Passed = u.Passed || resumed && u.Need == wire.NeedJournal; u.Passed {
			passed = append(passed, u)
		} else {
			unmet = append(unmet, u)
		}
	}
	return passed, unmet
}

// tellAfter is how long a need stays unmet before it is reported: one that is met
// at once is not worth a line.
const tellAfter = 2 * time.Second

// mayPass reports whether waiting can help.
func mayPass(unmet []Unmet) bool {
	for _, u := range unmet {
		if !slices.Contains([]string{"gps", "site", "reach", "radio", "host", preflight.Generator}, u.Need) {
			return false
		}
	}
	return true
}

func preflightOnce(ctx context.Context, plan wire.RunPlan, lane *Lane) ([]Unmet, error) {
	asked := map[string]preflight.Node{}
	for _, n := range plan.Nodes {
		c := lane.Nodes[n.Name]
		if c == nil {
			return nil, fmt.Errorf("preflight: the plan's node %q is not in the fleet, which has %s: add it with "+
				"`fieldmesh keys pair %s`", n.Name, strings.Join(names(lane.Nodes), ", "), n.Name)
		}
		asked[n.Name] = c
	}
	items := preflight.Nodes(ctx, plan, 0, asked)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var found []Unmet
	for _, i := range items {
		doubt := i.Need == "site" && i.State == preflight.Unknown
		if i.State == preflight.Unmet || doubt {
			found = append(found, Unmet{i.Node, wire.Problem{Need: i.Need, Found: i.Found, Cure: i.Cure}, doubt})
		}
	}
	return found, nil
}

func names(nodes map[string]*fleet.Client) []string {
	var out []string
	for n := range nodes {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}
