package trial

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// fakeHost remembers what is in force and can be told to fail.
type fakeHost struct {
	mu       sync.Mutex
	applied  map[string][]string // scope → changes in words
	fail     error
	stays    error         // nothing is put back
	hangs    bool          // a call waits until it is given up
	takes    time.Duration // a change, which is not made when it is given up before
	instance string
	byHand   string
	undone   []string // is reported of a trial's end
	away     bool
	severed  []host.Sever
	left     int    // sockets that a former attempt has left
	stuck    string // why they cannot be destroyed
	stopped  []flows.Filtered
	told     func()                    // once, when a status was read and before it is returned
	restores func()                    // once, before everything is put back
	wifi     func() (wire.Caps, error) // of Android
}

func (h *fakeHost) WiFi(context.Context, host.WiFi) (wire.Caps, error) { return h.wifi() }

func (h *fakeHost) Sever(_ context.Context, s host.Sever) (flows.Severed, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.severed = append(h.severed, s)
	if len(h.severed) == 1 { // before the attempt: another has left something
		return flows.Severed{Destroyed: h.left, Error: h.stuck}, nil
	}
	return flows.Severed{Destroyed: 2, Refused: new(uint64(3)), Filtered: h.stopped}, h.fail
}

func (h *fakeHost) Apply(ctx context.Context, scope string, cs []change.Change) ([]wire.HostChange, error) {
	if h.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	h.mu.Lock()
	takes := h.takes
	h.mu.Unlock()
	if takes > 0 && len(cs) > 0 {
		if err := pause.For(ctx, takes); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return nil, h.fail
	}
	var out []wire.HostChange
	for _, c := range cs {
		if slices.Contains(h.applied[scope], c.String()) {
			continue
		}
		h.applied[scope] = append(h.applied[scope], c.String())
		out = append(out, wire.HostChange{Scope: scope, Action: "applied", What: c.String()})
	}
	return out, nil
}

func (h *fakeHost) Restore(_ context.Context, scope string) (wire.RestoreReport, error) {
	h.mu.Lock()
	before := h.restores
	if scope == "" {
		h.restores = nil
	}
	h.mu.Unlock()
	if scope == "" && before != nil {
		before()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stays != nil {
		return wire.RestoreReport{}, h.stays
	}
	if scope == "" {
		h.applied = map[string][]string{}
	} else {
		delete(h.applied, scope)
	}
	return wire.RestoreReport{Undone: h.undone}, nil
}

// keep has nothing put back; nil: everything is again.
func (h *fakeHost) keep(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stays = why
}

// restoreByHand is `fieldmesh-agent restore`, whose run is known by a word.
func (h *fakeHost) restoreByHand(t *testing.T, word string) {
	t.Helper()
	if _, err := h.Restore(ctx, ""); err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	h.byHand = word
	h.mu.Unlock()
}

func (h *fakeHost) Status(context.Context) (wire.HostStatus, error) {
	h.mu.Lock()
	st, after := wire.HostStatus{Reached: true, Instance: h.instance, ByHand: h.byHand,
		Pending: slices.Concat(h.applied["run"], h.applied["trial"])}, h.told
	away := h.away
	h.told = nil
	h.mu.Unlock()
	if after != nil {
		after()
	}
	if away {
		return wire.HostStatus{}, host.ErrAway
	}
	return st, nil
}

func (h *fakeHost) inForce(scope string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.applied[scope])
}

// fakeSpool keeps records in memory.
type fakeSpool struct {
	mu      sync.Mutex
	records []wire.Record
	full    error
	awaited []string // runs that were begun or reopened
	unnoted error    // why no run that was over can be reopened

	unread, unsynced error // why records cannot be read, or do not reach the disk
}

func (s *fakeSpool) Append(h wire.Header, b wire.Body) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full != nil {
		return 0, s.full
	}
	h.Seq = uint64(len(s.records) + 1)
	s.records = append(s.records, wire.Record{Header: h, Body: b})
	return h.Seq, nil
}
func (s *fakeSpool) Sync(context.Context) error { return s.unsynced }
func (s *fakeSpool) Begin(run string)           { s.awaited = append(s.awaited, "begun "+run) }
func (s *fakeSpool) Reopen(run string) error {
	s.awaited = append(s.awaited, "reopened "+run)
	return s.unnoted
}
func (s *fakeSpool) Read(after uint64, limit int) (lines [][]byte, last uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last = after
	if s.unread != nil {
		return nil, last, s.unread
	}
	for _, r := range s.records {
		if r.Seq > after && len(lines) < limit {
			line, err := r.MarshalJSON()
			if err != nil {
				return nil, after, err
			}
			lines, last = append(lines, line), r.Seq
		}
	}
	return lines, last, nil
}
func (s *fakeSpool) Position() wire.SpoolPosition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.SpoolPosition{Epoch: "e", Seq: uint64(len(s.records))}
}
func (s *fakeSpool) CheckRoom(int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full
}

func (s *fakeSpool) fill(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = err
}

// states lists the trial states that were recorded of an attempt.
func (s *fakeSpool) states(k wire.TrialKey) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.records {
		if b, ok := r.Body.(*wire.TrialState); ok && r.Trial == k.Trial && r.Attempt == k.Attempt {
			out = append(out, string(b.State))
		}
	}
	return out
}

func (s *fakeSpool) kinds(k wire.TrialKey, kind string) (out []wire.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if r.Body.Kind() == kind && r.Trial == k.Trial && r.Attempt == k.Attempt {
			out = append(out, r)
		}
	}
	return out
}

// fakeGPS has a fresh fix of one speed or, with a period, one every period.
type fakeGPS struct {
	clk    clock.Clock
	speed  float64
	period time.Duration
	northM atomic.Int64 // of 50 degrees
}

func (g *fakeGPS) Tick() wire.GPS { f, _ := g.Last(); return f }
func (g *fakeGPS) Last() (wire.GPS, bool) {
	now := g.clk.BootNs()
	fix := now - 10_000_000
	if g.period > 0 {
		fix = now - now%g.period.Nanoseconds()
	}
	var hz *float64
	if g.period > 0 {
		hz = ptr(1 / g.period.Seconds())
	}
	return wire.GPS{Mode: 3, Connected: true, RateHz: hz, FixAgeMs: ptr(float64(now-fix) / 1e6), FixBootNs: &fix,
		SpeedMps: ptr(g.speed), LatDeg: ptr(50.0 + float64(g.northM.Load())/111195), LonDeg: ptr(8.0)}, true
}

// fakeFlows counts the processes that it starts; they end when stopped or at once.
type fakeFlows struct {
	mu      sync.Mutex
	started []string
	ports   []int
	fail    error
	unready error
	deaf    error // a client cannot start
}

func (f *fakeFlows) note(side string, fl wire.Flow) (Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, f.fail
	}
	f.started = append(f.started, side+" "+fl.Name)
	f.ports = append(f.ports, fl.ClientPort)
	return doneProcess{wire.Iperf3{Flow: fl.Name, Side: side}}, nil
}
func (f *fakeFlows) Ready(wire.Flow) error { return f.unready }
func (f *fakeFlows) Server(_ context.Context, fl wire.Flow, _ netip.Addr) (Process, error) {
	return f.note("server", fl)
}
func (f *fakeFlows) Client(_ context.Context, fl wire.Flow, _, _ netip.Addr, _ string) (Process, error) {
	if f.deaf != nil {
		return nil, f.deaf
	}
	return f.note("client", fl)
}

type doneProcess struct{ out wire.Iperf3 }

func (p doneProcess) Wait() wire.Iperf3 { return p.out }
func (p doneProcess) Stop(string)       {}

// fakeSockets has one socket per edge, and counts how many are open.
type fakeSockets struct{ open *atomic.Int32 }

func (fakeSockets) Name() string                      { return "tcp" }
func (fakeSockets) Sample(int64) ([]wire.Body, error) { return nil, nil }
func (fakeSockets) Before(e string) ([]wire.Body, error) {
	return []wire.Body{&wire.TCPSample{Flow: "bulk", Stream: ptr(0), Edge: wire.BeforeEdge + e}}, nil
}
func (fakeSockets) Edge(e string, _ int64) ([]wire.Body, measure.Missed, error) {
	return []wire.Body{&wire.TCPSample{Flow: "bulk", Stream: ptr(0), Edge: e}}, measure.Missed{}, nil
}

func (s fakeSockets) Close() error { s.open.Add(-1); return nil }

// rig is one node's engine over fakes.
type rig struct {
	*Engine
	host  *fakeHost
	spool *fakeSpool
	flows *fakeFlows
	gps   *fakeGPS
	route *fakeRouting
	open  atomic.Int32   // sockets of the kind that samples
	log   testnet.Output // what the engine has logged
	dir   string
	port  int
}

// fakeRouting is a daemon that lacks what it is told to; what it was asked for
// is kept.
type fakeRouting struct {
	mu    sync.Mutex
	lacks string
	asked []netip.Addr
	times int
}

func (f *fakeRouting) Name() string                      { return "routing" }
func (f *fakeRouting) Sample(int64) ([]wire.Body, error) { return nil, nil }
func (f *fakeRouting) Close() error                      { return nil }
func (f *fakeRouting) Missing(_ context.Context, routes []netip.Addr, _ bool) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked, f.times = routes, f.times+1
	return f.lacks, nil
}

func (f *fakeRouting) set(lacks string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lacks = lacks
}

func (f *fakeRouting) askedTimes() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.times
}

const holder = "controller"

func newRig(t *testing.T, node, dir string, port int) *rig {
	t.Helper()
	r := &rig{host: &fakeHost{applied: map[string][]string{}, instance: "1"}, spool: &fakeSpool{}, flows: &fakeFlows{},
		gps: &fakeGPS{clk: clock.System{}, speed: 5}, route: &fakeRouting{}, dir: dir, port: port}
	deps := Deps{Clock: clock.System{}, Host: r.host, Spool: r.spool, GPS: r.gps, Flows: r.flows,
		Sockets: func(string, []wire.Flow, map[string]netip.Addr, measure.Events) (Sockets, error) {
			r.open.Add(1)
			return fakeSockets{&r.open}, nil
		},
		Routing:    func(context.Context, string, func(error)) (Routing, error) { return r.route, nil },
		Radio:      func() (*wire.Caps, error) { return nil, nil },
		Provenance: func(context.Context) wire.Provenance { return wire.Provenance{Kernel: "test"} },
		Log:        slog.New(slog.NewTextHandler(&r.log, nil))}
	e, err := New(context.Background(), Config{Node: node, Interface: "wlan0", StateDir: dir, GoPort: port,
		ControlPort: wire.DefaultControlPort}, deps)
	if err != nil {
		t.Fatal(err)
	}
	r.Engine = e
	return r
}

// start serves GO and the autopilot until the test ends.
func (r *rig) start(t *testing.T) {
	t.Helper()
	testnet.Background(t, r.Run)
}

// twoNodePlan is a plan of n trials between car and road on loopback, each
// with a gate that opens at once and a window of a tenth of a second.
func twoNodePlan(n, carPort, roadPort int) wire.RunPlan {
	p := wire.RunPlan{Run: "r1", Campaign: "c", Key: []byte("0123456789abcdef0123456789abcdef"), AttemptsMax: 2,
		Nodes: []wire.PlanNode{{Name: "car", MeshPrefix: "127.0.0.9/8", GoPort: carPort},
			{Name: "road", MeshPrefix: "127.0.0.2/8", ControlAddr: "127.0.0.2", GoPort: roadPort}}}
	for i := 1; i <= n; i++ {
		p.Trials = append(p.Trials, wire.Trial{Number: i, Car: "car", Roadside: "road", Sender: "car", Receiver: "road",
			Initiator: "car", SpeedMps: ptr(5.0), DurationS: 0.1, Course: wire.Course{Kind: "none"},
			Radio: wire.Radio{Mode: "none"}, TCP: wire.TCP{Variant: "reno"},
			Gate:       wire.Gate{SpeedBand: true, TimeoutS: 5, LeadS: 0.3},
			Acceptance: wire.Acceptance{SpeedBandMps: ptr(0.5)},
			Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "car", To: "road", Port: 5000, Streams: 2,
				ClientPort: 20000, DurationS: 0.1}}})
	}
	return p
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// kept reports whether the attempt k was kept and is over: its last state is in the spool
// before the engine lets go of it.
func (r *rig) kept(k wire.TrialKey) bool {
	current, busy := r.Attempt()
	return slices.Contains(r.spool.states(k), "kept") && !(busy && current == k)
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
}

// keepFirst arms both nodes for the first attempt at the first trial and waits until they have kept it.
func keepFirst(t *testing.T, car, road *rig, plan wire.RunPlan) wire.TrialKey {
	t.Helper()
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, r := range []*rig{road, car} {
		if _, err := r.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "kept", func() bool { return car.kept(k) && road.kept(k) })
	return k
}
