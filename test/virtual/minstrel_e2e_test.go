//go:build e2e

package virtual

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/rehearsal/hwsim"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/rehearsal/realtime"
	"fieldmesh.dev/fieldmesh/rehearsal/virtual"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Node 0 sends to node 1, which is at each distance in turn, then swings to and fro, some times over, and at
// last leaps between two.
const (
	blocksBegin = 20 * time.Second // the kernel's radios have joined
	blockTime   = 10 * time.Second
	blockLearns = 2 * time.Second
	blockRounds = 2
	leapTime    = 3 * time.Second
	leaps       = 20
	nearM, farM = 24, 70
	swinging    = 0                       // every second from 45 to 90, 22.5 and 45 m
	frameEvery  = 4390 * time.Microsecond // no multiple of a jiffy
	frameBytes  = 1200                    // of IP
)

var (
	blocksM    = []float64{24, 36, 48, 70, 95, swinging}
	leapsBegin = blocksBegin + time.Duration(blockRounds*len(blocksM))*blockTime
	leapsEnd   = leapsBegin + leaps*leapTime
)

func apartM(at time.Duration) float64 {
	switch {
	case at < blocksBegin || at >= leapsEnd:
		return nearM
	case at < leapsBegin:
		if m := blocksM[int((at-blocksBegin)/blockTime)%len(blocksM)]; m != swinging {
			return m
		}
		return 45 * math.Exp2(math.Sin(2*math.Pi*at.Seconds()))
	case (at-leapsBegin)/leapTime%2 == 0:
		return nearM
	}
	return farM
}

func onALine(node int, at time.Duration) (xM, yM float64) { return float64(node) * apartM(at), 0 }

func minstrelMAC(node int) net.HardwareAddr {
	return net.HardwareAddr{2, 'F', 'M', 0, 0, byte(node + 1)}
}

func minstrelConfig(seed uint64, trace func(medium.Trace)) medium.Config {
	cfg := medium.Config{Seed: seed, Standard: phy.Standard80211a, Channel: 36, Trace: trace,
		Propagation: propagation.Config{Model: "log_distance", Exponent: 3}}
	for i := range 2 {
		cfg.Nodes = append(cfg.Nodes, medium.NodeConfig{Name: fmt.Sprint(i), MAC: minstrelMAC(i).String(),
			TxPowerDbm: 20, NoiseFigureDb: 7})
	}
	return cfg
}

// onAir is what node 0 sends to node 1, and what arrives there.
type onAir struct {
	Data    []dataSent
	RTS     []time.Duration
	Arrived map[uint64]bool
	own     map[uint64]bool
	ended   atomic.Bool // the frame that was handed over last has arrived, or is given up
}

type dataSent struct {
	At       time.Duration
	Frame    uint64
	RateMbps float64
}

func newOnAir() *onAir {
	a := &onAir{Arrived: map[uint64]bool{}, own: map[uint64]bool{}}
	a.ended.Store(true)
	return a
}

func (a *onAir) note(e medium.Trace) {
	switch {
	case e.Event == "deliver" && a.own[e.Frame]:
		a.Arrived[e.Frame] = true
		a.ended.Store(true)
	case e.Event == "lost" && a.own[e.Frame]:
		a.ended.Store(true)
	case e.Event != "tx" || e.Node != 0 || e.Peer != 1:
	case e.Kind == "data":
		a.Data = append(a.Data, dataSent{e.At, e.Frame, e.RateMbps})
		a.own[e.Frame] = true
	case e.Kind == "rts":
		a.RTS = append(a.RTS, e.At)
	}
}

// modelled is what the medium's own Minstrel sends.
func modelled(t *testing.T, seed uint64) *onAir {
	t.Helper()
	a := newOnAir()
	core, err := medium.NewCore(minstrelConfig(seed, a.note), onALine, nobody{})
	if err != nil {
		t.Fatal(err)
	}
	frame := make([]byte, 14+frameBytes)
	copy(frame, minstrelMAC(1))
	copy(frame[6:], minstrelMAC(0))
	for at := time.Duration(0); at < leapsEnd; at += frameEvery {
		core.Advance(at)
		if a.ended.CompareAndSwap(true, false) {
			core.Enqueue(0, frame)
		}
	}
	return a
}

type nobody struct{}

func (nobody) Deliver(int, time.Duration, []byte) bool         { return true }
func (nobody) TxFailed(int, time.Duration, medium.MAC, []byte) {}

// insideFile is the file in which a test within a kernel leaves what it found.
const insideFile = "found.json"

// inKernel is what minstrel_ht of the kernel for virtual time sends.
func inKernel(t *testing.T, seed uint64) *onAir {
	t.Helper()
	a := newOnAir()
	findWithin(t, seed, a, "TestMinstrelOfTheKernel")
	return a
}

// findWithin runs a test of this package within a kernel for virtual time, and decodes what it leaves. The test's
// arguments are its folder and more.
func findWithin(t *testing.T, seed uint64, found any, test string, more ...string) {
	t.Helper()
	k := theKernel(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := testnet.Folder(t)
	said := ""
	err = virtual.Launch(t.Context(), virtual.Options{
		Kernel: k.Path, Init: filepath.Join(programs, "fieldmesh"), InitArgs: []string{"field", "boot"},
		Command:  append([]string{self, "-test.v", "-test.run", "^" + test + "$", dir}, more...),
		Writable: dir, Readable: []string{filepath.Dir(self), programs}, MemoryMB: 512,
		Start: time.Unix(1_700_000_000, 0), Seed: seed, CallNs: 200, Log: filepath.Join(dir, "console.log"),
		Line: func(line []byte) error {
			said += string(line)
			return nil
		},
	})
	text, failed := os.ReadFile(filepath.Join(dir, insideFile))
	if err := errors.Join(err, failed); err != nil {
		console, _ := os.ReadFile(filepath.Join(dir, "console.log"))
		t.Fatalf("%v\n%s\n%s", err, said, console)
	}
	if err := json.Unmarshal(text, found); err != nil {
		t.Fatal(err)
	}
}

// isInside: the process is the command of a kernel for virtual time.
func isInside() bool {
	name, err := os.Hostname()
	return err == nil && name == "virtual" && os.Getppid() == 1
}

// TestMinstrelOfTheKernel sends through two radios of the kernel that it runs in.
func TestMinstrelOfTheKernel(t *testing.T) {
	if !isInside() {
		t.Skip("TestE2EMinstrelIsTheKernels runs it in a kernel for virtual time")
	}
	runtime.GOMAXPROCS(2)
	air, err := hwsim.Open()
	if err != nil {
		t.Fatal(err)
	}
	a := newOnAir()
	epoch := time.Now()
	c, err := realtime.New(minstrelConfig(1, a.note), onALine, nil,
		realtime.Options{Air: air, VirtualTime: true, Epoch: epoch})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var medium errgroup.Group
	medium.Go(func() error { return c.Run(ctx) })
	var sockets [2]net.PacketConn
	for i := range sockets {
		ns := testnet.NewNS(t, "radio")
		handle, err := netns.GetFromName(ns.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(air.NewRadio(minstrelMAC(i), int(handle)), handle.Close()); err != nil {
			t.Fatal(err)
		}
		address := fmt.Sprintf("10.77.0.%d", i+1)
		for _, command := range [][]string{
			{"iw", "dev", "wlan0", "set", "type", "ibss"},
			{"ip", "link", "set", "wlan0", "up"},
			{"ip", "addr", "add", address + "/24", "dev", "wlan0"},
			{"ip", "neigh", "replace", fmt.Sprintf("10.77.0.%d", 2-i), "lladdr", minstrelMAC(1 - i).String(),
				"dev", "wlan0"},
			{"iw", "dev", "wlan0", "ibss", "join", "road", "5180", "NOHT", "fixed-freq", "02:11:22:33:44:66"},
		} {
			ns.Run(t, command[0], command[1:]...)
		}
		ns.Do(t, func() (err error) {
			sockets[i], err = net.ListenPacket("udp4", address+":7000")
			return err
		})
	}
	payload := make([]byte, frameBytes-28)
	begins := epoch.Add(blocksBegin - 5*time.Second)
	for at := begins; at.Before(epoch.Add(leapsEnd)); at = at.Add(frameEvery) {
		time.Sleep(time.Until(at))
		// Frames do not wait: the kernel hands each over with the rates of then.
		if !a.ended.CompareAndSwap(true, false) {
			continue
		}
		if _, err := sockets[0].WriteTo(payload, sockets[1].LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	late, err := c.Lateness(blocksBegin, leapsEnd-time.Second)
	if err != nil || late.WorstUs > 100 {
		t.Errorf("the air was late: %+v, %v", late, err)
	}
	cancel()
	if err := errors.Join(medium.Wait(), air.Close()); err != nil {
		t.Error(err)
	}
	text, err := json.Marshal(a)
	if err == nil && !t.Failed() {
		err = os.WriteFile(filepath.Join(os.Args[len(os.Args)-1], insideFile), text, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// What the medium's Minstrel sends at each distance, and how soon it follows a leap, is what the
// kernel's minstrel_ht sends over the same air: the means agree within the model's own spread
// between blocks.
func TestE2EMinstrelIsTheKernels(t *testing.T) {
	const boots, seeds = 6, 30
	var kernels, models []*onAir
	for seed := range uint64(boots) {
		kernels = append(kernels, inKernel(t, seed+1))
	}
	for seed := range uint64(seeds) {
		models = append(models, modelled(t, seed+1))
	}
	for d, distanceM := range blocksM {
		theirs, ours, where := blockSums(kernels, d), blockSums(models, d), fmt.Sprintf("%g m", distanceM)
		if distanceM == swinging {
			where = "swinging"
		}
		for i, what := range sumNames {
			sameMean(t, where+", "+what, column(theirs, i), column(ours, i))
		}
	}
	for _, leaves := range []bool{true, false} {
		sameMean(t, fmt.Sprintf("leap away %v, s", leaves), follows(kernels, leaves), follows(models, leaves))
	}
}

var (
	ofdmMbps = []float64{6, 9, 12, 18, 24, 36, 48, 54}
	// sumNames: shares of data frames at each rate; and for each that was handed over, its RTS,
	// whether it arrived, and the airtime of its tries.
	sumNames = []string{"6", "9", "12", "18", "24", "36", "48", "54 Mbit/s", "RTS", "arrived", "airtime, ms"}
)

// blockSums sums up what was on the air at one of the distances, in each run: how often a kernel
// looks at each rate is drawn when it boots.
func blockSums(runs []*onAir, distance int) (out [][]float64) {
	for _, a := range runs {
		shares, tries, frames, rts, arrived, airtimeMs := make([]float64, len(ofdmMbps)), 0.0, 0.0, 0.0, 0.0, 0.0
		for round := range blockRounds {
			from := blocksBegin + time.Duration(round*len(blocksM)+distance)*blockTime
			to, last := from+blockTime, uint64(0)
			from += blockLearns
			for _, d := range a.Data {
				if d.At < from || d.At >= to {
					continue
				}
				shares[slices.Index(ofdmMbps, d.RateMbps)]++
				tries++
				airtimeMs += 0.02 + 8*(frameBytes+36)/d.RateMbps/1e3
				if d.Frame != last {
					frames++
					if a.Arrived[d.Frame] {
						arrived++
					}
				}
				last = d.Frame
			}
			rts += count(a.RTS, from, to)
		}
		for i := range shares {
			shares[i] /= tries
		}
		out = append(out, append(shares, rts/frames, arrived/frames, airtimeMs/frames))
	}
	return out
}

// count counts sorted times in [from, to).
func count(times []time.Duration, from, to time.Duration) float64 {
	first, _ := slices.BinarySearch(times, from)
	end, _ := slices.BinarySearch(times, to)
	return float64(end - first)
}

// follows is after how many seconds, for each leap, eight of ten frames in a row are first sent at
// rates of the new distance, which are below or above 30 Mbit/s.
func follows(runs []*onAir, away bool) (out []float64) {
	for _, a := range runs {
		for leap := 1; leap < leaps; leap++ {
			if leap%2 == 1 != away {
				continue
			}
			from := leapsBegin + time.Duration(leap)*leapTime
			took, fits, last := leapTime, []bool{}, uint64(0)
			for _, d := range a.Data {
				if d.At < from || d.At >= from+leapTime || d.Frame == last {
					continue
				}
				last, fits = d.Frame, append(fits, d.RateMbps < 30 == away)
				if n := len(fits); n >= 10 && len(slices.DeleteFunc(slices.Clone(fits[n-10:]), isFalse)) >= 8 {
					took = d.At - from
					break
				}
			}
			out = append(out, took.Seconds())
		}
	}
	return out
}

func isFalse(b bool) bool { return !b }

func column(rows [][]float64, i int) (out []float64) {
	for _, r := range rows {
		out = append(out, r[i])
	}
	return out
}

// sameMean wants two means within four standard errors of each other, by the spread of ours, or within 0.001 where
// hardly anything differs between runs.
func sameMean(t *testing.T, what string, theirs, ours []float64) {
	t.Helper()
	sameMeanWithin(t, what, theirs, ours, 4, 0.001)
}

func sameMeanWithin(t *testing.T, what string, theirs, ours []float64, errors, least float64) {
	t.Helper()
	kernels, spread := meanAndSpread(theirs)
	mine, own := meanAndSpread(ours)
	tolerance := max(least, errors*own*math.Sqrt(1/float64(len(theirs))+1/float64(len(ours))))
	t.Logf("%-20s the kernel %.4f (spread %.4f), the model %.4f (%.4f); tolerance %.4f", what, kernels, spread, mine,
		own, tolerance)
	if !(math.Abs(kernels-mine) <= tolerance) {
		t.Errorf("%s: the kernel has %.4f, the model %.4f, want them within %.4f", what, kernels, mine, tolerance)
	}
}

func meanAndSpread(values []float64) (mean, spread float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		spread += (v - mean) * (v - mean) / float64(len(values)-1)
	}
	return mean, math.Sqrt(spread)
}
