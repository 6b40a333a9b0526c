package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/draw"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// cell is one combination of factors' levels.
type cell struct {
	factors []factor
	levels  []level
	name    string // "speed=2.8 section=A", for messages
}

// cells are those of the design. They are nil, with the fault reported, when there are too many.
func (p *parse) cells() []cell {
	count := 1
	for _, x := range p.factors {
		count *= len(x.levels)
		if count > maxCells {
			p.findings.Add(p.factors[0].at, "factors: more than %d cells are not allowed; allowed: fewer factors "+
				"or levels", maxCells)
			return nil
		}
	}
	return crossed(p.factors)
}

// crossed is the cross product in the file's order, the last factor fastest.
func crossed(factors []factor) []cell {
	out := []cell{{}}
	for _, x := range factors {
		var next []cell
		for _, c := range out {
			for _, l := range x.levels {
				levels := append(append([]level(nil), c.levels...), l)
				next = append(next, cell{factors, levels, strings.TrimSpace(c.name + " " + x.name + "=" + l.label)})
			}
		}
		out = next
	}
	return out
}

// expand checks every cell and lists the trials in order. What it returns counts only when nothing was found at fault.
func (p *parse) expand(root *tree.Node) []wire.Trial {
	base := p.base(root)
	cells := p.cells()
	p.cellCount = len(cells)
	if base == nil || cells == nil {
		return nil
	}
	d := p.design
	if total := d.repetitions * len(cells); total > wire.MaxTrials {
		p.findings.Add(root.Lookup("design.repetitions").At, "design.repetitions: %d trials in all are not allowed; "+
			"allowed: at most %d", total, wire.MaxTrials)
		return nil
	}
	trials := p.calibrationTrials(root, base, "before", 0)
	trials = append(trials, p.blocks(base, cells)...)
	trials = append(trials, p.calibrationTrials(root, base, "after", d.repetitions+1)...)
	for i := range trials {
		trials[i].Number = i + 1
		draw.Ends(d.seed, &trials[i])
	}
	p.assignClientPorts(root, trials)
	return trials
}

// blocks lists the ordinary trials.
func (p *parse) blocks(base *tree.Node, cells []cell) []wire.Trial {
	d := p.design
	var turns []func(cell, block int) int
	for k := range d.balance {
		turns = append(turns, d.balanced(k, len(cells)))
	}
	made := map[string]wire.Trial{} // by cell and balanced values, so that each is checked once
	var trials []wire.Trial
	for b := 1; b <= max(1, d.repetitions); b++ { // a design at fault still has its cells checked once
		for _, c := range d.orderOf(b, cells) {
			key, overrides := strconv.Itoa(c), []*tree.Node{}
			for _, l := range cells[c].levels {
				overrides = append(overrides, l.override)
			}
			for k, turn := range turns {
				if len(d.balance[k].values) == 0 {
					continue
				}
				v := turn(c, b)
				key += "," + strconv.Itoa(v)
				overrides = append(overrides, d.balance[k].values[v].override)
			}
			t, seen := made[key]
			if !seen {
				trial := base
				for _, o := range overrides {
					trial = tree.Merge(trial, o)
				}
				t = p.trialOf(trial, cells[c].name)
				made[key] = t
			}
			t.Block, t.Repetition, t.Factors = b, b, cells[c].labels()
			t.Traffic = append([]wire.Flow(nil), t.Traffic...) // each trial gets client ports of its own
			trials = append(trials, t)
		}
	}
	return trials
}

// labels is the cell as tables and models know it.
func (c cell) labels() map[string]string {
	out := map[string]string{}
	for i, l := range c.levels {
		out[c.factors[i].name] = l.label
	}
	return out
}

// trialOf checks one merged trial and turns it into the nodes' form.
func (p *parse) trialOf(trial *tree.Node, cellName string) wire.Trial {
	c := &check{p: p, tree: trial, cell: cellName}
	c.all()
	return c.decode()
}

// decode reads the merged tree. Values at fault are left out; the schedule is then never used.
func (c *check) decode() wire.Trial {
	m := c.tree
	t := wire.Trial{Routing: wire.Routing{Protocol: noRouting}}
	// those are not in the file as a node has them
	tree.Without(m, "traffic", "tcp", "conditions").Into(&c.p.findings, &t)
	t.Sender, t.Receiver, t.Initiator = c.role("sender"), c.role("receiver"), c.initiator()
	t.Direction, t.DurationS = c.direction(), c.duration()
	t.Gate.LeadS += c.warmupS()
	t.Gate.PlaceM = c.placeM()
	t.Gate.AtStart = t.Gate.AtStart || t.Course.Begins() && c.lacks("gate.at_start")
	t.Radio.AccessPoint = c.accessPoint()
	t.TCP, t.Conditions = c.decodeTCP(), c.decodeConditions()
	if t.Capture != nil { // packets that were merged have neither delay nor loss of their own
		t.Capture.Offloads = cmp.Or(t.Capture.Offloads, wire.OffloadsOff)
	}
	for _, e := range m.Child("traffic").EntriesOrNone() {
		t.Traffic = append(t.Traffic, c.decodeFlows(e)...)
	}
	return t
}

// placeM is where the gate opens, along the road from the roadside node's mark. A campaign file means the outbound
// drive; inbound, a course is its mirror image: about the roadside node, or for a segment about the segment.
//
// A segment's gate stands before the segment by the way that the car makes between GO and the window, so that the
// window opens at the segment's edge.
func (c *check) placeM() *float64 {
	m := c.tree
	speed, inbound := m.NumberAt("speed_mps"), c.direction() == "inbound"
	if m.TextAt("course.kind") == "segment" {
		first, length := m.NumberAt("course.segment_m"), m.NumberAt("course.length_m")
		if first == nil || length == nil || speed == nil {
			return nil
		}
		ahead := m.NumberOrZero("gate.lead_s") * *speed
		at := *first - ahead
		if inbound {
			at = *first + *length + ahead
		}
		return new(roundTo(at, 1e3))
	}
	place := m.NumberAt("gate.place_m")
	if place != nil && inbound {
		*place = -*place
	}
	return place
}

// What holds where the file does not say; the first two are iperf3's own.
const (
	iperf3Port = 5201
	oneStream  = 1
	noRouting  = "none"
)

func (c *check) decodeFlow(e tree.Entry) wire.Flow {
	m := e.Value
	f := wire.Flow{Port: iperf3Port, Streams: oneStream}
	m.Into(&c.p.findings, &f)
	f.Name, f.From, f.To = e.Key, c.flowEnd(m, "from"), c.flowEnd(m, "to")
	f.WindowBytes, f.BitrateBps = c.tcpWindow(m), rate(m)
	if f.Across == acrossNone {
		f.Across = ""
	}
	f.Background = f.Background || f.Kind == wire.KindCBR
	if m.NumberAt("start_s") == nil && f.Background {
		f.StartS = -c.warmupS()
	}
	f.DurationS = roundTo(c.duration()-f.StartS, 1e3)
	if d := m.NumberAt("duration_s"); d != nil {
		f.DurationS = *d
	}
	return f
}

// assignClientPorts gives every attempt of every trial client ports that no attempt shortly before it had: those may
// still be in TIME_WAIT (60 s in Linux). A flow owns Streams × attempts_max consecutive ports, of which attempt a uses
// those from ClientPort + (a−1) × Streams on; trials follow each other through 20000–29999 and then begin again. Flows
// with more streams come after those with fewer, and meet them in no attempt: interrupted ones are beyond attempts_max.
func (p *parse) assignClientPorts(root *tree.Node, trials []wire.Trial) {
	const room = clientPortLast - clientPortFirst + 1
	attempts := max(1, p.attemptsMax)
	next := 0
	for i := range trials {
		need := 0
		var flows []*wire.Flow
		for j := range trials[i].Traffic {
			flows = append(flows, &trials[i].Traffic[j])
			need += flows[j].Streams * attempts
		}
		if need > room/4 {
			p.findings.Add(root.Lookup("trial").Home, "trial: %d streams and %d attempts need %d client ports in a "+
				"trial; allowed: at most %d", need/attempts, attempts, need, room/4)
			return
		}
		if next+need > room {
			next = 0
		}
		slices.SortStableFunc(flows, func(x, y *wire.Flow) int { return x.Streams - y.Streams })
		for _, f := range flows {
			f.ClientPort = clientPortFirst + next
			next += f.Streams * attempts
		}
	}
}

// roundTo drops digits that only the arithmetic made: 1e3 keeps three.
func roundTo(x, parts float64) float64 { return math.Round(x*parts) / parts }

// cloneTrials copies a schedule with all that it points to.
func cloneTrials(trials []wire.Trial) ([]wire.Trial, error) {
	raw, err := json.Marshal(trials)
	if err != nil {
		return nil, fmt.Errorf("copy schedule: %w", err)
	}
	var out []wire.Trial
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("copy schedule: %w", err)
	}
	return out, nil
}
