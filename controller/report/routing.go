package report

import (
	"fmt"
	"html/template"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/topology"
)

type routingView struct {
	Rows     []routingRow
	Pictures []meshPicture
	HopsMost float64
}

// routingRow is one attempt's routing.
type routingRow struct {
	Name, What, Protocol, Outcome  string
	Hops                           template.HTML
	Path, Changes, Route, TCP      string
	Discovery, Packets, Bytes, Why string // Why: what the messages were
}

type meshPicture struct {
	Caption string
	SVG     template.HTML
}

// picturesMost bounds the page: one picture a protocol, of its first trial.
const picturesMost = 8

func viewRouting(d *data) (any, error) {
	var v routingView
	for _, a := range d.attempts {
		for _, p := range pathsOf(a) {
			if p.Whole {
				v.HopsMost = max(v.HopsMost, float64(p.Hops()))
			}
		}
	}
	drawn := map[string]bool{}
	for _, a := range d.attempts {
		if a.mesh == nil {
			continue
		}
		v.Rows = append(v.Rows, routingOf(a, v.HopsMost))
		if !drawn[a.mesh.Protocol] && len(drawn) < picturesMost {
			drawn[a.mesh.Protocol] = true
			title := fmt.Sprintf("trial %d.%d, %s", a.Trial.Number, a.Attempt, a.mesh.Protocol)
			v.Pictures = append(v.Pictures, meshPicture{title, template.HTML(a.mesh.SVG(title, a.mesh.Seconds/2))})
		}
	}
	if len(v.Rows) == 0 {
		return nil, nil
	}
	return v, nil
}

func pathsOf(a attempt) []topology.Path {
	if a.mesh == nil {
		return nil
	}
	return a.mesh.PathsInWindow()
}

func routingOf(a attempt, hopsMost float64) routingRow {
	m, cost := a.mesh, a.mesh.Cost()
	row := routingRow{Name: fmt.Sprintf("%d.%d", a.Trial.Number, a.Attempt), What: what(a), Protocol: m.Protocol, Outcome: outcome(a),
		Hops: hopStrip(m, hopsMost), Path: mostly(m), Changes: fmt.Sprint(cost.RouteChanges), Route: seconds(m.RouteOutage()),
		TCP: "—", Discovery: "—", Packets: "—", Bytes: "—"}
	if o, ok := m.TCPOutage(); ok {
		row.TCP = seconds(o)
	}
	if n := len(cost.DiscoveryMs); n > 0 {
		row.Discovery = fmt.Sprintf("%.0f ms (of %d)", cost.DiscoveryMs[n/2], n)
	}
	if cost.Failed > 0 {
		row.Discovery += fmt.Sprintf(", %d in vain", cost.Failed)
	}
	if cost.PacketsPerS != nil {
		row.Packets, row.Bytes = fmt.Sprintf("%.2f", *cost.PacketsPerS), fmt.Sprintf("%.0f", *cost.BytesPerS)
	}
	var kinds []string
	for _, k := range cost.Messages {
		kinds = append(kinds, fmt.Sprintf("%s %.2f/s, %.0f B/s", k.Kind, k.PerS, k.BytesPerS))
	}
	row.Why = strings.Join(kinds, "; ")
	return row
}

// seconds prints an outage that is longer than the beat of the samples.
func seconds(o topology.Outage) string {
	if o.Seconds < 0.05 {
		return "none"
	}
	return fmt.Sprintf("%.1f s from %.1f s", o.Seconds, o.FromS)
}

// mostly is the way that the flow had for the longest time.
func mostly(m *topology.Mesh) string {
	paths, held := m.PathsInWindow(), map[string]float64{}
	best := ""
	for i, p := range paths {
		end := m.Seconds
		if i+1 < len(paths) {
			end = paths[i+1].S
		}
		held[p.String()] += end - p.S
		if best == "" || held[p.String()] > held[best] {
			best = p.String()
		}
	}
	return best
}

// hopStrip is the number of hops over the window, in steps; it breaks where
// there was no whole way.
func hopStrip(m *topology.Mesh, most float64) template.HTML {
	s := strip{Seconds: m.Seconds, High: max(most, 1), Colour: "#0072b2"}
	paths := m.PathsInWindow()
	for i, p := range paths {
		end := m.Seconds
		if i+1 < len(paths) {
			end = paths[i+1].S
		}
		var hops *float64
		if p.Whole {
			hops = new(float64(p.Hops()))
		}
		s.S, s.V = append(s.S, p.S, end), append(s.V, hops, hops)
	}
	return s.draw()
}
