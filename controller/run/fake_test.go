package run

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// fakeField is two nodes, car and road, behind the API's real TLS. A trial is
// over as soon as the car is armed.
type fakeField struct {
	t      *testing.T
	mu     sync.Mutex
	nodes  map[string]*fakeNode
	mute   string // this node cannot record that it has kept an attempt
	loaded func()
	armed  func()                             // called when the car is
	ends   func() (wire.Outcome, wire.Reason) // how the car ends an attempt; nil: accepted
}

type fakeNode struct {
	name, epoch string
	field       *fakeField
	plan        *wire.RunPlan
	lines       [][]byte
	trials      map[int][]wire.Verdict
	current     *wire.TrialKey
	lease       wire.Lease
	changed     chan struct{}
	capture     []byte  // of every attempt; nil: there is none
	told        []byte  // what the records say of it, where that is something else
	asked       []int64 // from which bytes it was read
	confirmed   wire.Confirmation
	holds       string // the run; empty: today
	shard       *wire.Shard
	restored    wire.RestoreReport
	problems    []wire.Problem
	gps         *wire.GPS
	photo       []byte // of its note; nil: it has none
	askedPhoto  int
	away        bool
}

// newLane starts a field's nodes and gives the lane that drives them.
func newLane(t *testing.T, name string) (*Lane, *fakeField) {
	t.Helper()
	controller := testnet.Identity(t, "controller")
	list, err := keys.NewAuthorized(keys.Peer{Name: "controller", Role: wire.RoleController, Pin: controller.Pin})
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeField{t: t, nodes: map[string]*fakeNode{}}
	lane := &Lane{Name: name, Nodes: map[string]*fleet.Client{}, Field: Road{}}
	for _, n := range []string{"car", "road"} {
		node := &fakeNode{name: n, epoch: name + "-" + n, field: f, trials: map[int][]wire.Verdict{},
			changed: make(chan struct{})}
		f.nodes[n] = node
		id := testnet.Identity(t, n)
		server := httptest.NewUnstartedServer(node)
		server.TLS = keys.ServerTLS(id, list)
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.Close)
		c := fleet.NewClient(controller, fleet.Node{Name: n, Address: server.Listener.Addr().String(), Pin: id.Pin})
		t.Cleanup(c.Close)
		lane.Nodes[n] = c
	}
	return lane, f
}

// newRunner makes a run of so many trials over lanes.
func newRunner(t *testing.T, trials, attempts int, lanes ...*Lane) *Runner {
	t.Helper()
	return newShardRunner(t, nil, trials, attempts, lanes...)
}

// newShardRunner makes a shard of one.
func newShardRunner(t *testing.T, shard *wire.Shard, trials, attempts int, lanes ...*Lane) *Runner {
	t.Helper()
	plan := wire.RunPlan{Run: "today", Campaign: "c", AttemptsMax: attempts,
		Nodes: []wire.PlanNode{{Name: "car"}, {Name: "road"}}}
	for i := 1; i <= trials; i++ {
		plan.Trials = append(plan.Trials, wire.Trial{Number: i, Car: "car", Roadside: "road", Sender: "car",
			Receiver: "road", Initiator: "car", DurationS: 1})
	}
	a, err := archive.Create(filepath.Join(t.TempDir(), "today"),
		archive.RunInfo{Run: "today", Shard: shard, Plan: plan, Place: archive.PlaceBench})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Runner{Archive: a, Plan: plan, Lanes: lanes, Log: slog.New(slog.DiscardHandler),
		lookEvery: 10 * time.Millisecond}
}

func (n *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		n.field.t.Error(err)
	}
	if r.URL.Path == "/v1/records" {
		n.await(r)
	}
	n.field.mu.Lock()
	defer n.field.mu.Unlock()
	if n.away {
		panic(http.ErrAbortHandler)
	}
	var answer any = n.view()
	switch route := r.Method + " " + r.URL.Path; route {
	case "PUT /v1/lease":
		n.read(body, &n.lease)
		answer = n.lease
	case "GET /v1/node":
		answer = wire.NodeStatus{Node: n.name, Run: cmp.Or(n.holds, "today"), Shard: n.shard,
			Problems: n.problems, AtStart: true, GPS: n.gps}
	case "GET /v1/clock":
		answer = wire.ClockReply{BootNs: bootNs(), WallNs: time.Now().UnixNano()}
	case "GET /v1/records":
		n.records(w, r)
		return
	case "GET /v1/runs/today/capture":
		n.part(w, r)
		return
	case "POST /v1/records/confirm":
		n.read(body, &n.confirmed)
		answer = wire.SpoolStatus{}
	case "GET /v1/attachments":
		n.askedPhoto++
		if n.photo == nil {
			w.WriteHeader(http.StatusNotFound)
			answer = wire.Error{Code: wire.CodeNotFound, Message: "no note has named it"}
		} else {
			answer = wire.AttachmentHeld{Bytes: len(n.photo), HeldBytes: len(n.photo)}
		}
	case "GET /v1/attachments/data":
		w.Header().Set("Fieldmesh-Size", strconv.Itoa(len(n.photo)))
		if _, err := w.Write(n.photo); err != nil {
			n.field.t.Error(err)
		}
		return
	case "POST /v1/attachments/archived":
		answer = wire.AttachmentHeld{Archived: true}
	case "PUT /v1/runs/today":
		n.plan = &wire.RunPlan{}
		n.read(body, n.plan)
		answer = n.view()
		if n.field.loaded != nil && n.field.nodes["car"].plan != nil && n.field.nodes["road"].plan != nil {
			n.field.loaded()
		}
	case "POST /v1/runs/today/arm":
		var k wire.TrialKey
		n.read(body, &k)
		n.arm(k)
		answer = n.view()
	case "PUT /v1/runs/today/verdicts":
		var vs []wire.Verdict
		n.read(body, &vs)
		if len(vs) > 200 {
			n.field.t.Errorf("%d verdicts at once", len(vs))
		}
		for _, v := range vs {
			n.keep(v)
		}
	case "POST /v1/runs/today/end":
		answer = n.restored
	case "GET /v1/runs/today", "POST /v1/runs/today/abort":
	default:
		n.field.t.Errorf("call %s", route)
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		n.field.t.Error(err)
	}
}

func (n *fakeNode) read(body []byte, into any) {
	if err := json.Unmarshal(body, into); err != nil {
		n.field.t.Errorf("%s: %v", n.name, err)
	}
}

func (n *fakeNode) view() wire.CampaignView {
	v := wire.CampaignView{Version: 1, Run: "today", State: "loaded", Trials: []wire.TrialView{},
		Position: wire.SpoolPosition{Epoch: n.epoch, Seq: uint64(len(n.lines))}}
	for number, vs := range n.trials {
		v.Trials = append(v.Trials, wire.TrialView{Number: number, Attempts: vs})
	}
	if n.current != nil {
		v.State, v.Current = "armed", n.current
	}
	return v
}

func (n *fakeNode) keep(v wire.Verdict) {
	for i, had := range n.trials[v.Trial] {
		if had.Attempt == v.Attempt {
			n.trials[v.Trial][i] = v
			return
		}
	}
	n.trials[v.Trial] = append(n.trials[v.Trial], v)
}

// arm arms, and when it is the car that does, lets both nodes measure.
func (n *fakeNode) arm(k wire.TrialKey) {
	n.current = &k
	if n.name != "car" {
		return
	}
	if n.field.armed != nil {
		n.field.armed()
	}
	outcome, reason := wire.Accepted, wire.Reason{}
	if n.field.ends != nil {
		outcome, reason = n.field.ends()
	}
	for _, node := range n.field.nodes {
		now := bootNs()
		node.record(k, &wire.Window{OpenBootNs: now - 1e9, CloseBootNs: now})
		if told := cmp.Or(len(node.told), len(node.capture)); told > 0 {
			file := node.told
			if file == nil {
				file = node.capture
			}
			sum := sha256.Sum256(file)
			node.record(k, &wire.Capture{Name: "capture", FileBytes: int64(told), SHA256: hex.EncodeToString(sum[:])})
		}
		if node.name != n.field.mute {
			node.record(k, &wire.TrialState{State: "kept", Outcome: outcome, Reason: reason})
		}
		node.current = nil
		node.keep(wire.Verdict{TrialKey: k, Outcome: outcome, Reason: reason})
	}
}

func (n *fakeNode) record(k wire.TrialKey, b wire.Body) {
	line, err := wire.Record{Header: wire.Header{Node: n.name, Epoch: n.epoch, Seq: uint64(len(n.lines) + 1),
		Run: "today", TBootNs: bootNs(), Trial: k.Trial, Attempt: k.Attempt}, Body: b}.MarshalJSON()
	if err != nil {
		n.field.t.Error(err)
	}
	n.lines = append(n.lines, line)
	close(n.changed)
	n.changed = make(chan struct{})
}

// part gives at most four bytes of the capture, of which the second time it is
// asked only one gets through.
func (n *fakeNode) part(w http.ResponseWriter, r *http.Request) {
	offset, err := strconv.ParseInt(r.FormValue("offset"), 10, 64)
	if err != nil {
		n.field.t.Error(err)
	}
	n.asked = append(n.asked, offset)
	if n.capture == nil {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"code":"not_found","message":"there is no capture"}`)
		return
	}
	w.Header().Set("Fieldmesh-Size", strconv.Itoa(len(n.capture)))
	from := min(offset, int64(len(n.capture)))
	part := n.capture[from:min(from+4, int64(len(n.capture)))]
	if len(n.asked) == 2 && len(part) > 1 {
		part = part[:1]
	}
	if _, err := w.Write(part); err != nil {
		n.field.t.Error(err)
	}
}

// await waits, as the real API does, for records that the caller has not.
func (n *fakeNode) await(r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
	defer cancel()
	for {
		n.field.mu.Lock()
		changed, have := n.changed, len(n.lines)
		n.field.mu.Unlock()
		if after, _ := strconv.Atoi(r.FormValue("after")); after < have || ctx.Err() != nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (n *fakeNode) records(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.Atoi(r.FormValue("after"))
	if err != nil {
		n.field.t.Error(err)
	}
	if r.FormValue("epoch") != n.epoch {
		after = 0
	}
	w.Header().Set("Fieldmesh-Epoch", n.epoch)
	w.Header().Set("Fieldmesh-Last", strconv.Itoa(len(n.lines)))
	for _, l := range n.lines[min(after, len(n.lines)):] {
		fmt.Fprintf(w, "%s\n", bytes.TrimSpace(l))
	}
}
