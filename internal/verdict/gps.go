package verdict

import "fieldmesh.dev/fieldmesh/protocols/wire"

// Receiver is what a node's GPS was like over the window. Absent is not measured.
type Receiver struct {
	Node        string
	FixModeMin  *float64 // lowest mode of any tick in the window
	FixAgeMsMax *float64 // oldest the newest fix was at any moment of the window
}

// receiverOf measures a node's GPS; nil for a node that has had no fix since its
// agent began: it has no receiver, and its place enters no result.
func receiverOf(node string, records []wire.Record) *Receiver {
	w := WindowOf(node, records)
	if node == "" || w == nil || !hasReceiver(node, records) {
		return nil
	}
	return &Receiver{Node: node, FixModeMin: fixModeMin(node, *w, records),
		FixAgeMsMax: fixAgeMsMax(node, *w, Fixes(node, records), records)}
}

func hasReceiver(node string, records []wire.Record) bool {
	for _, r := range records {
		if g, ok := r.Body.(*wire.GPS); ok && r.Node == node && g.FixAgeMs != nil {
			return true
		}
	}
	return false
}

// gpsChecks applies the rules about fixes to the receivers whose places enter the
// result: the car's, without which its speed is not known, and that of the
// roadside node, from which distances are taken, where it has one.
func gpsChecks(t wire.Trial, m Covariates, scope Scope) []wire.Check {
	var judged []Receiver
	if t.Car != "" && (scope.Final || t.Car == t.Initiator) {
		judged = append(judged, Receiver{Node: t.Car, FixModeMin: m.FixModeMin, FixAgeMsMax: m.FixAgeMsMax})
	}
	if scope.Final && t.Car != "" && m.Roadside != nil {
		judged = append(judged, *m.Roadside)
	}
	var out []wire.Check
	add := func(node string, c wire.Check) {
		c.Node = node
		out = append(out, c)
	}
	for _, r := range judged {
		if least := t.Acceptance.FixModeMin; least != nil {
			add(r.Node, atLeast("fix_mode_min", float64(*least), r.FixModeMin))
		}
		if most := t.Acceptance.FixAgeMsMax; most != nil {
			add(r.Node, atMost("fix_age_ms_max", *most, r.FixAgeMsMax))
		}
	}
	return out
}
