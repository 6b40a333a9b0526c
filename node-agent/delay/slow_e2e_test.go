//go:build e2e

package delay

import (
	"errors"
	"net/netip"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A link that is slower than the flow fills the sender's buffer. Then stamps of
// departures come while there is no room to send, and answers must still be read.
func TestE2EAnswersAreReadWhileThereIsNoRoomToSend(t *testing.T) {
	testnet.Need(t, "ip", "tc")
	a, b := testnet.NewNS(t, "delaya"), testnet.NewNS(t, "delayb")
	testnet.Veth(t, a, "wlan0", "10.78.0.1/24", b, "wlan0", "10.78.0.2/24")
	// 1 Mbit/s for the 2.4 Mbit/s that are sent, and a queue that loses nothing.
	a.Run(t, "tc", "qdisc", "add", "dev", "wlan0", "root", "tbf", "rate", "1mbit", "burst", "3000", "limit", "4000000")
	flow := wire.Flow{Name: "delay", Kind: wire.KindDelay, From: "a", To: "b", Streams: 1, DurationS: 2,
		IntervalMs: new(5.0), PayloadBytes: new(1472)}
	key := Key(runKey, "velocity-1", first, flow.Name)
	own, peer := netip.MustParseAddrPort("10.78.0.1:5010"), netip.MustParseAddrPort("10.78.0.2:5010")
	sent, came := &recorded{}, &recorded{}
	var s *Sender
	var r *Receiver
	a.Do(t, func() (err error) {
		s, err = NewSender(t.Context(), End{flow, key, own, peer, clock.System{}, sent.emit})
		return err
	})
	b.Do(t, func() (err error) {
		r, err = Receive(t.Context(), End{flow, key, peer, own, clock.System{}, came.emit})
		return err
	})
	err := s.Run(t.Context(), clock.System{}.BootNs()+20e6)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	_, out := sent.split()
	_, in := came.split()
	refused := uint64(flow.Datagrams()) - out.Sent // the buffer was full, or the machine was busy
	if refused == 0 {
		t.Error("the sender's buffer was never full: the test does not test")
	}
	// Each one that came was answered, and the way back is quick: what is on the way at
	// the end of the wait is little.
	if in.Received < 100 || out.Received+20 < in.Received {
		t.Errorf("%d were sent, %d came, %d answers were read", out.Sent, in.Received, out.Received)
	}
}
