package trial

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A fix from after the close is among every attempt's records, also of a receiver
// that tells one a second; the machine is put back before it is waited for.
func TestAFixFromAfterTheCloseIsKept(t *testing.T) {
	t.Parallel()
	car, road, plan := pair(t, 1)
	car.gps.period, road.gps.period = time.Second, time.Second
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	for _, r := range []*rig{road, car} {
		if _, err := r.Arm(ctx, holder, plan.Run, k); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []*rig{road, car} {
		await(t, "restored", func() bool { return len(r.spool.states(k)) >= 3 && r.host.inForce("trial") == 0 })
		await(t, "kept", func() bool { return r.kept(k) })
		closed := r.spool.kinds(k, "window")[0].Body.(*wire.Window).CloseBootNs
		var after, last int64
		for _, g := range r.spool.kinds(k, "gps") {
			if at := *g.Body.(*wire.GPS).FixBootNs; at > closed {
				after = at
			}
		}
		for _, s := range r.spool.kinds(k, "trial") {
			last = s.TBootNs
		}
		if after == 0 || last-closed > int64(2*time.Second) {
			t.Errorf("%s: a fix %d ms after the close, kept %d ms after it", r.cfg.Node, (after-closed)/1e6,
				(last-closed)/1e6)
		}
	}
}

// Neither a receiver that has gone silent is waited for, nor one whose newest fix
// is as good as a new one.
func TestWhoseFixIsNotWaitedFor(t *testing.T) {
	for name, period := range map[string]time.Duration{"silent": 1 << 62, "fast": 200 * time.Millisecond} {
		r := newRig(t, "car", t.TempDir(), testnet.FreePort(t))
		r.gps.period = period
		a := &attempt{engine: r.Engine, closeNs: r.gps.clk.BootNs() + int64(time.Second)}
		began := time.Now()
		if err := a.fixAfterClose(); err != nil || time.Since(began) > 200*time.Millisecond {
			t.Errorf("%s: waited %v, %v", name, time.Since(began), err)
		}
	}
}
