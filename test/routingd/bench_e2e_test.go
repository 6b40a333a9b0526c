//go:build e2e

package routingd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// babeld starts babeld in a node with hellos at an interval; it needs a
// link-local address and a kernel that forwards.
func babeld(t *testing.T, node *testnet.NS, hello time.Duration) *testnet.Running {
	t.Helper()
	dir := testnet.Folder(t)
	for _, set := range []string{"net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0",
		"net.ipv4.conf.wlan0.rp_filter=0", "net.ipv6.conf.wlan0.accept_dad=0"} {
		node.Run(t, "sysctl", "-qw", set)
	}
	node.Run(t, "ip", "link", "set", "wlan0", "addrgenmode", "eui64")
	node.Run(t, "ip", "link", "set", "wlan0", "down")
	node.Run(t, "ip", "link", "set", "wlan0", "up")
	config := filepath.Join(dir, "babeld.conf")
	text := fmt.Sprintf("skip-kernel-setup true\nrandom-id true\nstate-file %q\ninterface wlan0 type wireless "+
		"hello-interval %.2f\n"+
		"redistribute local ip 10.77.0.0/24 allow\nredistribute local deny\n", filepath.Join(dir, "state"),
		hello.Seconds())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, node, "babeld", "-I", "", "-c", config)
}

func needBench(t *testing.T) {
	t.Helper()
	testnet.NeedSet(t, "FIELDMESH_BENCH", "a benchmark")
	testnet.Need(t, "babeld", "iperf3")
}

// benchHello is the interval of hellos of every daemon here.
const benchHello = time.Second

// daemonsOf starts a protocol's daemons in all nodes.
func (a *air) daemonsOf(t *testing.T, protocol string) []*daemon {
	t.Helper()
	switch protocol {
	case "babeld":
	case "dsr": // has no hellos
		return a.everywhere(t, protocol)
	default:
		return a.everywhere(t, protocol, "--hello", benchHello.String())
	}
	var out []*daemon
	for _, n := range a.nodes {
		out = append(out, &daemon{Running: babeld(t, n, benchHello)})
	}
	return out
}

// TestBenchDaemonsAtRestAndForwarding prints what daemons take of a processor
// and of memory beside babeld's: all chains of three rest side by side in the
// same minute, and then one after the other carries 25 Mbit/s. The goal at rest
// is no more than babeld's; the kernel forwards for all of them.
func TestBenchDaemonsAtRestAndForwarding(t *testing.T) {
	needBench(t)
	protocols := []string{"babeld", "olsr", "aodv", "aomdv", "dsdv", "adv"}
	const relay, rest = 1, time.Minute
	chains, pids := map[string]*air{}, map[string][]int{}
	for _, protocol := range protocols {
		a := newAir(t, 3, chain(3)...)
		for _, d := range a.daemonsOf(t, protocol) {
			pids[protocol] = append(pids[protocol], d.Cmd.Process.Pid)
		}
		chains[protocol] = a
	}
	time.Sleep(20 * time.Second) // until all have reported all
	began, all, one := time.Now(), map[string]time.Duration{}, map[string]time.Duration{}
	for _, p := range protocols {
		all[p], one[p] = testnet.ProcessorTime(t, pids[p]...), testnet.ProcessorTime(t, pids[p][relay])
	}
	time.Sleep(rest)
	took := time.Since(began)
	for _, p := range protocols {
		all[p] = (testnet.ProcessorTime(t, pids[p]...) - all[p]) / 3
		one[p] = testnet.ProcessorTime(t, pids[p][relay]) - one[p]
	}
	share := func(d, over time.Duration) float64 { return 100 * float64(d) / float64(over) }
	for _, p := range protocols {
		resident, private := testnet.Memory(t, pids[p][relay])
		busy, over := chains[p].underLoad(t, pids[p][relay])
		fmt.Printf("%-6s at rest %.4f %% of a processor a node (%.2f of babeld's), its relay %.4f %% (%.2f), hellos "+
			"every %v; relaying 25 Mbit/s %.3f %%; %.1f MB resident, %.1f its own\n",
			p, share(all[p], took), float64(all[p])/float64(all["babeld"]), share(one[p], took),
			float64(one[p])/float64(one["babeld"]), benchHello,
			share(busy, over), resident, private)
	}
}

// underLoad has the chain carry 25 Mbit/s for a while, and says what a process
// took meanwhile.
func (a *air) underLoad(t *testing.T, pid int) (busy, over time.Duration) {
	t.Helper()
	a.iperf(t, 0, 2) // by now there are routes
	start(t, a.nodes[2], "iperf3", "-s", "-1", "-B", addr(2))
	var flow *testnet.Running
	testnet.Await(t, patience, "a flow has begun", func() bool {
		flow = start(t, a.nodes[0], "iperf3", "-c", addr(2), "-u", "-b", "25M", "-t", "14")
		time.Sleep(2 * time.Second)
		return !flow.Over() // when the server was not there yet
	})
	before, began := testnet.ProcessorTime(t, pid), time.Now()
	time.Sleep(10 * time.Second)
	busy, over = testnet.ProcessorTime(t, pid)-before, time.Since(began)
	_ = flow.Wait(t, time.Minute) // what it carried is not looked at
	return busy, over
}

// detours is how often each protocol finds one.
const detours = 5

// TestBenchTimeToTheDetour prints how long after a link is cut the kernel's
// route leads the other path, and an echo comes back, at equal intervals of
// hellos and with data all the while.
func TestBenchTimeToTheDetour(t *testing.T) {
	needBench(t)
	for _, protocol := range []string{"babeld", "olsr", "olsr-etx", "aodv", "aomdv", "dsdv", "adv", "dsr"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			var a *air
			var to string
			var routes, answers []time.Duration
			for range detours {
				if a == nil || protocol == "dsr" { // which continues by the detour that it has found
					// 0 - 1 - 2, and 0 - 3 - 4 - 2 around it.
					a = newAir(t, 5, [2]int{0, 1}, [2]int{1, 2}, [2]int{0, 3}, [2]int{3, 4}, [2]int{4, 2})
					a.daemonsOf(t, protocol)
					to = echo(t, a.nodes[2], addr(2))
				}
				route, answer := a.detour(t, to, protocol != "dsr") // whose routes are not the kernel's
				routes, answers = append(routes, route), append(answers, answer)
				a.set(t, "add", 1, 2)
				time.Sleep(12 * time.Second) // without data, so that the detour is forgotten
			}
			slices.Sort(routes)
			slices.Sort(answers)
			said := fmt.Sprintf("%-8s cut to echo %s", protocol, spread(answers))
			if routes[0] > 0 {
				said += ", to the kernel's route " + spread(routes)
			}
			fmt.Printf("%s; hellos every %v, %d cuts\n", said, benchHello, detours)
		})
	}
}

func spread(d []time.Duration) string {
	return fmt.Sprintf("%.1f s (%.1f to %.1f)", d[len(d)/2].Seconds(), d[0].Seconds(), d[len(d)-1].Seconds())
}

// detour cuts the short way while data goes along it, and times the other.
func (a *air) detour(t *testing.T, to string, kernel bool) (route, answer time.Duration) {
	t.Helper()
	through := func(relay int) bool { return !kernel || hasRoute(t, a.nodes[0], addr(2), "via "+addr(relay)) }
	testnet.Await(t, patience, "the short way is found", func() bool {
		return ask(t, a.nodes[0], to, 1, 200*time.Millisecond) == 1 && through(1)
	})
	for until := time.Now().Add(8 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		ask(t, a.nodes[0], to, 1, 100*time.Millisecond)
	}
	a.cut(t, 1, 2)
	cut := time.Now()
	testnet.Await(t, patience, "the detour is found", func() bool {
		if kernel && route == 0 && through(3) {
			route = time.Since(cut)
		}
		if ask(t, a.nodes[0], to, 1, 50*time.Millisecond) == 1 && answer == 0 {
			answer = time.Since(cut)
		}
		return answer > 0 && (!kernel || route > 0)
	})
	return route, answer
}
