package report

import (
	"cmp"
	"fmt"
	"html/template"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/figure"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/stats"
	"fieldmesh.dev/fieldmesh/controller/topology"
)

type routingView struct {
	Rows     []routingRow
	Pictures []meshPicture
	HopsMost float64
}

// routingRow is one attempt's routing.
type routingRow struct {
	Name, What, Protocol, Outcome string
	Hops                          template.HTML
	Path, Changes, Ready          string
	Route, Ping, TCP              string // outages
	Discovery, Packets, Bytes     string
	CountedBy                     string // whose count packets and bytes are
	Frames                        string // of routing on the air, and of all
	Why                           string // what the messages were
}

type meshPicture struct {
	Caption string
	SVG     template.HTML
}

// picturesMost bounds the page: one picture a protocol, of its first trial.
const picturesMost = 8

func viewRouting(d *evidence.Run) (any, error) {
	var v routingView
	for _, a := range d.Attempts {
		for _, p := range pathsOf(a) {
			if p.Whole {
				v.HopsMost = max(v.HopsMost, float64(p.Hops()))
			}
		}
	}
	drawn := map[string]bool{}
	for _, a := range d.Attempts {
		if a.Mesh == nil {
			continue
		}
		v.Rows = append(v.Rows, routingOf(a, v.HopsMost))
		if a.Mesh.HasDaemon() && !drawn[a.Mesh.Protocol] && len(drawn) < picturesMost {
			drawn[a.Mesh.Protocol] = true
			title := fmt.Sprintf("trial %d.%d, %s", a.Trial.Number, a.Attempt, a.Mesh.Protocol)
			v.Pictures = append(v.Pictures, meshPicture{title, template.HTML(a.Mesh.SVG(title, a.Mesh.Seconds/2))})
		}
	}
	if len(v.Rows) == 0 {
		return nil, nil
	}
	return v, nil
}

func pathsOf(a evidence.Attempt) []topology.Path {
	if a.Mesh == nil || !a.Mesh.HasDaemon() {
		return nil
	}
	return a.Mesh.PathsInWindow()
}

const unknown = "—"

func routingOf(a evidence.Attempt, hopsMost float64) routingRow {
	m, cost := a.Mesh, a.Mesh.Cost()
	row := routingRow{Name: fmt.Sprintf("%d.%d", a.Trial.Number, a.Attempt), What: what(a), Protocol: m.Protocol,
		Outcome: outcome(a),
		Path:    unknown, Changes: unknown, Ready: unknown, Route: unknown, Ping: unknown, TCP: unknown,
		Discovery: unknown, Packets: unknown, Bytes: unknown, Frames: unknown}
	if m.HasDaemon() {
		row.Hops, row.Path, row.Changes = hopStrip(m, hopsMost), mostly(m), fmt.Sprint(cost.RouteChanges)
		if m.OutagesKnown() {
			row.Route = seconds(m.RouteOutage())
		}
	}
	if o, ok := m.PingOutage(); ok {
		row.Ping = seconds(o)
	}
	if o, ok := m.TCPOutage(); ok {
		row.TCP = seconds(o)
	}
	if cost.ReadyS != nil {
		row.Ready = fmt.Sprintf("%.1f s", *cost.ReadyS)
	}
	if n := len(cost.DiscoveryMs); n > 0 {
		row.Discovery = fmt.Sprintf("%.0f ms (of %d)", stats.Median(cost.DiscoveryMs), n)
	}
	if cost.Failed > 0 {
		row.Discovery += fmt.Sprintf(", %d in vain", cost.Failed)
	}
	row.costs(a, cost)
	return row
}

// costs are what routing sent: as its daemons count it, as captures have it
// where they do not, and as it was on the air.
func (row *routingRow) costs(a evidence.Attempt, cost topology.Cost) {
	packets, bytes := cost.PacketsPerS, cost.BytesPerS
	by := fmt.Sprintf("daemons of %s", words.Count(cost.Nodes, "node"))
	nodes := metrics.Value(a.Heard, "", "nodes_captured")
	if packets == nil && nodes != nil {
		packets, bytes = metrics.Value(a.Heard, "", "routing_packets_per_s"),
			metrics.Value(a.Heard, "", "routing_bytes_per_s")
		if packets != nil {
			packets, bytes = new(*packets / *nodes), new(*bytes / *nodes)
			by = fmt.Sprintf("captures of %s", words.Count(int(*nodes), "node"))
		}
	}
	if packets != nil {
		row.Packets, row.Bytes, row.CountedBy = fmt.Sprintf("%.2f", *packets), fmt.Sprintf("%.0f", *bytes), by
	}
	var kinds []string
	for _, k := range cost.Messages {
		kinds = append(kinds, fmt.Sprintf("%s %.2f/s, %.0f B/s", k.Kind, k.PerS, k.BytesPerS))
	}
	for _, r := range a.Heard {
		if kind, is := strings.CutPrefix(r.Name, "captured_messages_"); is && r.Unit == "messages/s" {
			kind = strings.TrimSuffix(kind, "_per_s")
			text := fmt.Sprintf("%s %.2f/s", kind, r.Value)
			if bytes := metrics.Value(a.Heard, "", "captured_messages_"+kind+"_bytes_per_s"); bytes != nil {
				text += fmt.Sprintf(", %.0f B/s", *bytes)
			}
			kinds = append(kinds, text)
		}
	}
	if cut := metrics.Value(a.Heard, "", "routing_packets_cut"); cut != nil {
		kinds = append(kinds, fmt.Sprintf("%.0f packets were not captured whole", *cut))
	}
	row.Why = strings.Join(kinds, "; ")
	if f := cost.FramesPerS; f != nil {
		all := 0.0
		for _, n := range f {
			all += n
		}
		row.Frames = fmt.Sprintf("%.1f of %.0f", f["routing"], all)
	} else if n := a.Number("radio_frames_per_s"); n != nil {
		row.Frames = fmt.Sprintf("%.0f in all", *n)
	}
}

// seconds prints an outage that is longer than the beat of the samples.
func seconds(o topology.Outage) string {
	if o.Seconds < 0.05 {
		return "none"
	}
	return fmt.Sprintf("%.1f\u00a0s from %.1f\u00a0s", o.Seconds, o.FromS)
}

// mostly is the way that the flow had for the longest time. Ways that may have been none
// may together have been another, so that it is to have had its own for longer than those.
func mostly(m *topology.Mesh) string {
	paths, held := m.PathsInWindow(), map[string]float64{}
	best, doubtfulS := "", 0.0
	for i, p := range paths {
		end := m.Seconds
		if i+1 < len(paths) {
			end = paths[i+1].S
		}
		switch {
		case p.Whole && !m.WaysKnown():
			doubtfulS += end - p.S
			continue
		case !p.Whole && !m.GapsKnown():
			continue
		}
		held[p.String()] += end - p.S
		if best == "" || held[p.String()] > held[best] {
			best = p.String()
		}
	}
	if held[best] < doubtfulS {
		return unknown
	}
	return cmp.Or(best, unknown)
}

// hopStrip is the number of hops over the window, in steps; it breaks where
// there was no whole path, or none that is known to have been a way.
func hopStrip(m *topology.Mesh, most float64) template.HTML {
	s := figure.Strip{Seconds: m.Seconds, High: max(most, 1), Colour: "#0072b2"}
	paths := m.PathsInWindow()
	for i, p := range paths {
		end := m.Seconds
		if i+1 < len(paths) {
			end = paths[i+1].S
		}
		var hops *float64
		if p.Whole && m.WaysKnown() {
			hops = new(float64(p.Hops()))
		}
		s.S, s.V = append(s.S, p.S, end), append(s.V, hops, hops)
	}
	return s.Draw()
}
