//go:build e2e

package host

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Over routes that babeld makes, every segment is acknowledged when the trial
// wants that, and every second one when it does not.
func TestE2EImmediateAcknowledgementsOverBabeld(t *testing.T) {
	a, b := newField(t)
	f := []field{a, b}
	var clients []*Client
	for i := range f {
		f[i].ns.Run(t, "ip", "link", "set", "dev", device, "addrgenmode", "eui64")
		f[i].ns.Run(t, "ip", "link", "set", "dev", device, "down")
		f[i].ns.Run(t, "ip", "link", "set", "dev", device, "up")
		c, _ := f[i].start(t, true)
		apply(t, c, ScopeRun, []change.Change{sysctl("net.ipv6.conf.wlan0.disable_ipv6", "1"),
			address([]string{"10.77.0.1/24", "10.77.0.2/24"}[i])})
		clients = append(clients, c)
	}
	hello := 0.5
	perSegment := map[bool]float64{}
	for _, atOnce := range []bool{true, false} {
		d := routingDaemon()
		d.HelloS, d.QuickAck = &hello, atOnce
		for i := range f {
			// A packet is a segment: nothing merges or splits them.
			apply(t, clients[i], ScopeTrial, []change.Change{change.Offloads{Interface: device},
				sysctl("net.ipv4.tcp_congestion_control", "reno"), d})
		}
		want := map[bool]string{true: " quickack 1"}[atOnce]
		awaitOutput(t, a, "10.77.0.2 via 192.168.7.2 proto babel onlink"+want, "-4", "route", "show", "dev", device)
		awaitOutput(t, b, "10.77.0.1 via 192.168.7.1 proto babel onlink"+want, "-4", "route", "show", "dev", device)
		perSegment[atOnce] = f[1].acksPerSegment(t, f[0])
		for i := range f {
			if report, err := clients[i].Restore(t.Context(), ScopeTrial); err != nil || len(report.Failed) > 0 {
				t.Fatalf("restored %+v, %v", report, err)
			}
			if s := f[i].ns.Run(t, "ip", "route", "show", "proto", "babel"); s != "" {
				t.Errorf("left of babeld: %s", s)
			}
		}
	}
	t.Logf("ACKs a segment: %.3f at once, %.3f delayed", perSegment[true], perSegment[false])
	if perSegment[true] < 0.9 || perSegment[true] > 1.1 || perSegment[false] > 0.75 {
		t.Errorf("ACKs a segment: %.3f at once, %.3f delayed; want about 1 and about a half", perSegment[true],
			perSegment[false])
	}
}

// acksPerSegment is what this end answers to a paced stream of the other's.
func (f field) acksPerSegment(t *testing.T, from field) float64 {
	t.Helper()
	out, in := testnet.Connect(t, from.ns, f.ns, &net.TCPAddr{IP: net.IPv4(10, 77, 0, 1)}, "10.77.0.2:5000")
	raw, err := out.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var set error
	// Slow enough that segments do not pile up before a busy receiver.
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, 2_000_000)
	})
	if err := errors.Join(err, set); err != nil {
		t.Fatal(err)
	}
	const bytes = 2_000_000
	wrote := make(chan error, 1)
	go func() {
		_, err := out.Write(make([]byte, bytes))
		wrote <- err
	}()
	if err := in.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, in, bytes); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	info, err := testnet.TCPInfo(in)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d segments with data in, %d segments out", info.Data_segs_in, info.Segs_out)
	return float64(info.Segs_out) / float64(info.Data_segs_in)
}
