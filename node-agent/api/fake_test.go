package api

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// fakeNode is a node in memory: it has a lease, runs and their states, and
// refuses as a real one does. It touches no machine.
type fakeNode struct {
	mu      sync.Mutex
	holder  string
	plans   map[string]wire.RunPlan
	views   map[string]wire.CampaignView
	changed chan struct{} // closed and renewed at every change
	fault   func()        // called by Status, when set
	boot    time.Time
	tried   atomic.Int32
	arming  time.Duration // what arming takes
}

func newFakeNode() *fakeNode {
	return &fakeNode{plans: map[string]wire.RunPlan{}, views: map[string]wire.CampaignView{},
		changed: make(chan struct{}), boot: time.Now()}
}

func (n *fakeNode) InTheWay(own netip.Prefix, peers []netip.Addr) []wire.Problem {
	return []wire.Problem{{Need: "route", Found: fmt.Sprint(own, peers), Cure: "c"}}
}

func (n *fakeNode) TryGenerator(context.Context) error {
	n.tried.Add(1)
	return nil
}

func (n *fakeNode) Scan(_ context.Context, channel int) error {
	if channel == 13 {
		return wire.Errorf(wire.CodeConflict, "a trial is under way")
	}
	return nil
}

func (n *fakeNode) Status(context.Context) (wire.NodeStatus, error) {
	if n.fault != nil {
		n.fault()
	}
	return wire.NodeStatus{Node: "car", Version: "test", Kernel: "test", Arch: "test", Interface: "wlan0",
		Spool: wire.SpoolStatus{Newest: wire.SpoolPosition{Epoch: "e1"}}}, nil
}

func (n *fakeNode) Clock() wire.ClockReply {
	return wire.ClockReply{BootNs: int64(time.Since(n.boot)), WallNs: time.Now().UnixNano()}
}

func (n *fakeNode) Lease(_ context.Context, _ Peer, l wire.Lease) (wire.Lease, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holder != "" && n.holder != l.Holder {
		return wire.Lease{}, &wire.Error{Code: wire.CodeLeaseHeld, Message: fmt.Sprintf("%q holds the lease", n.holder),
			Cure: "wait"}
	}
	n.holder = l.Holder
	if l.TTLS == 0 {
		n.holder = ""
	}
	return l, nil
}

// change applies f to a run's view and wakes the polls.
func (n *fakeNode) change(run string, f func(*wire.CampaignView) error) (wire.CampaignView, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	view, ok := n.views[run]
	if !ok {
		return wire.CampaignView{}, wire.Errorf(wire.CodeNotFound, "there is no run %q here", run)
	}
	if err := f(&view); err != nil {
		return wire.CampaignView{}, err
	}
	view.Version++
	n.views[run] = view
	close(n.changed)
	n.changed = make(chan struct{})
	return view, nil
}

func (n *fakeNode) Load(_ context.Context, _ Peer, plan wire.RunPlan) (wire.CampaignView, error) {
	n.mu.Lock()
	n.plans[plan.Run] = plan
	n.views[plan.Run] = wire.CampaignView{Run: plan.Run, Campaign: plan.Campaign, State: "loaded",
		Position: wire.SpoolPosition{Epoch: "e1"}}
	n.mu.Unlock()
	return n.change(plan.Run, func(*wire.CampaignView) error { return nil })
}

func (n *fakeNode) View(ctx context.Context, run string, known uint64) (wire.CampaignView, error) {
	for {
		n.mu.Lock()
		view, ok := n.views[run]
		changed := n.changed
		n.mu.Unlock()
		if !ok {
			return wire.CampaignView{}, wire.Errorf(wire.CodeNotFound, "there is no run %q here", run)
		}
		if view.Version != known {
			return view, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return view, nil
		}
	}
}

func (n *fakeNode) Arm(ctx context.Context, _ Peer, run string, k wire.TrialKey) (wire.CampaignView, error) {
	if err := pause.For(ctx, n.arming); err != nil {
		return wire.CampaignView{}, err
	}
	return n.change(run, func(v *wire.CampaignView) error {
		if k.Trial > len(n.plans[run].Trials) {
			return wire.Errorf(wire.CodeNotFound, "run %q has no trial %d", run, k.Trial)
		}
		if v.Current != nil && *v.Current != k {
			return wire.Errorf(wire.CodeConflict, "trial %d is armed", v.Current.Trial)
		}
		v.State, v.Current = "armed", &k
		return nil
	})
}

func (n *fakeNode) Abort(_ context.Context, run string, r wire.AbortRequest) (wire.CampaignView, error) {
	return n.change(run, func(v *wire.CampaignView) error {
		v.State, v.Detail, v.Current = "idle", r.Reason, nil
		return nil
	})
}

func (n *fakeNode) Verdicts(_ context.Context, _ Peer, run string, list []wire.Verdict) (wire.CampaignView, error) {
	return n.change(run, func(v *wire.CampaignView) error {
		for _, verdict := range list {
			v.Trials = append(slices.Clone(v.Trials), wire.TrialView{Number: verdict.Trial,
				Attempts: []wire.Verdict{verdict}})
		}
		return nil
	})
}

func (n *fakeNode) End(_ context.Context, _ Peer, run string) (wire.RestoreReport, error) {
	_, err := n.change(run, func(v *wire.CampaignView) error { v.State = "idle"; return nil })
	return wire.RestoreReport{}, err
}

func (n *fakeNode) Schedule(run string) (wire.Schedule, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	plan, ok := n.plans[run]
	if !ok {
		return wire.Schedule{}, wire.Errorf(wire.CodeNotFound, "there is no run %q here", run)
	}
	return plan.Schedule(), nil
}

func (n *fakeNode) PushFix(_ Peer, f wire.Fix) (wire.GPS, error) {
	return wire.GPS{Mode: f.Mode, Connected: true}, nil
}

func (n *fakeNode) PushWiFi(_ Peer, w wire.WiFiReading) (wire.WiFi, error) { return *w.Record(), nil }

func (n *fakeNode) Note(context.Context, Peer, wire.Note) (wire.SpoolPosition, error) {
	return wire.SpoolPosition{Epoch: "e1", Seq: 5}, nil
}

// Attachment has held half of whatever is asked for.
func (n *fakeNode) Attachment(sha256 string) (wire.AttachmentHeld, error) {
	return wire.AttachmentHeld{SHA256: sha256, Bytes: 10, HeldBytes: 5}, nil
}

func (n *fakeNode) PutAttachment(sha256 string, offset int, data []byte) (wire.AttachmentHeld, error) {
	return wire.AttachmentHeld{SHA256: sha256, Bytes: 10, HeldBytes: offset + len(data)}, nil
}

func (n *fakeNode) AttachmentData(_ string, offset int64, limit int) ([]byte, int64, error) {
	return n.Capture("", wire.TrialKey{Trial: 2, Attempt: 1}, offset, limit)
}

func (n *fakeNode) Archived(sha256 string) (wire.AttachmentHeld, error) {
	return wire.AttachmentHeld{SHA256: sha256, Bytes: 10, Archived: true}, nil
}

func (n *fakeNode) LetIn(_ Peer, apps wire.Apps) (wire.Apps, error) { return apps, nil }

func (n *fakeNode) Restore(context.Context) (wire.RestoreReport, error) {
	return wire.RestoreReport{Undone: []string{"address 10.77.0.1/24 on wlan0"}}, nil
}

// Forget refuses while anybody steers.
func (n *fakeNode) Forget(run string, drop func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holder != "" {
		return wire.Errorf(wire.CodeBusy, "run %s is under way", run)
	}
	return drop()
}

// Capture has the ten bytes of trial 2's first attempt.
func (n *fakeNode) Capture(run string, k wire.TrialKey, offset int64, limit int) ([]byte, int64, error) {
	const file = "0123456789"
	if (k != wire.TrialKey{Trial: 2, Attempt: 1}) {
		return nil, 0, wire.Errorf(wire.CodeNotFound, "there is no capture of trial %d of run %s", k.Trial, run)
	}
	from := min(offset, int64(len(file)))
	return []byte(file[from:min(from+int64(limit), int64(len(file)))]), int64(len(file)), nil
}

// fakeRecords is a spool in memory.
type fakeRecords struct {
	mu        sync.Mutex
	lines     [][]byte
	confirmed uint64
	grown     chan struct{}
}

func newFakeRecords(n int) *fakeRecords {
	r := &fakeRecords{grown: make(chan struct{})}
	for range n {
		r.add()
	}
	return r
}

func (r *fakeRecords) add() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Appendf(nil, `{"kind":"event","seq":%d}`, len(r.lines)+1))
	close(r.grown)
	r.grown = make(chan struct{})
}

func (r *fakeRecords) Position() wire.SpoolPosition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return wire.SpoolPosition{Epoch: "e1", Seq: uint64(len(r.lines))}
}

func (r *fakeRecords) Status() wire.SpoolStatus {
	return wire.SpoolStatus{Newest: r.Position(), Oldest: 1, QuotaBytes: 1e9, FreeBytes: 1e9}
}

func (r *fakeRecords) Read(after uint64, limit int) ([][]byte, uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after >= uint64(len(r.lines)) {
		return nil, after, nil
	}
	part := r.lines[after:]
	part = part[:min(limit, len(part))]
	return slices.Clone(part), after + uint64(len(part)), nil
}

func (r *fakeRecords) Wait(ctx context.Context, after uint64) error {
	for {
		r.mu.Lock()
		there, grown := uint64(len(r.lines)) > after, r.grown
		r.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *fakeRecords) Confirm(c wire.Confirmation) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confirmed = max(r.confirmed, c.Seq)
	return nil
}
