package trial

import (
	"net"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestProbesThatComeBackAreRecorded(t *testing.T) {
	t.Parallel()
	car, road, plan := routed(t, wire.Routing{Protocol: "none", ProbeHz: ptr(30.0)}) // 33,333,333.3 ns
	for _, r := range []*rig{car, road} {
		r.mu.Lock()
		r.plan.Trials[0].DurationS = 2 // a busy machine may be late by half a second
		r.mu.Unlock()
	}
	k := keepFirst(t, car, road, plan)
	came := car.spool.kinds(k, "probe")
	w := car.spool.kinds(k, "window")[0].Body.(*wire.Window)
	if len(came) == 0 || len(road.spool.kinds(k, "probe")) != 0 {
		t.Fatalf("the car recorded %d probes, the roadside node %d", len(came), len(road.spool.kinds(k, "probe")))
	}
	ends := car.spool.kinds(k, "probe_end")
	if len(ends) != 1 {
		t.Fatalf("%d records of the end", len(ends))
	}
	if sent := ends[0].Body.(*wire.ProbeEnd).Sent; sent < uint64(len(came)) || sent > 60 {
		t.Errorf("%d were sent, %d came back", sent, len(came))
	}
	seen := map[uint64]bool{}
	for _, r := range came {
		p := r.Body.(*wire.Probe)
		due := w.OpenBootNs + int64(p.ProbeSeq-1)*int64(time.Second)/30
		if seen[p.ProbeSeq] || p.Peer != "road" || p.RTTUs <= 0 || p.SentBootNs < due || p.ProbeSeq > 60 {
			t.Errorf("probe %+v, due at %d", p, due)
		}
		seen[p.ProbeSeq] = true
	}
}

// The answering end is on a network that anybody may send to.
//
//attack:air a forged GO, or of another run
func TestForgedProbesAreNotAnswered(t *testing.T) {
	_, road, plan := routed(t, wire.Routing{Protocol: "none", ProbeHz: ptr(10.0)})
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 2), Port: wire.ProbePort})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := func(key []byte, number uint64) {
		d, err := wire.Seal(key, probe{Run: plan.Run, TrialKey: k, Probe: number})
		if err == nil {
			_, err = conn.Write(d)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	send([]byte("another key, also of 32 bytes..."), 1)
	send(plan.Key, 2)
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, wire.MaxDatagram)
	n, err := conn.Read(buf)
	var p probe
	if err != nil || wire.Open(plan.Key, buf[:n], &p) != nil || p.Probe != 2 {
		t.Errorf("the first answer is %+v, %v; want that to the one that is not forged", p, err)
	}
}
