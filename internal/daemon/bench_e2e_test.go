//go:build e2e

package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/testnet"
)

// babeld starts babeld in a node with hellos at an interval; it needs a
// link-local address and a kernel that forwards.
func babeld(t *testing.T, node *testnet.NS, hello time.Duration) *daemon {
	t.Helper()
	dir := testnet.Folder(t)
	for _, set := range []string{"net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.wlan0.rp_filter=0", "net.ipv6.conf.wlan0.accept_dad=0"} {
		node.Run(t, "sysctl", "-qw", set)
	}
	node.Run(t, "ip", "link", "set", "wlan0", "addrgenmode", "eui64")
	node.Run(t, "ip", "link", "set", "wlan0", "down")
	node.Run(t, "ip", "link", "set", "wlan0", "up")
	config := filepath.Join(dir, "babeld.conf")
	text := fmt.Sprintf("skip-kernel-setup true\nrandom-id true\nstate-file %q\ninterface wlan0 type wireless hello-interval %.2f\n"+
		"redistribute local ip 10.77.0.0/24 allow\nredistribute local deny\n", filepath.Join(dir, "state"), hello.Seconds())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, node, "babeld", "-I", "", "-c", config)
}

// cpu is the time that a process has had of a processor: the first number of
// each thread's schedstat, in nanoseconds.
func (d *daemon) cpu(t *testing.T) time.Duration {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", d.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("no threads of %v: %v", d.cmd.Args, err)
	}
	var sum time.Duration
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // a thread that has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// memoryMB is the process's resident memory.
func (d *daemon) memoryMB(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	kb, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb / 1e3
}

func needBench(t *testing.T) {
	t.Helper()
	if os.Getenv("FIELDMESH_BENCH") == "" {
		t.Skip("a benchmark: runs with FIELDMESH_BENCH set")
	}
	testnet.Need(t, "babeld", "iperf3")
}

// benchHello is the interval of hellos of every daemon here.
const benchHello = time.Second

// daemonsOf starts a protocol's daemons in all nodes.
func (a *air) daemonsOf(t *testing.T, protocol string) []*daemon {
	t.Helper()
	if protocol != "babeld" {
		return a.everywhere(t, protocol, "--hello", benchHello.String())
	}
	var out []*daemon
	for _, n := range a.nodes {
		out = append(out, babeld(t, n, benchHello))
	}
	return out
}

// TestBenchDaemonsAtRestAndForwarding prints what a relay's daemon takes of a
// processor and of memory, beside babeld's in the same minutes. The goal at
// rest is no more than babeld's; the kernel forwards for all of them.
func TestBenchDaemonsAtRestAndForwarding(t *testing.T) {
	needBench(t)
	type cost struct{ rest, loaded, memory float64 }
	costs := map[string]cost{}
	protocols := []string{"babeld", "olsr", "aodv", "aomdv", "dsdv", "adv"}
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			a := newAir(t, 3, chain(3)...)
			relay := a.daemonsOf(t, protocol)[1]
			a.iperf(t, 0, 2)
			share := func(over time.Duration) float64 {
				before, began := relay.cpu(t), time.Now()
				time.Sleep(over)
				return float64(relay.cpu(t)-before) / float64(time.Since(began))
			}
			time.Sleep(8 * time.Second) // what the flow left behind runs out
			c := cost{rest: share(15 * time.Second)}
			start(t, a.nodes[2], "iperf3", "-s", "-1", "-B", addr(2))
			time.Sleep(time.Second)
			flow := start(t, a.nodes[0], "iperf3", "-c", addr(2), "-u", "-b", "25M", "-t", "12")
			time.Sleep(time.Second)
			c.loaded, c.memory = share(8*time.Second), relay.memoryMB(t)
			flow.ended <- <-flow.ended
			costs[protocol] = c
		})
	}
	for _, protocol := range protocols {
		c, b := costs[protocol], costs["babeld"]
		fmt.Printf("%-8s at rest %.4f %% of a processor (%.2f of babeld's), at 25 Mbit/s %.3f %%, memory %.1f MB\n",
			protocol, 100*c.rest, c.rest/b.rest, 100*c.loaded, c.memory)
	}
}

// TestBenchTimeToTheDetour prints how long after a link is cut the kernel's
// route leads the other way, at equal intervals of hellos.
func TestBenchTimeToTheDetour(t *testing.T) {
	needBench(t)
	for _, protocol := range []string{"babeld", "olsr", "olsr-etx", "aodv", "aomdv", "dsdv", "adv"} {
		t.Run(protocol, func(t *testing.T) {
			a := newAir(t, 5, [2]int{0, 1}, [2]int{1, 2}, [2]int{0, 3}, [2]int{3, 4}, [2]int{4, 2})
			a.daemonsOf(t, protocol)
			to := echo(t, a.nodes[2], addr(2))
			eventually(t, "the short way is found", func() bool {
				return ask(t, a.nodes[0], to, 1, 200*time.Millisecond) == 1 && hasRoute(t, a.nodes[0], addr(2), "via "+addr(1))
			})
			// Until all have told of all; with data all the while, or there would be
			// no route to lose where routes are made on demand.
			for until := time.Now().Add(15 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
				ask(t, a.nodes[0], to, 1, 100*time.Millisecond)
			}
			a.cut(t, 1, 2)
			cut := time.Now()
			var route, answer time.Duration
			eventually(t, "the detour is found", func() bool {
				if route == 0 && hasRoute(t, a.nodes[0], addr(2), "via "+addr(3)) {
					route = time.Since(cut)
				}
				if ask(t, a.nodes[0], to, 1, 50*time.Millisecond) == 1 {
					answer = time.Since(cut)
				}
				return route > 0 && answer > route
			})
			fmt.Printf("%-8s the kernel's route leads the other way after %.1f s, an echo comes back after %.1f s\n", protocol, route.Seconds(), answer.Seconds())
		})
	}
}
