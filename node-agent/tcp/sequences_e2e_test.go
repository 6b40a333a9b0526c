//go:build e2e

package tcp

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Where TestE2ESequencesChild writes its traces, how many, and drawn by which seed.
const (
	sequencesFile  = "FIELDMESH_TCP_SEQUENCES"
	sequencesCount = "FIELDMESH_TCP_SEQUENCES_COUNT"
	sequencesSeed  = "FIELDMESH_SEED"
)

// inSequences are the programs whose windows follow from ACKs alone. Those of
// Vegas and Westwood follow from round trips too, which no two kernels measure
// alike; theirs are held to the rules of both.
var inSequences = []string{tcpcc.Tahoe, tcpcc.Reno, tcpcc.NewReno, tcpcc.Fack, tcpcc.Reference}

// TestE2ESequencesChild takes each program through drawn sequences of ACKs, and
// writes each window after each ACK. test/virtual runs it in two kernels: where
// programs are loaded, and where they are compiled in.
func TestE2ESequencesChild(t *testing.T) {
	path := os.Getenv(sequencesFile)
	if path == "" {
		t.Skip("is run by test/virtual")
	}
	testnet.Need(t)
	count, err := strconv.Atoi(os.Getenv(sequencesCount))
	if err != nil {
		t.Fatal(err)
	}
	seed := testnet.Number(t, sequencesSeed, 0)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	peers := map[bool]*peer{false: newPeer(t, false), true: newPeer(t, true)}
	peers[true].ns.Run(t, "ip", "route", "change", "10.55.0.0/24", "dev", "path0", "proto", "kernel", "scope", "link",
		"src", senderAddr, "initcwnd", "40")
	programs := map[string]*Congestion{}
	for _, program := range inSequences {
		programs[program] = register(t, program)
	}
	for i := range count {
		program := inSequences[i%len(inSequences)]
		sack := tcpcc.NeedsSACK(program)
		line, whole := "", false
		for try := 0; !whole; try++ {
			if try == burstTries {
				t.Fatalf("sequence %d: it was interrupted %d times in a row", i, try)
			}
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			line, whole = peers[sack].sequence(t, programs[program], r)
		}
		fmt.Fprintf(out, "%d %s:%s\n", i, program, line)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
}

// sackTrip is the round trip of the handshake and of the burst with which a
// sequence with SACK begins. burstTries is how often such a burst may be
// interrupted, or its ACKs, as by a busy machine, before the test gives up.
const (
	sackTrip   = 5 * time.Millisecond
	burstTries = 100
)

// sequence has a connection send to a receiver that loses what is drawn, and
// writes it as it was after each ACK. It ends when nothing is under way any
// more: only the timer would go on. In some sequences the receiver's ACKs are
// delayed, or come twice.
//
// With SACK the stack finds losses by the times at which segments went (RACK,
// RFC 8985): but not those of one burst, after a round trip that is long beside
// it. So a sequence with SACK begins with a burst, loses of nothing else, and
// nothing twice, and ends with its recovery. One whose burst, or the time from
// one ACK to the next, took longer than a quarter of the round trip, RACK's
// tolerance, is not whole: it is to be played again.
func (p *peer) sequence(t *testing.T, program *Congestion, r *rand.Rand) (line string, whole bool) {
	t.Helper()
	var out strings.Builder
	trip := time.Duration(0)
	if p.sack {
		trip = sackTrip
	}
	c := p.dial(t, program.Name, trip)
	c.receiver = &receiver{times: map[uint32]int{}, held: map[uint32]int{}}
	loses, delays, repeats := 0.12*r.Float64(), 0.3*r.Float64(), 0.05*r.Float64()
	whole = true
	step := time.Now()
	inTime := func() {
		now := time.Now()
		whole, step = whole && (!p.sack || now.Sub(step) <= trip/4), now
	}
	c.write(t, 20+r.IntN(60))
	inTime()
	p.drain(t)
	burst := c.sent
	step = time.Now()
	time.Sleep(trip)
	step = step.Add(trip)
	inTime() // a tail loss probe may go twice the round trip after the burst
	for recovered := false; len(c.receiver.underway) > 0 && !recovered; {
		first := c.receiver.underway[0]
		c.receiver.underway = c.receiver.underway[1:]
		c.receiver.times[first]++
		if r.Float64() < loses && (!p.sack || first < burst && c.receiver.times[first] == 1) {
			if program.losses != nil {
				why := Cause(r.IntN(5)) // 0: nobody knows
				if err := program.Lost(c.port, 5000, c.isn+1+first, why); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		inOrder := first == c.receiver.next && len(c.receiver.held) == 0
		c.receiver.take(first)
		if inOrder && len(c.receiver.underway) > 0 && r.Float64() < delays {
			continue // the next ACK acknowledges this one too
		}
		for again := true; again; again = r.Float64() < repeats {
			var blocks [][2]uint32
			if p.sack {
				blocks = c.receiver.blocks()
			}
			p.give(t, p.ack(c, c.receiver.next, blocks...))
			p.drain(t)
			info := p.info(t, c)
			inTime()
			recovered = p.sack && c.again > 0 && info.Ca_state == stateOpen
			fmt.Fprintf(&out, " %d/%d/%d/%d+%d", info.Snd_cwnd, info.Snd_ssthresh, info.Ca_state, info.Unacked,
				info.Retrans)
		}
	}
	p.hangUp(t, c)
	return out.String(), whole
}
