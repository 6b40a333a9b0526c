//go:build e2e

package routingd

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// echo answers datagrams at a node until the test ends.
func echo(t *testing.T, node *testnet.NS, host string) string {
	t.Helper()
	var c net.PacketConn
	node.Do(t, func() (err error) {
		c, err = net.ListenPacket("udp4", host+":0")
		return err
	})
	testnet.Echo(t, c)
	return c.LocalAddr().String()
}

// ask sends datagrams to an echo, one after the other, and waits for each's
// answer; it tells how many came.
func ask(t *testing.T, node *testnet.NS, to string, datagrams int, wait time.Duration) (answers int) {
	t.Helper()
	var c net.Conn
	node.Do(t, func() (err error) {
		c, err = net.Dial("udp4", to)
		return err
	})
	defer func() { _ = c.Close() }()
	for i := range datagrams {
		if _, err := fmt.Fprint(c, i); err != nil {
			continue // refused: there is no way now
		}
		_ = c.SetReadDeadline(time.Now().Add(wait))
		b := make([]byte, 100)
		for {
			n, err := c.Read(b)
			if err != nil {
				break
			}
			if string(b[:n]) == fmt.Sprint(i) {
				answers++
				break
			}
		}
	}
	return answers
}

// iperf carries one TCP flow between two nodes and fails where it does not
// come through. It returns iperf3's line of what was received.
func (a *air) iperf(t *testing.T, from, to int) string {
	t.Helper()
	start(t, a.nodes[to], "iperf3", "-s", "-1", "-B", addr(to))
	var out string
	testnet.Await(t, patience, fmt.Sprintf("TCP gets from node %d to node %d", from, to), func() bool {
		text, err := a.nodes[from].Command(t.Context(), "iperf3", "-c", addr(to), "-t", "1", "-b", "2M",
			"--connect-timeout", "5000").CombinedOutput()
		out = string(text)
		return err == nil
	})
	for line := range strings.Lines(out) {
		if strings.HasSuffix(strings.TrimSpace(line), "receiver") {
			return strings.TrimSpace(line)
		}
	}
	t.Errorf("iperf3 said:\n%s", out)
	return ""
}

func TestOneDatagramIsEnough(t *testing.T) {
	a := newAir(t, 4, chain(4)...)
	daemons := a.everywhere(t, "aodv")
	to := echo(t, a.nodes[3], addr(3))
	if ask(t, a.nodes[0], to, 1, patience) != 1 {
		t.Error("the first datagram of a flow was lost to discovery")
	}
	s, err := daemons[0].state()
	if err != nil {
		t.Fatal(err)
	}
	if s.Runner.Caught != 1 || s.Runner.Released != 1 || s.HeldPackets != 0 || s.Runner.Messages["RREQ"] == 0 ||
		s.Runner.Errors["inject"] != 0 {
		t.Errorf("the daemon says %+v", s.Runner)
	}
	if !hasRoute(t, a.nodes[0], addr(3), "via "+addr(1), "proto 109") || !hasRoute(t, a.nodes[0], addr(1), "proto 109",
		"scope link") {
		t.Errorf("routes:\n%s", a.nodes[0].Run(t, "ip", "route"))
	}
}

// A node is known by its address in the mesh, though its interface had another one before, as of DHCP.
func TestTheMeshsAddressIsTheNodes(t *testing.T) {
	a := newAir(t, 2, chain(2)...)
	for i, n := range a.nodes {
		n.Run(t, "ip", "addr", "flush", "dev", "wlan0")
		n.Run(t, "ip", "addr", "add", fmt.Sprintf("192.168.9.%d/24", i+1), "dev", "wlan0")
		n.Run(t, "ip", "addr", "add", addr(i)+"/24", "dev", "wlan0")
	}
	for i, d := range a.everywhere(t, "aodv", "--network", "10.77.0.0/24") {
		if s, err := d.state(); err != nil || s.Address != addr(i) {
			t.Errorf("node %d calls itself %q, %v", i, s.Address, err)
		}
	}
	if ask(t, a.nodes[0], echo(t, a.nodes[1], addr(1)), 1, patience) != 1 {
		t.Error("nothing came through")
	}
}

// A flow keeps its route for longer than a route lives without use.
func TestARouteInUseStays(t *testing.T) {
	a := newAir(t, 3, chain(3)...)
	daemons := a.everywhere(t, "aodv")
	to := echo(t, a.nodes[2], addr(2))
	if n := ask(t, a.nodes[0], to, 70, 100*time.Millisecond); n == 0 {
		t.Error("nothing came through")
	}
	until := time.Now().Add(7 * time.Second) // twice the active route timeout and more
	for time.Now().Before(until) {
		ask(t, a.nodes[0], to, 1, time.Second)
		time.Sleep(50 * time.Millisecond)
	}
	for i, d := range daemons {
		s, err := d.state()
		if err != nil {
			t.Fatal(err)
		}
		if !s.RouteInUse || s.Runner.Messages["RREQ"] > 1 {
			t.Errorf("node %d looked for a route again that was in use: %+v", i, s.Runner.Messages)
		}
	}
}

// asItWas compares a node with a snapshot, once what ran in it has ended. There
// is nothing to wait for: a TUN device leaves with its last descriptor, with its
// routes and settings, and a table of nftables with the socket that owns it, both
// before the process can be waited for.
func asItWas(t *testing.T, node *testnet.NS, before string) {
	t.Helper()
	after := testnet.Snapshot(t, node.Name)
	if after == before {
		return
	}
	t.Errorf("%s is not as it was:\n%s", node.Name, testnet.Diff(before, after))
}

func TestDaemonsCarryTCPAndLeaveNothing(t *testing.T) {
	testnet.Need(t, "iperf3")
	for _, protocol := range []string{"olsr", "aodv"} {
		t.Run(protocol, func(t *testing.T) {
			a := newAir(t, 3, chain(3)...)
			var before []string
			for _, n := range a.nodes {
				before = append(before, testnet.Snapshot(t, n.Name))
			}
			daemons := a.everywhere(t, protocol)
			a.iperf(t, 0, 2)
			a.nodes[1].Run(t, "ip", "link", "set", "wlan0", "down")
			testnet.Await(t, patience, "the relay has lost its neighbours", func() bool {
				return !hasRoute(t, a.nodes[1], addr(0), "proto 109")
			})
			a.nodes[1].Run(t, "ip", "link", "set", "wlan0", "up")
			a.iperf(t, 0, 2)
			for i, d := range daemons {
				d.Stop(t, syscall.SIGTERM)
				asItWas(t, a.nodes[i], before[i])
			}
		})
	}
}

// A daemon that is killed leaves routes and settings; the next one's end
// leaves the kernel as it was before the first.
func TestTheNextOneCleansUp(t *testing.T) {
	a := newAir(t, 2, chain(2)...)
	node := a.nodes[0]
	before := testnet.Snapshot(t, node.Name)
	state := filepath.Join(testnet.Folder(t), "state")
	route(t, a.nodes[1], "olsr")
	killed := route(t, node, "olsr", "--state-dir", state)
	testnet.Await(t, patience, "the neighbour has a route", func() bool {
		return hasRoute(t, node, addr(1), "proto 109")
	})
	killed.Stop(t, syscall.SIGKILL)
	if !hasRoute(t, node, addr(1), "proto 109") || testnet.Snapshot(t, node.Name) == before {
		t.Fatal("a killed daemon left nothing: this test shows nothing")
	}
	if text := node.Run(t, "nft", "list", "ruleset"); strings.Contains(text, "fieldmesh") {
		t.Errorf("a killed daemon left its table:\n%s", text)
	}
	route(t, node, "olsr", "--state-dir", state).Stop(t, syscall.SIGTERM)
	asItWas(t, node, before)
}

func TestWhatCannotBeDoneIsSaid(t *testing.T) {
	a := newAir(t, 2, chain(2)...)
	node := a.nodes[0]
	node.Run(t, "ip", "link", "add", "bare0", "type", "bridge")
	before := testnet.Snapshot(t, node.Name)
	refused := func(name string, want string, args ...string) {
		t.Helper()
		out, err := node.Command(t.Context(), filepath.Join(programs, "fieldmesh-agent"),
			append([]string{"route", "--state-dir", filepath.Join(testnet.Folder(t), "state")}, args...)...).
			CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, said %q, want %q in it", name, err, out, want)
		}
	}
	refused("no such interface", `wlan9`, "--protocol", "aodv", "--interface", "wlan9")
	refused("no address", "has no IPv4 address", "--protocol", "aodv", "--interface", "bare0")
	refused("no such protocol", `no routing protocol "rip"`, "--protocol", "rip")
	refused("no protocol", "name a --protocol", "--interface", "wlan0")
	running := route(t, node, "aodv")
	refused("a second daemon", "another agent changes this network namespace", "--protocol", "olsr")
	running.Stop(t, syscall.SIGTERM)
	asItWas(t, node, before)
	// A reverse-path filter that the system forces on is a change that is undone.
	for _, d := range []string{"all", "wlan0"} {
		node.Run(t, "sysctl", "-w", "net.ipv4.conf."+d+".rp_filter=1")
	}
	before = testnet.Snapshot(t, node.Name)
	running = route(t, node, "aodv")
	if !strings.Contains(running.Said(), "net.ipv4.conf.all.rp_filter=0") {
		t.Errorf("the change is not told:\n%s", running.Said())
	}
	running.Stop(t, syscall.SIGTERM)
	asItWas(t, node, before)
}

// Who may not change a route cannot keep a daemon from its work.
//
//attack:local another user's program that looks like a routing daemon, or takes the name of its lock
func TestAnotherUserKeepsNoDaemonOff(t *testing.T) {
	a := newAir(t, 2, chain(2)...)
	node := a.nodes[0]
	for name, listens := range map[string]bool{"a socket": true, "a name": false} {
		fd := asSomebody(t, node, func() (int, error) {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@fieldmesh-route-wlan0"})
			}
			if err == nil && listens {
				err = unix.Listen(fd, 1)
			}
			return fd, err
		})
		t.Run(name, func(t *testing.T) { route(t, node, "aodv").Stop(t, syscall.SIGTERM) })
		if err := unix.Close(fd); err != nil {
			t.Fatal(err)
		}
	}
}

// asSomebody calls do as an unprivileged user in a node.
func asSomebody(t *testing.T, node *testnet.NS, do func() (int, error)) (fd int) {
	t.Helper()
	node.Do(t, func() (err error) {
		// Of this thread alone, unlike syscall.Setreuid; root again when it is over.
		set := func(uid uintptr) error {
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uid, ^uintptr(0)); errno != 0 {
				return errno
			}
			return nil
		}
		if err := set(testnet.Nobody); err != nil {
			return err
		}
		fd, err = do()
		return errors.Join(err, set(0))
	})
	return fd
}

// A node between two that hear each other no more, and a longer path round.
func TestADetourIsFound(t *testing.T) {
	for _, protocol := range []string{"olsr", "aodv"} {
		t.Run(protocol, func(t *testing.T) {
			// 0 - 1 - 2, and 0 - 3 - 4 - 2 around it.
			a := newAir(t, 5, [2]int{0, 1}, [2]int{1, 2}, [2]int{0, 3}, [2]int{3, 4}, [2]int{4, 2})
			a.everywhere(t, protocol, "--hello", "500ms")
			to := echo(t, a.nodes[2], addr(2))
			testnet.Await(t, patience, "the short way is found", func() bool {
				return ask(t, a.nodes[0], to, 1, 500*time.Millisecond) == 1 && hasRoute(t, a.nodes[0], addr(2),
					"via "+addr(1))
			})
			a.cut(t, 1, 2)
			cut := time.Now()
			testnet.Await(t, patience, "the detour is found", func() bool {
				return ask(t, a.nodes[0], to, 1, 200*time.Millisecond) == 1 && hasRoute(t, a.nodes[0], addr(2),
					"via "+addr(3))
			})
			t.Logf("%s took the detour after %s", protocol, time.Since(cut).Round(10*time.Millisecond))
		})
	}
}
