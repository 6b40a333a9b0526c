//go:build e2e

package drops

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
	"github.com/cilium/ebpf"
)

// watched is a watch over one namespace, and what it told so far.
type watched struct {
	*Watch
	*Counter
	mu   sync.Mutex
	told []Drop
}

func watch(t *testing.T, ns *testnet.NS) *watched {
	t.Helper()
	w := &watched{}
	ns.Do(t, func() (err error) { w.Counter, err = OpenCounter(); return err })
	var err error
	if w.Watch, err = NewWatch(); errors.Is(err, ebpf.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add(w.Netns()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- w.Run(ctx, func(d Drop) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told = append(w.told, d)
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, w.Watch.Close(), w.Counter.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// of is what was told for a reason, and the kernel's count of it.
func (w *watched) of(t *testing.T, why Reason) (told []Drop, count uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := w.Settled(ctx); err != nil {
		t.Fatal(err)
	}
	count, err := w.Count(w.Netns(), why)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.told {
		if d.Reason == why {
			told = append(told, d)
		}
	}
	return told, count
}

func (w *watched) noRoutes(t *testing.T) uint64 {
	t.Helper()
	n, err := w.NoRoute()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// trio is three nodes in a row, the second forwarding.
func trio(t *testing.T) (a, b, c *testnet.NS) {
	t.Helper()
	testnet.Need(t, "ip")
	a, b, c = testnet.NewNS(t, "a"), testnet.NewNS(t, "b"), testnet.NewNS(t, "c")
	testnet.Veth(t, a, "e0", "10.9.1.1/24", b, "e0", "10.9.1.2/24")
	testnet.Veth(t, b, "e1", "10.9.2.2/24", c, "e0", "10.9.2.3/24")
	a.Run(t, "ip", "route", "add", "10.9.0.0/16", "via", "10.9.1.2")
	c.Run(t, "ip", "route", "add", "10.9.0.0/16", "via", "10.9.2.2")
	set(t, b, "ip_forward", "1")
	return a, b, c
}

func set(t *testing.T, ns *testnet.NS, sysctl, value string) {
	t.Helper()
	ns.Do(t, func() error { return os.WriteFile("/proc/sys/net/ipv4/"+sysctl, []byte(value), 0) })
}

// Without a route there is never a packet of a datagram's own sender: only the
// counter knows.
func TestADatagramWithoutRouteIsCountedOnly(t *testing.T) {
	a, _, _ := trio(t)
	w := watch(t, a)
	before := w.noRoutes(t)
	a.Do(t, func() error {
		for range 3 {
			if _, err := net.Dial("udp4", "192.0.2.1:9"); !errors.Is(err, syscall.ENETUNREACH) {
				t.Errorf("a datagram to nowhere: %v", err)
			}
		}
		return nil
	})
	if got := w.noRoutes(t) - before; got != 3 {
		t.Errorf("%d counted, want 3", got)
	}
	if told, count := w.of(t, NoRoute); len(told) != 0 || count != 0 {
		t.Errorf("packets that never were are told: %v, %d", told, count)
	}
}

// send sends datagrams to an address, numbered in their first byte.
func send(t *testing.T, from *testnet.NS, to string, n int) {
	t.Helper()
	var conn net.Conn
	from.Do(t, func() (err error) { conn, err = net.Dial("udp4", to); return err })
	defer conn.Close()
	for i := range n {
		// ICMP's answer to an earlier one may come as an error; the datagram
		// that it came at is sent all the same, with the next write.
		if _, err := conn.Write([]byte{byte(i)}); err != nil {
			if _, err := conn.Write([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestARelayWithoutRouteIsTold(t *testing.T) {
	a, b, _ := trio(t)
	w := watch(t, b)
	before := w.noRoutes(t)
	send(t, a, "10.9.77.1:4242", 5)
	// A veth pair hands packets over at once, in the sender's own call.
	told, count := w.of(t, NoRoute)
	if len(told) != 5 || count != 5 || w.noRoutes(t)-before != 5 {
		t.Fatalf("%d told, %d counted by the program, %d by the kernel, want 5", len(told), count, w.noRoutes(t)-before)
	}
	for i, d := range told {
		p := d.Packet
		if d.Netns != w.Netns() || p[0] != 0x45 || p[9] != syscall.IPPROTO_UDP || [4]byte(p[12:]) !=
			[4]byte{10, 9, 1, 1} ||
			[4]byte(p[16:]) != [4]byte{10, 9, 77, 1} || binary.BigEndian.Uint16(p[22:]) != 4242 || p[28] != byte(i) {
			t.Errorf("drop %d: %+v", i, d)
		}
		if i > 0 && d.Boot <= told[i-1].Boot {
			t.Errorf("drop %d is dated %v, the one before %v", i, d.Boot, told[i-1].Boot)
		}
	}
}

// The kernel's counters know nothing of these.
func TestARelayWhoseRouteSaysUnreachableIsTold(t *testing.T) {
	a, b, _ := trio(t)
	w := watch(t, b)
	before := w.noRoutes(t)
	b.Run(t, "ip", "route", "add", "unreachable", "10.9.77.0/24")
	send(t, a, "10.9.77.1:4242", 3)
	told, count := w.of(t, Unreachable)
	if len(told) != 3 || count != 3 || w.noRoutes(t) != before {
		t.Fatalf("%d told, %d counted by the program, %d by the kernel, want 3, 3 and none", len(told), count,
			w.noRoutes(t)-before)
	}
	if p := told[2].Packet; [4]byte(p[16:]) != [4]byte{10, 9, 77, 1} || p[28] != 2 {
		t.Errorf("packet % x", p)
	}
}

func TestAConnectionWithoutRouteIsTold(t *testing.T) {
	a, _, c := trio(t)
	w := watch(t, a)
	var server net.Listener
	var conn net.Conn
	c.Do(t, func() (err error) { server, err = net.Listen("tcp4", "10.9.2.3:0"); return err })
	defer server.Close()
	a.Do(t, func() (err error) { conn, err = net.Dial("tcp4", server.Addr().String()); return err })
	defer conn.Close()
	a.Run(t, "ip", "route", "del", "10.9.0.0/16")
	if _, err := conn.Write([]byte("lost")); err != nil {
		t.Fatal(err)
	}
	port := conn.LocalAddr().(*net.TCPAddr).Port
	told, count := w.of(t, NoRoute)
	if len(told) == 0 || int(count) < len(told) {
		t.Fatalf("%d told, %d counted, want the segment", len(told), count)
	}
	p := told[0].Packet
	if p[9] != syscall.IPPROTO_TCP || [4]byte(p[12:]) != [4]byte{10, 9, 1, 1} || [4]byte(p[16:]) !=
		[4]byte{10, 9, 2, 3} ||
		binary.BigEndian.Uint16(p[2:]) != uint16(20+4*int(p[32]>>4)+len("lost")) ||
		int(binary.BigEndian.Uint16(p[20:])) != port || binary.BigEndian.Uint32(p[24:]) == 0 {
		t.Errorf("packet % x, from port %d", p, port)
	}
}

func TestASilentNeighbourIsTold(t *testing.T) {
	a, b, _ := trio(t)
	w := watch(t, a)
	other := watch(t, b) // of whose namespace nothing is told
	set(t, a, "neigh/e0/retrans_time_ms", "50")
	send(t, a, "10.9.1.99:4242", 2)
	var told []Drop
	var count uint64
	for deadline := time.Now().Add(20 * time.Second); len(told) < 2 &&
		time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		told, count = w.of(t, NoNeighbour)
	}
	if len(told) != 2 || count != 2 {
		t.Fatalf("%d told, %d counted, want 2", len(told), count)
	}
	if p := told[1].Packet; [4]byte(p[16:]) != [4]byte{10, 9, 1, 99} || p[28] != 1 {
		t.Errorf("packet % x", p)
	}
	if told, count := other.of(t, NoNeighbour); len(told)+int(count) != 0 {
		t.Errorf("another namespace is reported: %v, %d", told, count)
	}
}
