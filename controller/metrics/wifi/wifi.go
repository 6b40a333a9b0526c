// Package wifi is what Android said about the Wi-Fi that a node's phone was in: about the frames
// of an access point outside the plan. It is never a link's between two nodes.
package wifi

import (
	"fieldmesh.dev/fieldmesh/controller/metrics/series"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Meaning says what such a signal is, up to the name of its node.
const Meaning = "signal of the access point's frames, as Android told the app that runs the node: the mean of " +
	"the readings in the window, of which there is one when Android has renewed the value, about every 3 s and only " +
	"while the screen is on; at the "

// Signals are a node's readings in the window, each at the moment at which the app found it.
func Signals(node string, records []wire.Record) (out series.Series) {
	w := verdict.WindowOf(node, records)
	if w == nil {
		return out
	}
	for _, r := range records {
		b, is := r.Body.(*wire.WiFi)
		if is && r.Node == node && b.SignalDbm != nil && r.TBootNs >= w.OpenBootNs && r.TBootNs < w.CloseBootNs {
			out.Add(float64(r.TBootNs-w.OpenBootNs)/1e9, *b.SignalDbm)
		}
	}
	return out
}

// MeanDbm is the mean of a node's readings in the window; absent: there was none.
func MeanDbm(node string, records []wire.Record) *float64 {
	all := Signals(node, records).V
	if len(all) == 0 {
		return nil
	}
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return new(sum / float64(len(all)))
}

// Any reports whether there is a reading at all.
func Any(records []wire.Record) bool {
	for _, r := range records {
		if _, is := r.Body.(*wire.WiFi); is {
			return true
		}
	}
	return false
}
