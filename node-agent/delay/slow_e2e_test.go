//go:build e2e

package delay

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
		s, err = NewSender(t.Context(), End{flow, key, own, peer, clock.System{}, sent.emit, ""})
		return err
	})
	b.Do(t, func() (err error) {
		r, err = Receive(t.Context(), End{flow, key, peer, own, clock.System{}, came.emit, ""})
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

// What a flow of kind cbr tells is what the kernel's counters have, whether there is a way or not: sent is what the
// sender's kernel put out or dropped at a device without a carrier, received what the receiver's delivered. While its
// own device is down the sender goes on.
func TestE2EConstantRateIsTheKernelsCount(t *testing.T) {
	testnet.Need(t, "ip")
	a, b := testnet.NewNS(t, "cbra"), testnet.NewNS(t, "cbrb")
	testnet.Veth(t, a, "wlan0", "10.79.0.1/24", b, "wlan0", "10.79.0.2/24")
	flow := wire.Flow{Name: "cbr", Kind: wire.KindCBR, From: "a", To: "b", Streams: 1, DurationS: 2,
		BitrateBps: new(512 * 8 / 5e-3), PayloadBytes: new(512)}
	key := Key(runKey, "velocity-1", first, flow.Name)
	own, peer := netip.MustParseAddrPort("10.79.0.1:5010"), netip.MustParseAddrPort("10.79.0.2:5010")
	nowhere := netip.MustParseAddrPort("10.80.0.2:5010")
	for _, to := range []netip.AddrPort{peer, nowhere} {
		sent, came := &recorded{}, &recorded{}
		var s *Sender
		var r *Receiver
		a.Do(t, func() (err error) {
			s, err = NewSender(t.Context(), End{flow, key, own, to, clock.System{}, sent.emit, ""})
			return err
		})
		b.Do(t, func() (err error) {
			r, err = Receive(t.Context(), End{flow, key, peer, own, clock.System{}, came.emit, ""})
			return err
		})
		out, in := counted(t, a, "OutDatagrams", "SndbufErrors"), counted(t, b, "InDatagrams")
		done := make(chan error, 1)
		go func() { done <- s.Run(t.Context(), clock.System{}.BootNs()+20e6) }()
		if to == peer {
			time.Sleep(500 * time.Millisecond)
			a.Run(t, "ip", "link", "set", "wlan0", "down")
			time.Sleep(300 * time.Millisecond)
			a.Run(t, "ip", "link", "set", "wlan0", "up")
			time.Sleep(300 * time.Millisecond)
			b.Run(t, "ip", "link", "set", "wlan0", "down")
			time.Sleep(300 * time.Millisecond)
			b.Run(t, "ip", "link", "set", "wlan0", "up")
		}
		err := <-done
		time.Sleep(50 * time.Millisecond) // for the last to come
		if err = errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		out, in = counted(t, a, "OutDatagrams", "SndbufErrors")-out, counted(t, b, "InDatagrams")-in
		all, end := sent.split()
		_, other := came.split()
		refused, unsent := uint64(0), uint64(0)
		for _, d := range all {
			switch {
			case d.HandedBootNs == nil:
				unsent++
			case d.Refused == "ENETUNREACH":
				refused++
			case d.Refused != "":
				t.Errorf("the kernel's error is %s", d.Refused)
			}
		}
		t.Logf("to %v: %d sent, %d refused, %d unsent, %d received; the kernels took %d and delivered %d", to, end.Sent,
			refused, unsent, other.Received, out, in)
		if len(all) != 400 || end.Sent != out || other.Received != in || end.Sent+refused+unsent != 400 {
			t.Errorf("%d of 400 are recorded: %+v, %+v, %d refused, %d unsent", len(all), end, other, refused, unsent)
		}
		lost := other.Received < end.Sent && other.Received > 0 && refused > 0
		if to == peer && !lost || to == nowhere && refused+unsent != 400 {
			t.Errorf("to %v: %+v, %+v, %d refused", to, end, other, refused)
		}
	}
}

// counted is the sum of some of the kernel's counts of UDP in a namespace.
func counted(t *testing.T, n *testnet.NS, names ...string) (sum uint64) {
	t.Helper()
	var heads []string
	for line := range strings.Lines(n.Run(t, "cat", "/proc/net/snmp")) {
		f := strings.Fields(line)
		if f[0] != "Udp:" {
			continue
		}
		if heads == nil {
			heads = f
			continue
		}
		for _, name := range names {
			count, err := strconv.ParseUint(f[slices.Index(heads, name)], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += count
		}
		return sum
	}
	t.Fatal("the kernel counts no UDP")
	return 0
}
