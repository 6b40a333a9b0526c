// Package preflight holds a fleet against what a plan needs, before anything
// moves: every node, every need, and the cure for each that is not met. It asks
// and compares; it changes nothing, and decides nothing about a run.
package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// States of a need.
const (
	Met      = "met"
	Unmet    = "unmet"
	Unknown  = "unknown"  // nobody can tell, or a person has to look
	Unneeded = "unneeded" // the plan does not ask for it
)

// Item is one need of the plan at one node.
type Item struct {
	Node  string `json:"node,omitempty"` // absent: of the campaign as a whole
	Need  string `json:"need"`           // reach, host, radio, gps …
	State string `json:"state"`          // met | unmet | unknown | unneeded
	Found string `json:"found"`
	Cure  string `json:"cure,omitempty"`
}

// Report is every need. It passes while none is unmet.
type Report struct {
	Campaign string `json:"campaign"`
	Pass     bool   `json:"pass"`
	Items    []Item `json:"items"`
}

// Add adds needs to a report.
func (r *Report) Add(items ...Item) {
	r.Items = append(r.Items, items...)
	r.Pass = !slices.ContainsFunc(r.Items, func(i Item) bool { return i.State == Unmet })
}

// Node is a node that can be asked (fleet.Client).
type Node interface {
	Node() fleet.Node
	Status(ctx context.Context) (wire.NodeStatus, error)
	// TryGenerator is Status after the traffic generator has sent to itself.
	TryGenerator(ctx context.Context) (wire.NodeStatus, error)
	// Ways is Status after a look at the ways to other nodes: mesh is the node's own
	// address there, with its prefix length, and theirs.
	Ways(ctx context.Context, mesh string) (wire.NodeStatus, error)
	ClockOffset(ctx context.Context, n int) (wire.Clock, error)
}

// scanner is a node whose radio can be told to listen (fleet.Client).
type scanner interface {
	Node
	Scan(ctx context.Context, channel int) error
}

// scanning is a node that listens before it reports itself.
type scanning struct {
	scanner
	channels []int
}

// withScan has a node's radio listen on the channels of a plan when it is
// asked, where the radio is one that the agent sets.
func withScan(n scanner, plan wire.RunPlan) Node {
	s := scanning{scanner: n}
	for _, t := range plan.Trials {
		if c := t.Radio.Channel; c != 0 && !slices.Contains(s.channels, c) {
			s.channels = append(s.channels, c)
		}
	}
	return s
}

// clockExchanges is enough for one of them to meet no queue.
const clockExchanges = 8

// answerWithin bounds what one node takes to report about itself, the first time
// with a look at all that its kernel can do; clocksWithin the exchanges after it.
const (
	answerWithin = 10 * time.Second
	clocksWithin = 5 * time.Second
)

// Told is what one node said of itself, and how far its clocks are from ours.
type Told struct {
	Entry    fleet.Node
	Status   wire.NodeStatus
	Err      error       // it did not answer, or not to us
	Clock    *wire.Clock // absent: could not be compared
	ClockErr error
	Tried    bool  // its traffic generator has sent to itself just now, or had before
	TryErr   error // it could not be asked to
	Scanned  bool  // its radio has listened on the plan's channels just now
	ScanErr  error // it could not
	Ways     bool  // it has looked at its ways to the others just now
	WaysErr  error // it could not

	try  bool   // a flow of the plan begins or ends there
	mesh string // for Node.Ways; empty: it has nobody to reach
}

// ask asks a node about itself.
func (t *Told) ask(ctx context.Context, n Node) {
	t.Entry = n.Node()
	asking, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if t.Status, t.Err = n.Status(asking); t.Err != nil {
		return
	}
	if t.try {
		trying, cancel := context.WithTimeout(ctx, answerWithin+wire.GeneratorTryMaxS*time.Second)
		defer cancel()
		st, err := n.TryGenerator(trying)
		if t.TryErr = err; err == nil {
			t.Status, t.Tried = st, true
		}
	}
	if s, ok := n.(scanning); ok && t.Status.Radio != nil && t.Status.Radio.Driver == settable {
		t.scan(ctx, s)
	}
	if t.mesh != "" {
		st, err := n.Ways(ctx, t.mesh)
		if t.WaysErr = err; err == nil {
			t.Status, t.Ways = st, true
		}
	}
}

// compare compares the clocks of a node that has answered.
func (t *Told) compare(ctx context.Context, n Node) {
	if t.Err != nil {
		return
	}
	if est, err := n.ClockOffset(ctx, clockExchanges); err == nil {
		t.Clock = &est
	} else {
		t.ClockErr = err
	}
}

// scan has the node's radio listen, and asks what it heard.
func (t *Told) scan(ctx context.Context, s scanning) {
	for _, channel := range s.channels {
		if t.ScanErr = s.Scan(ctx, channel); t.ScanErr != nil {
			return
		}
	}
	st, err := s.Status(ctx)
	if t.ScanErr = err; err == nil {
		t.Status, t.Scanned = st, true
	}
}

// Nodes asks every node of the plan at once and judges the answers, in the
// plan's order. A node that nodes does not have is unmet. seconds is how long
// the campaign takes; 0: not asked.
func Nodes(ctx context.Context, plan wire.RunPlan, seconds float64, nodes map[string]Node) []Item {
	told := make([]Told, len(plan.Nodes))
	for i, n := range plan.Nodes {
		told[i].try, told[i].mesh = endsFlow(plan.Trials, n.Name), meshOf(plan, n)
	}
	each := func(ctx context.Context, step func(*Told, context.Context, Node)) {
		var asked sync.WaitGroup
		for i, n := range plan.Nodes {
			if c := nodes[n.Name]; c != nil {
				asked.Go(func() { step(&told[i], ctx, c) })
			}
		}
		asked.Wait()
	}
	each(ctx, (*Told).ask)
	// When all have answered: what the others are busy with would make clocks uncertain.
	comparing, cancel := context.WithTimeout(ctx, clocksWithin+fleet.ClockTurns(len(plan.Nodes)))
	defer cancel()
	each(comparing, (*Told).compare)
	var out []Item
	for i, n := range plan.Nodes {
		if nodes[n.Name] == nil {
			out = append(out, Item{n.Name, "reach", Unmet, "it is not in the fleet file", "`fieldmesh keys pair " +
				n.Name + "` adds it; or correct the name in the campaign"})
			continue
		}
		out = append(out, Judge(plan, n.Name, seconds, told[i])...)
	}
	return out
}

// Judge holds what a node said against what the plan needs of it.
func Judge(plan wire.RunPlan, name string, seconds float64, t Told) []Item {
	j := &judge{plan: plan, name: name, seconds: seconds, told: t, st: t.Status, open: slices.Clone(t.Status.Problems)}
	for _, trial := range plan.Trials {
		if slices.Contains(trial.Nodes(), name) {
			j.trials = append(j.trials, trial)
		}
	}
	if !j.reach() {
		return j.items
	}
	j.unit()
	j.host()
	j.capture()
	j.tools()
	j.generator()
	j.radio()
	j.channel()
	j.address()
	j.route()
	j.routing()
	j.tcp()
	j.gps()
	j.site()
	j.clock()
	j.wallClock()
	j.disk()
	j.battery()
	j.temperature()
	j.control()
	for _, p := range j.open { // what an agent tells that this program does not know
		j.unmet(p.Need, p.Found, p.Cure)
	}
	return j.items
}

// judge is one node under judgement.
type judge struct {
	plan    wire.RunPlan
	name    string
	seconds float64
	told    Told
	st      wire.NodeStatus
	trials  []wire.Trial   // in which it takes part
	open    []wire.Problem // that it reported and no need has taken up yet
	items   []Item
}

func (j *judge) put(need, state, found, cure string) {
	j.items = append(j.items, Item{j.name, need, state, found, cure})
}

func (j *judge) met(need, format string, args ...any) {
	j.put(need, Met, fmt.Sprintf(format, args...), "")
}

func (j *judge) unmet(need, found, cure string) { j.put(need, Unmet, found, cure) }

// problems takes up what the node itself has found of a need; true when there
// is something.
func (j *judge) problems(need string) bool {
	before := len(j.items)
	j.open = slices.DeleteFunc(j.open, func(p wire.Problem) bool {
		if p.Need != need {
			return false
		}
		j.unmet(need, p.Found, p.Cure)
		return true
	})
	return len(j.items) > before
}

// reach is false when nothing else can be told.
func (j *judge) reach() bool {
	if j.told.Err != nil {
		p := Unreached(j.told.Err)
		j.unmet(p.Need, p.Found, p.Cure)
		return false
	}
	if j.st.Node != j.name {
		j.unmet("reach", "the agent there says it is "+j.st.Node, "correct the address in the fleet file")
		return false
	}
	if j.told.ClockErr != nil && j.clockLimitMs() > 0 {
		p := Unreached(j.told.ClockErr) // gone since it answered: its agent may be starting again
		j.unmet(p.Need, p.Found, p.Cure)
		return true
	}
	j.met("reach", "answers at %s, version %s", j.told.Entry.Address, j.st.Version)
	return true
}

// Unreached puts into words why a node did not answer, or not to us.
func Unreached(err error) wire.Problem {
	p := wire.Problem{Need: "reach", Found: err.Error(), Cure: "start the agent, check the control link and the " +
		"address in the fleet file"}
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

// unit asks whether the hardware is that which results will name: they have the campaign's word for it.
func (j *judge) unit() {
	i := slices.IndexFunc(j.plan.Nodes, func(n wire.PlanNode) bool { return n.Name == j.name })
	if i < 0 || j.plan.Nodes[i].Unit == "" || j.told.Entry.Unit == "" {
		return
	}
	if planned, paired := j.plan.Nodes[i].Unit, j.told.Entry.Unit; planned != paired {
		j.unmet("unit", fmt.Sprintf("the fleet file says that %s carries it, and the campaign that %s does", paired,
			planned), "correct `unit` in the fleet file or of the node in the campaign: results name the latter")
		return
	}
	j.met("unit", "%s", j.told.Entry.Unit)
}

func (j *judge) host() {
	if j.problems("host") {
		return
	}
	if j.withoutRoot() {
		j.met("host", "it runs without root and changes nothing%s", prefixed("; its records will lack: ",
			strings.Join(j.st.Absent, ", ")))
		return
	}
	j.met("host", "answers, %d changes in force", len(j.st.Host.Pending))
}

func (j *judge) tools() {
	if j.problems("iperf3") {
		return
	}
	j.met("iperf3", "%s", cmp.Or(j.st.Tools["iperf3"], "found"))
}

// endsFlow reports whether a flow of the trials begins or ends at a node.
func endsFlow(trials []wire.Trial, node string) bool {
	return slices.ContainsFunc(trials, func(t wire.Trial) bool {
		return slices.ContainsFunc(t.Traffic, func(f wire.Flow) bool { return f.From == node || f.To == node })
	})
}

// generator asks whether iperf3 runs as a trial would run it. An attempt whose
// generator does not live fails.
func (j *judge) generator() {
	switch {
	case !endsFlow(j.trials, j.name):
		j.put(Generator, Unneeded, "no flow begins or ends here", "")
	case j.problems(Generator):
	case j.told.Tried:
		j.met(Generator, "iperf3 has sent to itself")
	case j.told.TryErr != nil:
		j.put(Generator, Unknown, Unreached(j.told.TryErr).Found, "ask again when no trial is under way, with an "+
			"agent of this version")
	default:
		j.put(Generator, Unknown, "iperf3 has not been tried", "ask again")
	}
}

// wants collects what the node's trials ask for, each once, in order.
func wants[T comparable](trials []wire.Trial, of func(wire.Trial) (T, bool)) []T {
	var out []T
	for _, t := range trials {
		if v, ok := of(t); ok && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (j *judge) routing() {
	daemons := wants(j.trials, func(t wire.Trial) (string, bool) {
		static := t.Routing.Protocol == "static" && !(j.withoutRoot() && len(t.Relays) > 0)
		return t.Routing.Protocol, t.Routing.Protocol != "" && t.Routing.Protocol != "none" && !static
	})
	if len(daemons) == 0 {
		j.put("routing", Unneeded, "no trial wants a routing daemon", "")
		return
	}
	if j.withoutRoot() {
		j.unmet("routing", "the plan wants "+strings.Join(daemons, ", ")+", and "+noRoot+"starts no routing daemon "+
			"and sets no route", "say `routing: {protocol: "+
			"none}` in the campaign; or "+haveRoot)
		return
	}
	use := slices.IndexFunc(j.st.Host.TCP, func(a wire.Ability) bool {
		return a.Feature == wire.RoutesInUse && a.How == "none"
	})
	for _, d := range daemons {
		switch {
		case use >= 0 && (wire.Routing{Protocol: d}).WantsRoutesInUse():
			a := j.st.Host.TCP[use]
			j.unmet("routing", d+" must be told which routes data uses, and the kernel cannot: "+a.Reason,
				"use "+a.Needs+"; or plan olsr, dsdv or dsr, which do without")
		case d == "batman-adv" && j.st.Tools[d] == "":
			j.unmet("routing", "the kernel has no batman-adv, loaded or as a module", "use a kernel with the module "+
				"batman-adv, such as Debian's, then start the agent again")
		case d != "babeld" && d != "olsrd" && d != "batman-adv":
			j.met("routing", "%s is the agent's own", d)
		case j.st.Tools[d] == "":
			j.unmet("routing", "there is no "+d, "install it, or name its place as `binaries` in the agent's "+
				"configuration")
		default:
			j.met("routing", "%s: %s", d, j.st.Tools[d])
		}
	}
}

func (j *judge) tcp() {
	told := map[string]bool{}
	ok := true
	trials := slices.DeleteFunc(slices.Clone(j.trials), func(t wire.Trial) bool { return !t.EndsTCP(j.name) })
	if len(trials) == 0 {
		j.put("tcp", Unneeded, "no TCP flow begins or ends here", "")
		return
	}
	for _, t := range trials {
		for _, p := range transportProblems(t.TCP, j.st) {
			if ok = false; !told[p.Found] {
				told[p.Found] = true
				j.unmet(p.Need, p.Found, p.Cure)
			}
		}
	}
	for _, a := range j.st.Host.TCP {
		if a.Feature == wire.DestroySockets && a.How == "none" {
			ok = false
			j.unmet("tcp", "connections that a trial leaves cannot be destroyed, and would send in the next window: "+
				a.Reason, "use "+a.Needs)
		}
	}
	if !j.problems("tcp") && ok {
		j.met("tcp", "%v", wants(trials, func(t wire.Trial) (string, bool) { return t.TCP.Variant, true }))
	}
}
