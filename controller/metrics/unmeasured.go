package metrics

import (
	"fmt"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Unmeasured says why the attempt has no amount that its measured flows
// transferred; empty where it has one.
func (at Attempt) Unmeasured() string {
	var why []string
	flows := 0
	for _, f := range at.trial.Traffic {
		if f.Background || f.Kind != "iperf3_tcp" {
			continue
		}
		flows++
		if reason := at.unmeasured(f); reason != "" {
			why = append(why, fmt.Sprintf("flow %s: %s", f.Name, reason))
		}
	}
	if flows == 0 {
		return "it measures no flow of TCP; of UDP the receiver's kernel counts nothing"
	}
	return strings.Join(why, "; ")
}

func (at Attempt) unmeasured(f wire.Flow) string {
	w := verdict.WindowOf(f.To, at.records)
	if w == nil {
		return "no window opened on " + f.To
	}
	if !at.reaches(f.To, w.CloseBootNs) {
		return fmt.Sprintf("the records of %s end before the window's close", f.To)
	}
	_, known := at.sockets(f.To, f.Name, *w)
	_, sampled := at.edgesKnown(f.To, *w)
	switch {
	case known && f.WindowS(float64(w.CloseBootNs-w.OpenBootNs)/1e9) <= 0:
		return "it has no time within the window"
	case known:
		return ""
	case !sampled:
		return f.To + " did not sample its sockets in time at both edges of the window"
	}
	return fmt.Sprintf("of a socket of %s nobody knows what it had at an edge of the window", f.To)
}

// Unjudged lists what nodes at the ends of the attempt's flows did not record
// though the rules of acceptance judge by it: agents of older versions record
// less, and are not judged by what they cannot know.
func (at Attempt) Unjudged() []string {
	edges, inForce := map[string]bool{}, map[string]bool{}
	unexplained := map[string]bool{}
	for _, r := range at.records {
		switch b := r.Body.(type) {
		case *wire.Edge:
			edges[r.Node] = edges[r.Node] || b.Edge == "open" || b.Edge == "close"
		case *wire.Provenance:
			inForce[r.Node] = inForce[r.Node] || b.TCP != nil
		case *wire.Iperf3:
			unexplained[r.Node] = unexplained[r.Node] || b.Ended == ""
		}
	}
	var out []string
	add := func(what string, lacks func(node string) bool) {
		if slices.ContainsFunc(at.trial.Nodes(), lacks) {
			out = append(out, what)
		}
	}
	ends := func(node string) bool { return at.trial.EndsTCP(node) && verdict.WindowOf(node, at.records) != nil }
	add("when it sampled its sockets at the window's edges", func(n string) bool { return ends(n) && !edges[n] })
	add("how iperf3 ended", func(n string) bool { return unexplained[n] })
	add("which TCP was in force", func(n string) bool { return ends(n) && !inForce[n] })
	return out
}
