package trial

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// answerer is a peer that answers every GO at once, and keeps it.
func answerer(t *testing.T, name string, key []byte) (*peer, <-chan wire.Go) {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	heard := make(chan wire.Go, 100)
	go func() {
		buf := make([]byte, wire.MaxDatagram+1)
		for {
			n, from, err := conn.ReadFromUDP(buf)
			if err != nil {
				return // the test has ended
			}
			var g wire.Go
			if err := wire.Open(key, buf[:n], &g); err != nil {
				t.Error(err)
				return
			}
			heard <- g
			answer, err := wire.Seal(key, &wire.Ack{Type: "ack", Run: g.Run, Trial: g.Trial, Attempt: g.Attempt, From: name, Nonce: g.Nonce, Ready: true})
			if err == nil {
				_, err = conn.WriteToUDP(answer, from)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}()
	return &peer{name: name, paths: []*net.UDPAddr{conn.LocalAddr().(*net.UDPAddr)}}, heard
}

// Peers are told one after the other, so that their answers do not wait for each
// other, and all of them the same opening.
func TestPeersAreToldTheSameOpeningApart(t *testing.T) {
	r := newRig(t, "car", t.TempDir(), 0)
	key := []byte("a key of 32 bytes for this test.")
	r.plan = &wire.RunPlan{Run: "r", Key: key}
	a := newAttempt(r.Engine, wire.TrialKey{Trial: 1, Attempt: 1}, wire.Trial{Number: 1})
	var peers []*peer
	var heard []<-chan wire.Go
	for i := range 6 {
		p, h := answerer(t, fmt.Sprintf("n%d", i), key)
		peers, heard = append(peers, p), append(heard, h)
	}
	openNs := r.deps.Clock.BootNs() + (20 * time.Second).Nanoseconds()
	if err := a.exchangeGo(context.Background(), wire.GoStart, peers, openNs); err != nil {
		t.Fatal(err)
	}
	for i, p := range peers {
		if p.bestRTT <= 0 || !p.acked {
			t.Errorf("%s answered after %v", p.name, p.bestRTT)
		}
		if i > 0 && time.Duration(p.asked[0]-peers[i-1].asked[0]) < goApart {
			t.Errorf("%s was asked %v after %s", p.name, time.Duration(p.asked[0]-peers[i-1].asked[0]), peers[i-1].name)
		}
		g := <-heard[i]
		if told := p.asked[g.Nonce-1] + g.StartInUs*1000; told > openNs || told < openNs-1000 {
			t.Errorf("%s was told an opening %d ns before the others'", p.name, openNs-told)
		}
	}
}
