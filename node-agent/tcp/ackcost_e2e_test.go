//go:build e2e

package tcp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

const (
	// The acknowledgements that a batch times: few enough that most batches are
	// not interrupted, and after those that warm the caches.
	batchWarm  = 8
	batchTimed = 32
	// batchTurn lies between what is sent and its acknowledgement: long beside
	// the time that the others' turns take, which Vegas would take for a queue.
	batchTurn = 20 * time.Millisecond
	// batchWindow is the first window of the connections, in segments.
	batchWindow = 200
)

// ackCosts times the acknowledgements of several connections in turns: a
// connection fills its window, and some of its segments are acknowledged one by
// one while the clock runs. What is timed is the sender's kernel from taking
// the packet in to the end of what the ACK does: the congestion control, what
// calls it, and everything else, which is the same for all and taken away by
// comparing. The kernel's own count (bpf_stats) is not used: it leaves out
// the way into a program, counts its own reading of the clock, and
// has nothing for the kernel's own functions.
type ackCosts struct {
	p     *peer
	conns []*played
	order *rand.Rand
	// sets are the ns that an ACK took, by set, connection and round.
	sets [][][]float64
}

// timeACKs does so with a connection of each of the congestion controls that
// names gives. Every set of rounds has others, of programs that were loaded
// again: where a program comes to lie in memory makes tens of nanoseconds.
func timeACKs(t *testing.T, sets, rounds int, names func(t *testing.T) []string) *ackCosts {
	t.Helper()
	a := &ackCosts{order: rand.New(rand.NewPCG(1, 1))}
	for set := range sets {
		t.Run(fmt.Sprintf("set %d", set+1), func(t *testing.T) {
			a.p = newPeer(t, false)
			a.p.ns.Run(t, "ip", "route", "change", "10.55.0.0/24", "dev", "path0", "proto", "kernel", "scope", "link",
				"src", senderAddr,
				"initcwnd", strconv.Itoa(batchWindow))
			a.open(t, names(t))
			a.sets = append(a.sets, make([][]float64, len(a.conns)))
			for range rounds {
				a.round(t)
			}
		})
	}
	return a
}

// open starts over with a connection of each, in congestion avoidance.
func (a *ackCosts) open(t *testing.T, names []string) {
	t.Helper()
	a.conns = nil
	for _, name := range names {
		a.conns = append(a.conns, a.p.dial(t, name, batchTurn))
	}
	// Half of the first window is used for some rounds, so that Westwood has
	// its estimate; then a loss ends slow start, and what is acknowledged after
	// it ends recovery.
	const rounds, loss = 43, 40
	for round := range rounds {
		segments := batchWindow / 2
		if round > loss {
			segments = 4
		}
		for _, c := range a.conns {
			c.write(t, segments)
			a.p.drain(t)
		}
		time.Sleep(batchTurn)
		for _, c := range a.conns {
			if round == loss {
				for range 3 {
					a.p.give(t, a.p.ack(c, c.acked))
				}
			}
			upTo := c.sent
			if round < loss {
				upTo -= mss // something stays in flight: sending does not start over
			}
			a.finish(t, c, upTo)
		}
	}
}

// send has every connection fill its window, with one segment more that waits,
// so that the stack knows the window to be what bounds it.
func (a *ackCosts) send(t *testing.T) {
	t.Helper()
	for _, c := range a.conns {
		window := min(int(a.p.info(t, c).Snd_cwnd), 2*batchWindow)
		c.write(t, window+1-int(c.sent-c.acked)/mss)
		a.p.drain(t)
	}
	time.Sleep(batchTurn)
}

// finish acknowledges, segment by segment, what a connection has sent so far.
// What it sends thereupon is left for the next turn: no round trip is to be
// shorter than one.
func (a *ackCosts) finish(t *testing.T, c *played, upTo uint32) {
	t.Helper()
	for c.acked < upTo {
		c.acked += mss
		a.p.give(t, a.p.ack(c, c.acked))
	}
	a.p.drain(t)
}

// round times a batch of each, in another order than the last round: what was
// before leaves the caches differently.
func (a *ackCosts) round(t *testing.T) {
	t.Helper()
	a.send(t)
	for _, i := range a.order.Perm(len(a.conns)) {
		c := a.conns[i]
		sent := c.sent
		ns := a.sets[len(a.sets)-1]
		if int(sent-c.acked)/mss < batchWarm+batchTimed { // Vegas takes a busy machine for a queue
			ns[i] = append(ns[i], math.NaN())
			a.finish(t, c, sent)
			continue
		}
		batch := make([][]byte, batchWarm+batchTimed)
		for j := range batch {
			c.acked += mss
			batch[j] = a.p.ack(c, c.acked)
		}
		for _, f := range batch[:batchWarm] {
			a.p.give(t, f)
		}
		began := time.Now()
		for _, f := range batch[batchWarm:] { // Go's own preparations for a system call would be timed too
			_, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(a.p.fd), uintptr(unsafe.Pointer(&f[0])),
				uintptr(len(f)))
			if errno != 0 {
				t.Fatal(errno)
			}
		}
		ns[i] = append(ns[i], float64(time.Since(began).Nanoseconds())/batchTimed)
		a.p.drain(t)
		a.finish(t, c, sent)
	}
}

// more is by how much an ACK of one connection takes longer than of another, in
// ns: the median over sets of the median over rounds of the difference within
// each round; and between what the middle half of the sets lies. It is not a
// number where nothing could be timed.
func (a *ackCosts) more(i, than int) (ns, low, high float64) {
	return a.over(func(set [][]float64, round int) float64 { return set[i][round] - set[than][round] })
}

// whole is what an ACK of a connection takes the kernel, likewise.
func (a *ackCosts) whole(i int) float64 {
	ns, _, _ := a.over(func(set [][]float64, round int) float64 { return set[i][round] })
	return ns
}

func (a *ackCosts) over(value func(set [][]float64, round int) float64) (ns, low, high float64) {
	var sets []float64
	for _, set := range a.sets {
		var rounds []float64
		for round := range set[0] {
			if v := value(set, round); !math.IsNaN(v) {
				rounds = append(rounds, v)
			}
		}
		if len(rounds) >= len(set[0])/2 {
			sets = append(sets, median(rounds))
		}
	}
	if len(sets) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	slices.Sort(sets)
	return median(sets), sets[len(sets)/4], sets[len(sets)*3/4]
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[len(s)/2]
}

// yardstick registers a program that is for measuring only.
func yardstick(t *testing.T, program string) string {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpec("../../protocols/tcpcc/bpf/yardsticks/" + program + ".bpf.o")
	if err != nil {
		t.Fatal(err)
	}
	c, err := loaded{}.congestion(spec, program, fmt.Sprintf("%.4s_%x_%x", program, os.Getpid(), registered.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, c)
	return c.Name
}
