//go:build e2e && guest

package realtime

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

// The schedule that both kinds of radio go through: the distances in turn, some times over, then
// leaps between two of them.
const (
	scheduleStarts = 30 * time.Second // when the kernel's radios have joined for long
	blockTime      = 10 * time.Second
	blockSettles   = 2 * time.Second
	rounds         = 4
	leapTime       = 3 * time.Second
	leaps          = 20
	frameEvery     = 5 * time.Millisecond
	udpBytes       = 1172 // 1200 bytes of IP
)

var distancesM = []float64{24, 36, 48, 70, 95}

const nearM, farM = 24, 70

var (
	blocks       = rounds * len(distancesM)
	leapsStart   = scheduleStarts + time.Duration(blocks)*blockTime
	scheduleEnds = leapsStart + leaps*leapTime
)

func apartM(at time.Duration) float64 {
	switch {
	case at < scheduleStarts || at >= scheduleEnds:
		return nearM
	case at < leapsStart:
		return distancesM[int((at-scheduleStarts)/blockTime)%len(distancesM)]
	case (at-leapsStart)/leapTime%2 == 0:
		return nearM
	}
	return farM
}

func onALine(node int, at time.Duration) (xM, yM float64) { return float64(node) * apartM(at), 0 }

// sent is a data frame of node 0 on the air.
type sent struct {
	at       time.Duration
	frame    uint64
	rateMbps float64
}

// watched collects what node 0 sends to node 1, and what arrives.
type watchedAir struct {
	sent    []sent
	arrived []time.Duration
	rts     []time.Duration
}

func (w *watchedAir) trace(e medium.Trace) {
	switch {
	case e.Event == "tx" && e.Node == 0 && e.Peer == 1 && e.Kind == "data":
		w.sent = append(w.sent, sent{e.At, e.Frame, e.RateMbps})
	case e.Event == "tx" && e.Node == 0 && e.Peer == 1 && e.Kind == "rts":
		w.rts = append(w.rts, e.At)
	case e.Event == "deliver" && e.Node == 1 && e.Peer == 0:
		w.arrived = append(w.arrived, e.At)
	}
}

// countWithin counts the times of a list in [from, to).
func countWithin(list []time.Duration, from, to time.Duration) int {
	i, _ := slices.BinarySearch(list, from)
	j, _ := slices.BinarySearch(list, to)
	return j - i
}

var ofdmMbps = []float64{6, 9, 12, 18, 24, 36, 48, 54}

// shares sums a block up: the share of data frames on the air at each rate, then of frames to
// whose data an RTS belongs, then of frames that arrived, then the mean airtime that a frame takes, in ms.
func (w *watchedAir) shares(from, to time.Duration) []float64 {
	out := make([]float64, len(ofdmMbps))
	n, airtimeMs := 0, 0.0
	for _, s := range w.sent {
		if s.at >= from && s.at < to {
			out[slices.Index(ofdmMbps, s.rateMbps)]++
			airtimeMs += 0.02 + 8*1236/s.rateMbps/1e3
			n++
		}
	}
	for i := range out {
		out[i] /= float64(n)
	}
	frames := float64((to - from) / frameEvery)
	return append(out, float64(countWithin(w.rts, from, to))/float64(n), float64(countWithin(w.arrived, from, to))/frames,
		airtimeMs/frames)
}

var shareNames = []string{"6", "9", "12", "18", "24", "36", "48", "54", "RTS", "arrived", "airtime_ms"}

// follows is how long after each leap the first of ten frames in a row goes, half of which are first
// sent at the rates of the new distance.
func (w *watchedAir) follows(slow func(rateMbps float64) bool) (leave, approach []float64) {
	for leap := range leaps {
		from := leapsStart + time.Duration(leap)*leapTime
		far := leap%2 == 1
		var recent []bool
		var last uint64
		took := leapTime
		for _, s := range w.sent {
			if s.at < from || s.at >= from+leapTime || s.frame == last {
				continue
			}
			last = s.frame
			recent = append(recent, slow(s.rateMbps) == far)
			if n := len(recent); n >= 10 {
				fits := 0
				for _, is := range recent[n-10:] {
					if is {
						fits++
					}
				}
				if fits >= 8 {
					took = s.at - from
					break
				}
			}
		}
		switch {
		case leap == 0:
		case far:
			leave = append(leave, took.Seconds())
		default:
			approach = append(approach, took.Seconds())
		}
	}
	return leave, approach
}

func minstrelConfig(seed uint64, w *watchedAir) medium.Config {
	cfg := medium.Config{Seed: seed, Standard: phy.Standard80211a, Channel: 36,
		Propagation: propagation.Config{Model: "log_distance", Exponent: 3}, Trace: w.trace}
	for i := range 2 {
		mac := net.HardwareAddr{2, 'F', 'M', 0, 0, byte(i + 1)}
		cfg.Nodes = append(cfg.Nodes, medium.NodeConfig{Name: fmt.Sprint(i), MAC: mac.String(), TxPowerDbm: 20,
			NoiseFigureDb: 7, HeightM: 1.5})
	}
	return cfg
}

type discard struct{}

func (discard) Deliver(int, time.Duration, []byte) bool         { return true }
func (discard) TxFailed(int, time.Duration, medium.MAC, []byte) {}

// modelled is the schedule with the medium's own Minstrel.
func modelled(t *testing.T, seed uint64) *watchedAir {
	w := &watchedAir{}
	core, err := medium.NewCore(minstrelConfig(seed, w), onALine, discard{})
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 14+28+udpBytes)
	copy(frame, []byte{2, 'F', 'M', 0, 0, 2, 2, 'F', 'M', 0, 0, 1, 8, 0})
	for at := time.Duration(0); at < scheduleEnds; at += frameEvery {
		core.Advance(at)
		core.Enqueue(0, frame)
	}
	return w
}

// inTheKernel is the schedule with minstrel_ht of mac80211.
func inTheKernel(t *testing.T) *watchedAir {
	w := &watchedAir{}
	air, nodes := kernelsRadios(t, 2)
	c, err := New(minstrelConfig(1, w), onALine, nil, Options{Air: air, NoFIFO: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for i, ns := range nodes {
		ns.Run(t, "iw", "dev", "wlan0", "ibss", "join", "road", "5180", "NOHT", "fixed-freq", "02:11:22:33:44:66")
		ns.Run(t, "ip", "neigh", "replace", fmt.Sprintf("10.77.0.%d", 2-i), "lladdr",
			net.HardwareAddr{2, 'F', 'M', 0, 0, byte(2 - i)}.String(), "dev", "wlan0", "nud", "permanent")
	}
	var to, from net.PacketConn
	listen := func(conn *net.PacketConn, address string) func() error {
		return func() (err error) {
			*conn, err = net.ListenPacket("udp4", address)
			return err
		}
	}
	nodes[1].Do(t, listen(&to, "10.77.0.2:7000"))
	nodes[0].Do(t, listen(&from, "10.77.0.1:7000"))
	peer := &net.UDPAddr{IP: net.IPv4(10, 77, 0, 2), Port: 7000}
	payload := make([]byte, udpBytes)
	for c.now() < scheduleStarts-5*time.Second {
		time.Sleep(100 * time.Millisecond)
	}
	refused := 0
	for due := c.now(); due < scheduleEnds; due += frameEvery {
		time.Sleep(due - c.now())
		if _, err := from.WriteTo(payload, peer); err != nil {
			refused++
		}
	}
	paths, err := filepath.Glob("/sys/kernel/debug/ieee80211/*/netdev:wlan0/stations/02:46:4d:00:00:02/rc_stats")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		t.Logf("%s: %v\n%s", path, err, text)
	}
	t.Logf("%d datagrams refused, %d frames late; %+v", refused, air.Refused, c.Counters(0))
	lateness, err := c.Lateness(scheduleStarts, scheduleEnds)
	t.Logf("lateness %+v, %v", lateness, err)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_, _ = to, strings.Join(nil, "")
	return w
}

// The kernel's minstrel_ht and the medium's send the same frames over the same air: what they
// do at each distance, and how soon they follow a leap, agrees within the spread of the model's
// own seeds.
func TestGuestMinstrelAgainstTheKernels(t *testing.T) {
	kernel := inTheKernel(t)
	const seeds = 24
	var models []*watchedAir
	for seed := range uint64(seeds) {
		models = append(models, modelled(t, seed+100))
	}
	for d := range distancesM {
		var theirs, ours [][]float64
		collect := func(w *watchedAir) (out [][]float64) {
			for round := range rounds {
				from := scheduleStarts + time.Duration(round*len(distancesM)+d)*blockTime
				out = append(out, w.shares(from+blockSettles, from+blockTime))
			}
			return out
		}
		theirs = collect(kernel)
		for _, w := range models {
			ours = append(ours, collect(w)...)
		}
		for i, name := range shareNames {
			compare(t, fmt.Sprintf("%g m, %s", distancesM[d], name), column(theirs, i), column(ours, i))
		}
	}
	slow := func(rateMbps float64) bool { return rateMbps < 30 }
	leave, approach := kernel.follows(slow)
	var leaves, approaches []float64
	for _, w := range models {
		l, a := w.follows(slow)
		leaves, approaches = append(leaves, l...), append(approaches, a...)
	}
	compare(t, "leaving, s", leave, leaves)
	compare(t, "approaching, s", approach, approaches)
}

func column(rows [][]float64, i int) (out []float64) {
	for _, r := range rows {
		out = append(out, r[i])
	}
	return out
}

// compare wants two means within four standard errors, by the spread of ours.
func compare(t *testing.T, what string, theirs, ours []float64) {
	t.Helper()
	mine, spread := meanAndSpread(ours)
	kernels, their := meanAndSpread(theirs)
	within := 4 * spread * math.Sqrt(1/float64(len(theirs))+1/float64(len(ours)))
	mark := ""
	if !(math.Abs(kernels-mine) <= within+0.002) {
		mark = " <<<"
		t.Fail()
	}
	t.Logf("%-22s kernel %.4f (sd %.4f, n %d), model %.4f (sd %.4f, n %d), tolerance %.4f%s", what, kernels, their,
		len(theirs), mine, spread, len(ours), within, mark)
}

func meanAndSpread(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sd += (v - mean) * (v - mean) / float64(len(values)-1)
	}
	return mean, math.Sqrt(sd)
}
