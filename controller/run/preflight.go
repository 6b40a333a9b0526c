package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Unmet is a need of the plan that a node does not meet.
type Unmet struct {
	Node string
	wire.Problem
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
// for satellites. What it waits for is told once each, when it takes a while.
func Preflight(ctx context.Context, plan wire.RunPlan, lane *Lane, patience time.Duration, tell func(Unmet)) error {
	if err := lane.Field.Place(ctx, plan.Trials[0], 1); err != nil {
		return fmt.Errorf("preflight: %w", err)
	}
	began, told := time.Now(), map[string]bool{}
	for {
		unmet, err := preflightOnce(ctx, plan, lane)
		if err != nil {
			return err
		}
		if len(unmet) == 0 {
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
		sleep(ctx, 250*time.Millisecond)
	}
}

// tellAfter spares words about needs that are met at once.
const tellAfter = 2 * time.Second

// mayPass tells whether waiting can help.
func mayPass(unmet []Unmet) bool {
	for _, u := range unmet {
		if !slices.Contains([]string{"gps", "reach", "radio", "host"}, u.Need) {
			return false
		}
	}
	return true
}

func preflightOnce(ctx context.Context, plan wire.RunPlan, lane *Lane) ([]Unmet, error) {
	var unmet []Unmet
	for _, n := range plan.Nodes {
		c := lane.Nodes[n.Name]
		if c == nil {
			return nil, fmt.Errorf("preflight: the plan's node %q is not in the fleet, which has %s: add it with `fieldmesh keys issue %s`", n.Name, strings.Join(names(lane.Nodes), ", "), n.Name)
		}
		problems := nodeNeeds(ctx, plan, n.Name, c)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for _, p := range problems {
			unmet = append(unmet, Unmet{n.Name, p})
		}
	}
	return unmet, nil
}

func names(nodes map[string]*fleet.Client) []string {
	var out []string
	for n := range nodes {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

func nodeNeeds(ctx context.Context, plan wire.RunPlan, name string, c *fleet.Client) []wire.Problem {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	st, err := c.Status(ctx)
	if err != nil {
		return []wire.Problem{unreached(err)}
	}
	if st.Node != name {
		return []wire.Problem{{Need: "reach", Found: "the agent there says it is " + st.Node, Cure: "correct the address in the fleet file"}}
	}
	var out []wire.Problem
	movesOrOpens := false
	transports := map[string]wire.TCP{}
	for _, t := range plan.Trials {
		if !slices.Contains(t.Nodes(), name) {
			continue
		}
		transports[fmt.Sprint(transportNeeds(t.TCP))] = t.TCP
		movesOrOpens = movesOrOpens || (t.Car == name || t.Initiator == name) && t.SpeedMps != nil
	}
	for _, p := range st.Problems {
		if p.Need != "gps" || movesOrOpens {
			out = append(out, p)
		}
	}
	for _, t := range transports {
		out = append(out, transportProblems(t, st)...)
	}
	return append(out, clockNeeds(ctx, plan, c)...)
}

// unreached is a node that did not answer, or not to us.
func unreached(err error) wire.Problem {
	p := wire.Problem{Need: "reach", Found: err.Error(), Cure: "start the agent, check the control link and the address in the fleet file"}
	var e *fleet.NodeError
	if !errors.As(err, &e) {
		return p
	}
	p.Found = fmt.Sprintf("%s at %s: %s", e.Doing, e.Address, e.Err)
	if e.Cure != "" {
		p.Cure = e.Cure
	}
	if e.Stranger {
		p.Need = "key"
	}
	return p
}

// clockNeeds checks how well the node's clock can be aligned, and that its
// wall clock is near ours, against the strictest limit of the plan.
func clockNeeds(ctx context.Context, plan wire.RunPlan, c *fleet.Client) []wire.Problem {
	limitMs := 0.0
	for _, t := range plan.Trials {
		if m := t.Acceptance.ClockErrorMsMax; m != nil && (limitMs == 0 || *m < limitMs) {
			limitMs = *m
		}
	}
	if limitMs == 0 {
		return nil
	}
	est, err := c.ClockOffset(ctx, clockExchanges)
	if err != nil {
		return []wire.Problem{unreached(err)}
	}
	if got := float64(est.UncertaintyNs) / 1e6; got > limitMs {
		return []wire.Problem{{Need: "clock", Found: fmt.Sprintf("its clock can be aligned only within ± %.3g ms, the limit is %g ms", got, limitMs),
			Cure: "use a faster control link, or raise acceptance.clock_error_ms_max"}}
	}
	return wallNeeds(est)
}

// wallLimit is how far a node's wall clock may be from the controller's.
// Alignment does not use wall clocks; file times, GPS dates and people do.
const wallLimit = 60 * time.Second

func wallNeeds(est wire.Clock) []wire.Problem {
	off := time.Duration(est.WallOffsetNs)
	if off.Abs() <= wallLimit {
		return nil
	}
	return []wire.Problem{{Need: "clock", Found: fmt.Sprintf("its wall clock is %s off the controller's, the limit is %s", off.Round(time.Second), wallLimit),
		Cure: "set the clock of the node or of the controller (chrony, or date)"}}
}
