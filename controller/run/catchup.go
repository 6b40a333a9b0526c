package run

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// catchUp brings archive and nodes to one standing: what the nodes did while
// no controller was there is waited for, judged and decided, and the nodes
// learn the verdicts they have missed.
func (l *openLane) catchUp(ctx context.Context) error {
	views, err := l.settled(ctx)
	if err != nil {
		return err
	}
	for _, k := range l.undecided(views) {
		t, ok := l.r.trial(k.Trial)
		if !ok {
			continue
		}
		names := takingPart(views, t, k)
		l.r.Log.Info("catching up", "trial", k.Trial, "attempt", k.Attempt)
		show := func(phase, detail string) {
			l.r.show(Progress{Lane: l.Name, Trial: &t, Attempt: k.Attempt, Phase: phase, Detail: detail})
		}
		if underWay(views, k) && len(names) < len(t.Nodes()) {
			l.abort(ctx, names, wire.AbortRequest{TrialKey: k, Reason: "the controller came back and found the trial half armed"})
		}
		if err := l.awaitKept(ctx, t, k, names, show); err != nil {
			return err
		}
		if err := l.finish(ctx, t, k); err != nil {
			return err
		}
	}
	l.tellVerdicts(ctx, views)
	return nil
}

// settled asks for the nodes' views until none is at an attempt that is decided
// already: an order to arm can arrive after it was given up.
func (l *openLane) settled(ctx context.Context) (map[string]wire.CampaignView, error) {
	for {
		views, err := l.views(ctx)
		if err != nil {
			return nil, err
		}
		decided, busy := map[wire.TrialKey]bool{}, false
		for _, v := range l.r.Archive.Decisions() {
			decided[v.TrialKey] = true
		}
		for name, v := range views {
			if v.Current != nil && decided[*v.Current] && v.State != wire.StateKept {
				busy = true
				l.follow(ctx, []string{name}, *v.Current, "the attempt is decided already")
			}
		}
		if !busy {
			return views, nil
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// insist makes a call of a node with the lease in hand, again and again while
// the node is out of reach or is just being started anew.
func (l *openLane) insist(ctx context.Context, c *fleet.Client, call func() error) error {
	for {
		_, err := c.Lease(ctx, l.lease())
		if err == nil {
			err = call()
		}
		if err == nil || !passes(err) {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		l.r.show(Progress{Lane: l.Name, Phase: "waiting", Detail: err.Error()})
		sleep(ctx, 500*time.Millisecond)
	}
}

// passes tells whether a call that failed may succeed a little later.
func passes(err error) bool {
	var refused *wire.Error
	if !errors.As(err, &refused) {
		return true
	}
	switch refused.Code {
	case "no_lease", "host", "stopping": // the agent's halves are started again one by one
		return true
	}
	return false
}

func (r *Runner) trial(number int) (wire.Trial, bool) {
	if number < 1 || number > len(r.Plan.Trials) {
		return wire.Trial{}, false
	}
	return r.Plan.Trials[number-1], true
}

// views asks every node, again and again until all have answered: without
// them the schedule cannot go on.
func (l *openLane) views(ctx context.Context) (map[string]wire.CampaignView, error) {
	out := map[string]wire.CampaignView{}
	for name, c := range l.Nodes {
		for {
			v, err := l.viewOnce(ctx, c)
			if err == nil {
				out[name] = v
				break
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			l.r.show(Progress{Lane: l.Name, Phase: "waiting", Detail: fmt.Sprintf("%s is out of reach: %v", name, err)})
			sleep(ctx, 500*time.Millisecond)
		}
	}
	return out, nil
}

// viewOnce asks a node for its view; a node that has lost or never had the
// plan, for instance after its storage was replaced, is given it again.
func (l *openLane) viewOnce(ctx context.Context, c *fleet.Client) (wire.CampaignView, error) {
	if _, err := c.Lease(ctx, l.lease()); err != nil {
		return wire.CampaignView{}, err
	}
	v, err := c.View(ctx, l.r.Plan.Run, 0, 0)
	var answer *wire.Error
	if errors.As(err, &answer) && answer.Code == "not_found" {
		return c.Load(ctx, l.plan)
	}
	return v, err
}

// undecided lists, in order, the attempts that nodes know and the archive has
// not decided.
func (l *openLane) undecided(views map[string]wire.CampaignView) []wire.TrialKey {
	done := map[wire.TrialKey]bool{}
	for _, v := range l.r.Archive.Decisions() {
		done[v.TrialKey] = true
	}
	var out []wire.TrialKey
	add := func(k wire.TrialKey) {
		if !done[k] {
			done[k] = true
			out = append(out, k)
		}
	}
	for _, v := range views {
		for _, t := range v.Trials {
			for _, a := range t.Attempts {
				add(a.TrialKey)
			}
		}
		if v.Current != nil {
			add(*v.Current)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Trial != out[j].Trial {
			return out[i].Trial < out[j].Trial
		}
		return out[i].Attempt < out[j].Attempt
	})
	return out
}

// takingPart lists the nodes that know of an attempt.
func takingPart(views map[string]wire.CampaignView, t wire.Trial, k wire.TrialKey) []string {
	var out []string
	for _, name := range t.Nodes() {
		v := views[name]
		knows := v.Current != nil && *v.Current == k
		for _, tv := range v.Trials {
			for _, a := range tv.Attempts {
				knows = knows || a.TrialKey == k
			}
		}
		if knows {
			out = append(out, name)
		}
	}
	return out
}

func underWay(views map[string]wire.CampaignView, k wire.TrialKey) bool {
	for _, v := range views {
		if v.Current != nil && *v.Current == k && v.State != wire.StateKept {
			return true
		}
	}
	return false
}

// verdictsAtOnce keeps a call within what a node takes, 1 MiB.
const verdictsAtOnce = 200

// tellVerdicts gives every node the final verdicts that it does not have. One
// that cannot be told now is told the next time.
func (l *openLane) tellVerdicts(ctx context.Context, views map[string]wire.CampaignView) {
	for name, view := range views {
		has := map[wire.TrialKey]wire.Verdict{}
		for _, t := range view.Trials {
			for _, a := range t.Attempts {
				has[a.TrialKey] = a
			}
		}
		var missing []wire.Verdict
		for _, v := range l.r.Archive.Decisions() {
			if had := has[v.TrialKey]; !had.Final || !reflect.DeepEqual(had.Word, v.Word) {
				missing = append(missing, v)
			}
		}
		for some := range slices.Chunk(missing, verdictsAtOnce) {
			if _, err := l.Nodes[name].Verdicts(ctx, l.r.Plan.Run, some); err != nil && ctx.Err() == nil {
				l.r.Log.Warn("tell verdicts", "node", name, "error", err)
			}
		}
	}
}
