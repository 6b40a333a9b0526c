//go:build e2e

package measure

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A path that is silent for a while fires the sender's time-out, again and
// again, and ends in a recovery: samples report all of it.
func TestAnOutageIsToldAsTimeOuts(t *testing.T) {
	testnet.Need(t, "nft")
	a, b := testnet.NewNS(t, "send"), testnet.NewNS(t, "recv")
	testnet.Veth(t, a, "v0", "10.78.4.1/24", b, "v0", "10.78.4.2/24")
	const port = 20000
	client, server := testnet.Connect(t, a, b, &net.TCPAddr{IP: net.IPv4(10, 78, 4, 1), Port: port}, "10.78.4.2:5000")
	ends := map[string]netip.Addr{"sender": netip.MustParseAddr("10.78.4.1"),
		"receiver": netip.MustParseAddr("10.78.4.2")}
	s := sourceAt(t, "sender", ends, wire.Flow{Name: "main", Kind: "iperf3_tcp", From: "sender", To: "receiver",
		Port: 5000, ClientPort: port, Streams: 1})
	events := map[string]uint32{}
	var last *wire.TCPSample
	look := func() {
		t.Helper()
		a.Do(t, func() error { // the source's sockets are of the namespace of its first use
			bodies, err := s.Sample(bootNow(t))
			for _, body := range bodies {
				switch v := body.(type) {
				case *wire.TCPSample:
					last = v
				case *wire.TCPEvent:
					events[v.Event] += v.Count
				}
			}
			return err
		})
	}
	transfer(t, client, server, 100_000)
	look()
	b.Run(t, "nft", "add table ip outage; add chain ip outage in { type filter hook input priority 0; policy drop; }")
	if _, err := client.Write(make([]byte, 20_000)); err != nil {
		t.Fatal(err)
	}
	// The least time-out is 200 ms (TCP_RTO_MIN, net/tcp.h), and doubles.
	for until := time.Now().Add(20 * time.Second); events[eventRTO] < 3 &&
		time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		look()
	}
	if events[eventRTO] < 3 || events[eventRetransmission] < 3 || last.CongestionState != "loss" || last.CwndSegments !=
		1 {
		t.Errorf("in the outage: events %v, state %s, cwnd %d", events, last.CongestionState, last.CwndSegments)
	}
	b.Run(t, "nft", "delete table ip outage")
	for until := time.Now().Add(30 * time.Second); events[eventRecoveryEnd] < 1 &&
		time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		look()
	}
	if events[eventRecoveryEnd] < 1 || last.CongestionState == "loss" {
		t.Errorf("after the outage: events %v, state %s", events, last.CongestionState)
	}
	if total := last.RTOsTotal; total != nil && *total != events[eventRTO] {
		t.Errorf("%d time-outs were reported, the kernel counts %d", events[eventRTO], *total)
	}
	if last.Retransmits != events[eventRetransmission] {
		t.Errorf("%d retransmissions were reported, the kernel counts %d", events[eventRetransmission],
			last.Retransmits)
	}
	t.Logf("events %v", events)
}

func bootNow(t *testing.T) int64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano()
}
