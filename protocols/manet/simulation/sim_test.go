package simulation_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/aodv"
	"fieldmesh.dev/fieldmesh/protocols/manet/olsr"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
)

// static is a protocol that knows its routes from the start.
type static struct {
	routes map[netip.Addr]netip.Addr
	events []manet.Event
}

func (s *static) Handle(_ manet.Time, e manet.Event) []manet.Action {
	s.events = append(s.events, e)
	if _, ok := e.(manet.Start); !ok {
		return nil
	}
	var out []manet.Action
	for to, next := range s.routes {
		out = append(out, manet.SetRoute{Destination: netip.PrefixFrom(to, 32), Next: []manet.Hop{{Addr: next}}})
	}
	return out
}

func (s *static) State(manet.Time) manet.State { return manet.State{Protocol: "static"} }

// newStatic makes nodes with routes "from to next".
func newStatic(t *testing.T, nodes int, radio simulation.Radio, routes ...[3]int) (*simulation.Sim, []*static) {
	t.Helper()
	all := make([]*static, nodes)
	sim, err := simulation.New(simulation.Config{Seed: 1, Nodes: nodes, Radio: radio, Feedback: true,
		Make: func(i int, _ []manet.Interface, _ uint64) (manet.Node, error) {
			all[i] = &static{routes: map[netip.Addr]netip.Addr{}}
			for _, r := range routes {
				if r[0] == i {
					all[i].routes[simulation.Address(r[1], 0)] = simulation.Address(r[2], 0)
				}
			}
			return all[i], nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return sim, all
}

func run(t *testing.T, sim *simulation.Sim, until time.Duration) {
	t.Helper()
	if err := sim.Run(until); err != nil {
		t.Fatal(err)
	}
}

func TestDataFollowsRoutes(t *testing.T) {
	sim, nodes := newStatic(t, 3, simulation.DefaultRadio(), [3]int{0, 2, 1}, [3]int{1, 2, 2})
	sim.Chain()
	run(t, sim, 2*time.Second)
	sim.SendData(0, 2, 1000)
	run(t, sim, 3*time.Second)
	if sim.Data.Delivered != 1 || sim.Data.Hops != 2 || sim.Data.DelayMax < 700*time.Microsecond {
		t.Errorf("%+v, want one packet over two hops, whose airtime alone is 766 µs", sim.Data)
	}
	if hops, err := sim.Path(0, 2); hops != 2 || err != nil {
		t.Errorf("path of %d hops, %v", hops, err)
	}
	// The relay may tell the protocol where the packet came from.
	used, ok := nodes[1].events[len(nodes[1].events)-1].(manet.RouteUsed)
	if !ok || used.Previous != simulation.Address(0, 0) || used.Source != simulation.Address(0, 0) || used.Local {
		t.Errorf("the relay was told %+v", nodes[1].events)
	}
	sim.Cut(1, 2)
	sim.SendData(0, 2, 1000)
	run(t, sim, 4*time.Second)
	want := manet.LinkFailed{Neighbor: simulation.Address(2, 0), Destination: simulation.Address(2, 0),
		Known: true}
	if got := nodes[1].events[len(nodes[1].events)-1]; got != manet.Event(want) || sim.Data.LinkLost != 1 {
		t.Errorf("after the link was cut: %+v, %+v", got, sim.Data)
	}
	sim.SendData(2, 0, 1000)
	if _, ok := nodes[2].events[len(nodes[2].events)-1].(manet.NeedRoute); !ok || sim.Held(2) != 1 {
		t.Error("a packet without a route is not held and reported")
	}
	for range 200 {
		sim.SendData(2, 0, 1000)
	}
	if sim.Held(2) != 64 {
		t.Errorf("%d packets are held, want 64", sim.Held(2))
	}
}

func TestLoopsAreSeen(t *testing.T) {
	sim, _ := newStatic(t, 4, simulation.DefaultRadio(), [3]int{0, 3, 1}, [3]int{1, 3, 2}, [3]int{2, 3, 1})
	sim.Chain()
	watch := sim.WatchLoops(100 * time.Millisecond)
	run(t, sim, 10*time.Second)
	if watch.Seen != 2 || watch.Worst < 8*time.Second || !strings.Contains(watch.Report, "to node 3") {
		t.Errorf("%d nodes were seen in loops for %v: %s; want nodes 1 and 2", watch.Seen, watch.Worst, watch.Report)
	}
	if _, err := sim.Path(0, 3); err == nil || !strings.Contains(err.Error(), "loop") {
		t.Errorf("the path is %v", err)
	}
	sim.SendData(0, 3, 100)
	run(t, sim, 11*time.Second)
	if sim.Data.TTLExceeded != 1 {
		t.Errorf("%+v, want a packet that ran out of hops", sim.Data)
	}
}

func TestCheckPairs(t *testing.T) {
	sim, _ := newStatic(t, 3, simulation.DefaultRadio(), [3]int{0, 1, 1}, [3]int{1, 0, 0}, [3]int{2, 0, 1})
	sim.Connect(0, 1)
	run(t, sim, 2*time.Second)
	if err := sim.CheckPairs(); err == nil || !strings.Contains(err.Error(), "cannot reach") {
		t.Errorf("a route to an unreachable node: %v", err)
	}
	sim.PowerOff(2)
	if err := sim.CheckPairs(); err != nil {
		t.Errorf("without the node that is off: %v", err)
	}
	sim.Cut(0, 1)
	sim.SetLink(0, 1, 0, 0, 1)
	if err := sim.CheckPairs(); err == nil {
		t.Error("a link in one direction counts as one")
	}
}

func TestOneWayLinksCarryNoUnicast(t *testing.T) {
	sim, nodes := newStatic(t, 2, simulation.DefaultRadio(), [3]int{0, 1, 1})
	sim.SetLink(0, 1, 0, 0, 1)
	run(t, sim, 2*time.Second)
	sim.SendData(0, 1, 100)
	run(t, sim, 3*time.Second)
	if _, ok := nodes[0].events[len(nodes[0].events)-1].(manet.LinkFailed); !ok || sim.Data.Delivered != 0 {
		t.Errorf("%+v after %+v; want a failure, as no acknowledgement can come back", sim.Data, nodes[0].events)
	}
}

func TestRadioLosesAndRepeats(t *testing.T) {
	radio := simulation.DefaultRadio()
	radio.Loss = 0.3
	sim, _ := newStatic(t, 2, radio, [3]int{0, 1, 1})
	sim.Chain()
	sim.Flow(0, 1, 100, 10*time.Millisecond, 2*time.Second, 22*time.Second)
	run(t, sim, 30*time.Second)
	// 0.3^8 is lost: none of 2000 most likely, and hardly more than three.
	if sim.Data.Sent != 2000 || sim.Data.Delivered < 1997 || sim.Data.Delivered+sim.Data.LinkLost != sim.Data.Sent {
		t.Errorf("%+v", sim.Data)
	}
}

func olsrMaker(_ int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
	return olsr.New(olsr.RFC3626(interfaces, seed))
}

func scale(nodes int, duration time.Duration) simulation.Scale {
	return simulation.Scale{Seed: 3, Nodes: nodes, RangeM: 250, Degree: 10, Radio: simulation.DefaultRadio(),
		Make:     olsrMaker,
		Duration: duration, Flows: 5, FlowStart: 20 * time.Second, PacketBytes: 512,
		PacketPeriod: 250 * time.Millisecond}
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	question := scale(25, 30*time.Second)
	question.SpeedMps = 5
	var files [2]bytes.Buffer
	var results [2]simulation.ScaleResult
	for i := range 2 {
		question.Pcap, question.PcapPort = &files[i], olsr.Port
		var err error
		if results[i], err = question.Run(true); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(results[0], results[1]) || !bytes.Equal(files[0].Bytes(), files[1].Bytes()) {
		t.Errorf("two runs differ: %+v and %+v", results[0], results[1])
	}
	if results[0].ConvergedS == nil || *results[0].DeliveredShare < 0.8 {
		t.Errorf("25 slow nodes: %+v", results[0])
	}
}

// TestBenchScale prints the largest number of nodes that are simulated faster
// than real time on one core, at a density of ten neighbours, with ten flows
// of four packets of 512 bytes a second in the second half of 30 s: what
// `fieldmesh simulate-routing --flows 10 --duration 30s --seed 3` asks, and
// tells in its last column. Time is the processor's, of all threads, so that the
// figure does not depend on what else the machine does. The goal is 500.
func TestBenchScale(t *testing.T) {
	if os.Getenv("FIELDMESH_BENCH") == "" {
		t.Skip("a benchmark: runs with FIELDMESH_BENCH set")
	}
	for _, name := range []string{"aodv", "olsr"} {
		largest, speed := 0, 0.0
		for _, nodes := range []int{100, 200, 300, 400, 500, 600, 800, 1000, 1400, 2000} {
			question := scale(nodes, 30*time.Second)
			question.Make, question.Flows, question.FlowStart, question.Feedback = benchmarked()[name], 10,
				15*time.Second, true
			began := processorTime(t)
			if _, err := question.Run(name == "olsr"); err != nil {
				t.Fatal(err)
			}
			times := 30 / (processorTime(t) - began).Seconds()
			if times < 1 {
				break
			}
			largest, speed = nodes, times
		}
		fmt.Printf("simulation %s: %d nodes at %.1f times real time (goal: 500 at 1; 10 neighbours, 10 flows of 4 "+
			"packets/s)\n", name, largest, speed)
		if largest < 500 {
			t.Errorf("%s: %d nodes are the most, want 500", name, largest)
		}
	}
}

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func aodvMaker(_ int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
	c := aodv.LinkLayer(interfaces, seed)
	c.QuietStart = 0
	return aodv.New(c)
}

func benchmarked() map[string]simulation.Maker {
	return map[string]simulation.Maker{"olsr": olsrMaker, "aodv": aodvMaker}
}
