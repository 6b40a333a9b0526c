//go:build e2e

package meshes

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet/dsr"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// pair is two nodes joined by a veth pair: no radio, so that what the daemons
// cost is what bounds the speed.
func pair(t *testing.T) *field {
	t.Helper()
	testnet.Need(t, "iperf3")
	f := &field{dir: testnet.Folder(t), wired: true}
	f.spaces = []*testnet.NS{testnet.NewNS(t, "mesh"), testnet.NewNS(t, "mesh")}
	testnet.Veth(t, f.spaces[0], "wlan0", address(0)+"/24", f.spaces[1], "wlan0", address(1)+"/24")
	return f
}

// TestBenchDSRDataPlane prints what TCP gets through DSR's daemons, one hop,
// against a bare loop that copies packets between a TUN and a packet socket, in
// turns. The goal is 0.9. Beside other work the shares of the processors decide
// the throughput, and the loop has two threads that work; so the processor time
// of a byte is told too.
func TestBenchDSRDataPlane(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	bare, ours := pair(t), pair(t)
	for i := range bare.spaces {
		startLoop(t, bare, i)
	}
	ours.route(t, "dsr")
	self, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	loops, daemons := bare.processes(t, strings.TrimSpace(string(self))), ours.processes(t, "fieldmesh-agent")
	const rounds, seconds = 7, 4
	var speeds, costs []float64
	for range rounds {
		reference, cost := bare.measure(t, seconds, loops)
		own, ownCost := ours.measure(t, seconds, daemons)
		speeds, costs = append(speeds, own/reference), append(costs, ownCost/cost)
		t.Logf("DSR %.0f Mbit/s at %.2f ns of processor a byte; bare loop %.0f Mbit/s at %.2f ns", own/1e6, ownCost,
			reference/1e6, cost)
	}
	slices.Sort(speeds)
	slices.Sort(costs)
	fmt.Printf("DSR's data plane against a bare copy loop: %.2f of its throughput (goal: 0.9), %.2f of its processor "+
		"time a byte; medians of %d pairs\n",
		speeds[rounds/2], costs[rounds/2], rounds)
}

// processes are those of a name in both nodes.
func (f *field) processes(t *testing.T, name string) (out []int) {
	t.Helper()
	for _, ns := range f.spaces {
		found := ns.Processes(t, name)
		if len(found) != 1 {
			t.Fatalf("%d processes %q in %s", len(found), name, ns.Name)
		}
		out = append(out, found...)
	}
	return out
}

// measure gives a flow's bits a second, and the nanoseconds of a processor that
// processes took for each of its bytes.
func (f *field) measure(t *testing.T, seconds int, pids []int) (bps, nsPerByte float64) {
	t.Helper()
	before := testnet.ProcessorTime(t, pids...)
	r := f.iperf(t, 0, 1, seconds).End.Received
	took := testnet.ProcessorTime(t, pids...) - before
	return r.Bps, float64(took) / (r.Bps / 8 * float64(seconds))
}

// etherTypeTest is for local experiments: IEEE 802, the first of two.
const etherTypeTest = 0x88b5

// bareLoop, in the environment, has the test's own program be the bare loop of a
// node: a process for each, as the daemons are.
const bareLoop = "FIELDMESH_BARE_LOOP"

// startLoop leads a namespace's packets from a TUN through a packet socket to
// the other node, and back, and does nothing else with them.
func startLoop(t *testing.T, f *field, node int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mac := ""
	f.spaces[1-node].Do(t, func() error {
		link, err := netlink.LinkByName("wlan0")
		if err == nil {
			mac = link.Attrs().HardwareAddr.String()
		}
		return err
	})
	cmd := f.spaces[node].Command(context.Background(), self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", bareLoop, node, mac))
	testnet.Start(t, cmd).Says(t, "ready")
}

// runLoop is that process: it ends with a signal.
func runLoop(orders string) error {
	var node int
	var text string
	if _, err := fmt.Sscan(orders, &node, &text); err != nil {
		return err
	}
	mac, err := net.ParseMAC(text)
	if err != nil {
		return err
	}
	tun, link, index, err := openLoop(node)
	if err != nil {
		return err
	}
	peer := &unix.SockaddrLinklayer{Protocol: etherTypeTest>>8 | etherTypeTest&0xff<<8, Ifindex: index, Halen: 6}
	copy(peer.Addr[:], mac)
	done := make(chan error, 2)
	go func() { done <- copyOut(tun, link, peer) }()
	go func() { done <- copyIn(tun, link) }()
	fmt.Println("ready")
	return <-done
}

// openLoop makes the TUN, into which all goes that is for the other node, and
// the socket.
func openLoop(node int) (tun, link *os.File, index int, err error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, 0, err
	}
	req, err := unix.NewIfreq("bare")
	if err != nil {
		return nil, nil, 0, err
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return nil, nil, 0, err
	}
	device, err := netlink.LinkByName("bare")
	if err != nil {
		return nil, nil, 0, err
	}
	to := &net.IPNet{IP: net.ParseIP(address(1 - node)), Mask: net.CIDRMask(32, 32)}
	err = errors.Join(netlink.LinkSetMTU(device, 1500-dsr.Room(dsr.MaxHops)), netlink.LinkSetUp(device),
		netlink.RouteAdd(&netlink.Route{LinkIndex: device.Attrs().Index, Dst: to, Src: net.ParseIP(address(node)),
			Scope: netlink.SCOPE_LINK}))
	if err != nil {
		return nil, nil, 0, err
	}
	wlan, err := netlink.LinkByName("wlan0")
	if err != nil {
		return nil, nil, 0, err
	}
	protocol := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, etherTypeTest))
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(protocol))
	if err != nil {
		return nil, nil, 0, err
	}
	err = errors.Join(unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<20), // as the daemon's
		unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: wlan.Attrs().Index}))
	return os.NewFile(uintptr(fd), "tun"), os.NewFile(uintptr(socket), "link"), wlan.Attrs().Index, err
}

func copyOut(tun, link *os.File, peer *unix.SockaddrLinklayer) error {
	raw, err := link.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := tun.Read(buf)
		if err != nil {
			return err
		}
		var sending error
		if err := raw.Control(func(fd uintptr) {
			sending = unix.Sendto(int(fd), buf[:n], unix.MSG_DONTWAIT, peer)
		}); err != nil {
			return err
		}
		if sending != nil && !errors.Is(sending, unix.ENOBUFS) && !errors.Is(sending, unix.EAGAIN) {
			return sending
		}
	}
}

func copyIn(tun, link *os.File) error {
	raw, err := link.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<16)
	for {
		var n int
		var receiving error
		err := raw.Read(func(fd uintptr) bool {
			n, _, receiving = unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
			return !errors.Is(receiving, unix.EAGAIN)
		})
		if err := errors.Join(err, receiving); err != nil {
			return err
		}
		if _, err := tun.Write(buf[:n]); err != nil {
			return err
		}
	}
}
