package gps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// handClock is set by hand.
type handClock struct{ ns atomic.Int64 }

func (c *handClock) BootNs() int64   { return c.ns.Load() }
func (c *handClock) Wall() time.Time { return time.Time{} }

func (c *handClock) set(d time.Duration) { c.ns.Store(int64(d)) }

var epoch = time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)

// fixAt is gpsd's line for a fix at a time after the epoch.
func fixAt(d time.Duration, speed float64) []byte {
	return fmt.Appendf(nil, `{"class":"TPV","device":"/dev/gps","mode":3,"time":"%s","lat":52.1,"lon":11.6,"altMSL":50.5,"speed":%v,"track":90.0,"eps":0.5,"eph":2.5}`,
		epoch.Add(d).Format(time.RFC3339Nano), speed)
}

// primed is a client whose gpsd reports each epoch once.
func primed(clk *handClock) *Client {
	c := New("", clk)
	c.epochs.counts = []int{1}
	return c
}

func speedOf(g wire.GPS) string {
	if g.SpeedMps == nil {
		return "none"
	}
	return fmt.Sprint(*g.SpeedMps)
}

func TestAFixIsInOneTickOnlyAndAges(t *testing.T) {
	clk := &handClock{}
	c := primed(clk)
	if g := c.Tick(); g.FixAgeMs != nil || g.Mode != 0 || g.Connected {
		t.Errorf("before anything: %+v", g)
	}
	if _, ok := c.Last(); ok {
		t.Error("a last fix before the first")
	}
	c.take([]byte(`{"class":"SKY","hdop":1.2,"satellites":[{"used":true},{"used":false},{"used":true}]}`), 0)
	c.take(fixAt(0, 13.9), int64(time.Second))
	clk.set(1050 * time.Millisecond)
	if g := c.Tick(); g.SpeedMps != nil || g.FixAgeMs != nil {
		t.Errorf("a fix that may not be whole yet is shown: %+v", g)
	}
	clk.set(1150 * time.Millisecond)
	g := c.Tick()
	if speedOf(g) != "13.9" || *g.FixAgeMs != 150 || *g.FixBootNs != int64(time.Second) || g.Mode != 3 ||
		*g.SatellitesUsed != 2 || *g.HDOP != 1.2 || !g.Connected {
		t.Errorf("first tick: %+v", g)
	}
	for i := range 30 {
		clk.set(time.Duration(1250+100*i) * time.Millisecond)
		g = c.Tick()
		if want := float64(250 + 100*i); g.SpeedMps != nil || g.LatDeg != nil || g.FixBootNs != nil ||
			g.TimeUTC != "" || *g.FixAgeMs != want || g.Mode != 3 {
			t.Fatalf("tick %d shows a fix again or has the wrong age: %+v", i, g)
		}
	}
	last, ok := c.Last()
	if !ok || speedOf(last) != "13.9" || *last.FixAgeMs != 3150 {
		t.Errorf("last %+v", last)
	}
	c.take([]byte(`{"class":"TPV","mode":1,"speed":13.9,"lat":1,"lon":1}`), int64(5*time.Second))
	if g := c.Tick(); g.SpeedMps != nil || g.Mode != 1 {
		t.Errorf("a report without a fix shows one: %+v", g)
	}
	c.disconnect()
	if last, ok := c.Last(); !ok || last.Mode != 0 || last.Connected {
		t.Errorf("after the connection ended: %+v", last)
	}
}

func TestTheSameFixAgainIsNotNew(t *testing.T) {
	clk := &handClock{}
	c := primed(clk)
	c.take(fixAt(0, 5), 0)
	c.take(fixAt(0, 6), int64(20*time.Millisecond)) // completed by later sentences
	clk.set(200 * time.Millisecond)
	if g := c.Tick(); speedOf(g) != "6" || *g.FixAgeMs != 200 {
		t.Errorf("completed fix: speed %s, age %v", speedOf(g), *g.FixAgeMs)
	}
	for i := range 20 {
		c.take(fixAt(0, 6), int64(time.Second)*int64(i+1)) // a receiver that hangs
	}
	clk.set(21 * time.Second)
	if g := c.Tick(); g.SpeedMps != nil || *g.FixAgeMs != 21000 {
		t.Errorf("repeated fix: speed %s, age %v", speedOf(g), *g.FixAgeMs)
	}
}

// TestASpeedFromPositionsIsNotShown plays gpsd with a receiver that sends GGA
// before RMC: the first report of each epoch has a speed made of positions.
func TestASpeedFromPositionsIsNotShown(t *testing.T) {
	clk := &handClock{}
	c := New("", clk)
	shown := 0
	for i := range 40 {
		at := time.Duration(i) * time.Second
		for report, speed := range []float64{14.7, 0.2} {
			if i%10 == 9 && report == 1 {
				continue // RMC was lost
			}
			c.take(fixAt(at, speed), int64(at)+int64(report)*90e6)
			clk.set(at + time.Duration(report)*250*time.Millisecond + 80*time.Millisecond)
			switch g := c.Tick(); speedOf(g) {
			case "none":
			case "0.2":
				shown++
				if *g.FixAgeMs != 330 {
					t.Errorf("epoch %d: age %v, want that of its first report", i, *g.FixAgeMs)
				}
			default:
				t.Errorf("epoch %d, report %d: speed %s is shown", i, report, speedOf(g))
			}
		}
	}
	if shown < 34 {
		t.Errorf("%d of 36 whole epochs are shown", shown)
	}
	// The receiver is set to send one sentence only.
	single := 0
	for i := 40; i < 60; i++ {
		c.take(fixAt(time.Duration(i)*time.Second, 3), int64(i)*1e9)
		if speedOf(c.Tick()) == "3" {
			single++
		}
	}
	if single < 16 {
		t.Errorf("after a change to one report an epoch %d of 20 are shown", single)
	}
}

func TestUsualReports(t *testing.T) {
	for want, counts := range map[int][]int{maxReports + 1: {}, 1: {1}, 2: {2, 3, 2, 3}, 3: {3, 3, 3, 1, 3, 3, 1, 3},
		4: {4, 4}} {
		e := epochs{counts: counts}
		if got := e.usual(); got != want {
			t.Errorf("usual of %v is %d, want %d", counts, got, want)
		}
	}
}

func TestFixesThatWereHeldUpAreNotShown(t *testing.T) {
	clk := &handClock{}
	c := primed(clk)
	feed := func(receiver, arrival time.Duration) string {
		c.take(fixAt(receiver, receiver.Seconds()), int64(arrival))
		clk.set(arrival + quiet)
		return speedOf(c.Tick())
	}
	const ms = time.Millisecond
	for i := time.Duration(0); i < 10; i++ {
		if got := feed(i*200*ms, i*200*ms+i%3*100*ms); got == "none" {
			t.Fatalf("an ordinary fix with some jitter was left out: %d", i)
		}
	}
	// A stall of 3 s, then everything at once.
	for i := time.Duration(10); i < 23; i++ {
		if got := feed(i*200*ms, 5000*ms+i*ms); got != "none" {
			t.Errorf("fix of %v shown at 5 s as new: %s", i*200*ms, got)
		}
	}
	if g := c.Tick(); *g.FixAgeMs < 3000 {
		t.Errorf("age %v after a stall of 3 s", *g.FixAgeMs)
	}
	if got := feed(5000*ms, 5100*ms); got != "5" {
		t.Errorf("the first fix in time after the stall: %s", got)
	}
	// The receiver's clock steps back by 2 s and stays there.
	shown := time.Duration(0)
	for i := time.Duration(0); i < 100 && shown == 0; i++ {
		if feed(3200*ms+i*200*ms, 5300*ms+i*200*ms) != "none" {
			shown = i * 200 * ms
		}
	}
	if shown == 0 || shown > maxCatchUp+time.Second {
		t.Errorf("after a step of the receiver's clock fixes are shown after %v", shown)
	}
}

func TestClockDriftIsNoDelay(t *testing.T) {
	clk := &handClock{}
	c := primed(clk)
	for i := range 20_000 { // 100 ppm over five and a half hours
		receiver := time.Duration(i) * time.Second
		arrival := receiver + receiver/10_000
		c.take(fixAt(receiver, 1), int64(arrival))
		clk.set(arrival + quiet)
		if g := c.Tick(); g.SpeedMps == nil {
			t.Fatalf("a fix was left out after %v", receiver)
		}
	}
}

func TestRate(t *testing.T) {
	clk := &handClock{}
	c := primed(clk)
	for i := range 30 {
		at := time.Duration(i) * 200 * time.Millisecond
		if i < 5 != (c.RateHz() == nil) {
			t.Fatalf("rate after %d fixes: %v", i, c.RateHz())
		}
		c.take(fixAt(at, 1), int64(at))
		clk.set(at + quiet)
	}
	if r := c.RateHz(); r == nil || *r < 4.99 || *r > 5.01 {
		t.Errorf("rate %v, want 5", r)
	}
	clk.set(9 * time.Second)
	if c.RateHz() != nil {
		t.Error("a rate though nothing comes")
	}
}

// TestClientAsksReconnectsAndGivesUpOnSilence runs the client against a
// server that speaks as gpsd does.
func TestClientAsksReconnectsAndGivesUpOnSilence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := New(l.Addr().String(), clock.System{})
	c.epochs.counts = []int{1}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for round := range 2 {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		request := make([]byte, len(watch))
		if _, err := io.ReadFull(conn, request); err != nil || string(request) != watch {
			t.Fatalf("round %d: asked %q, %v", round, request, err)
		}
		if g := c.Tick(); g.Connected {
			t.Error("connected before gpsd has said anything")
		}
		fmt.Fprintf(conn, `{"class":"VERSION","release":"3.22"}`+"\r\n%s\r\n",
			fixAt(time.Duration(round)*10*time.Second, float64(round)))
		if round == 0 {
			// Silent from now on: it is asked once more and then given up.
			request = make([]byte, len(version))
			if _, err := io.ReadFull(conn, request); err != nil || string(request) != version {
				t.Fatalf("asked %q, %v", request, err)
			}
			if _, err := conn.Read(request); !errors.Is(err, io.EOF) {
				t.Errorf("the silent connection is kept: %v", err)
			}
			if g := c.Tick(); g.Connected || speedOf(g) != "0" {
				t.Errorf("after the connection: %+v", g)
			}
		} else {
			for range 1000 {
				if g := c.Tick(); speedOf(g) == "1" {
					cancel()
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; !errors.Is(err, context.Canceled) || ctx.Err() == nil {
		t.Errorf("Run: %v", err)
	}
}

//attack:local a program of another user in gpsd's place, which tells places beyond the Earth, or has no end
func TestSplitter(t *testing.T) {
	var s splitter
	var got []string
	keep := func(line []byte) { got = append(got, string(line)) }
	for _, part := range []string{"a\nb", "c\n", "\n", "d"} {
		if err := s.add([]byte(part), keep); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Join(got, "|") != "a|bc|" {
		t.Errorf("lines %q", got)
	}
	if err := s.add(make([]byte, maxLineBytes+1), keep); err == nil {
		t.Error("an endless line was taken")
	}
}

// other is a line of gpsd that is of another receiver.
func other(line []byte) []byte {
	return bytes.ReplaceAll(line, []byte("/dev/gps"), []byte("/dev/other"))
}

// A gpsd with two receivers has one position, one speed and one mode: those of the receiver that
// it had a fix of first, until that has none for a while.
func TestOneOfTwoReceiversIsFollowed(t *testing.T) {
	clk := &handClock{}
	c := primed(clk)
	lost := []byte(`{"class":"TPV","device":"/dev/other","mode":1}`)
	sky := []byte(`{"class":"SKY","device":"/dev/other","uSat":3,"hdop":9}`)
	c.take([]byte(`{"class":"SKY","device":"/dev/gps","uSat":8}`), 0)
	at := func(s float64) int64 { return int64(s * 1e9) }
	for i := range 5 {
		s := float64(i)
		c.take(fixAt(time.Duration(at(s)), 10), at(s))
		c.take(other(fixAt(time.Duration(at(s)), 20)), at(s+0.01))
		c.take(sky, at(s+0.02))
		c.take(lost, at(s+0.03))
		clk.set(time.Duration(at(s + 0.5)))
		if g := c.Tick(); speedOf(g) != "10" || g.Mode != 3 || *g.SatellitesUsed != 8 || g.HDOP != nil {
			t.Errorf("second %g: %+v", s, g)
		}
	}
	for i := range 8 { // the first falls silent
		s := float64(5 + i)
		c.take(other(fixAt(time.Duration(at(s)), 20)), at(s+0.01))
		clk.set(time.Duration(at(s + 0.5)))
		// Before its third fix it is not known how many reports the other's have.
		g, want := c.Tick(), s+0.01-4 > receiverGone.Seconds()+2
		if (speedOf(g) == "20") != want || want && g.SatellitesUsed != nil {
			t.Errorf("%g s after the last fix of the first: %+v", s-4, g)
		}
	}
}

// A receiver that hangs repeats its time, or tells a mode and no place: another one is followed
// then, and the one that hangs is not again when the other pauses.
func TestAReceiverThatHangsHidesNoOther(t *testing.T) {
	noPlace := []byte(`{"class":"TPV","device":"/dev/gps","mode":3}`)
	for name, hung := range map[string][]byte{"repeats its time": fixAt(0, 10), "tells no place": noPlace} {
		clk := &handClock{}
		c := primed(clk)
		c.take(fixAt(0, 10), 0)
		shown, afterPause := 0, 0
		for i := range 60 {
			at := time.Duration(i+1) * time.Second
			c.take(hung, int64(at))
			if i < 30 || i >= 40 {
				c.take(other(fixAt(at, 20)), int64(at)+10e6)
			}
			clk.set(at + 500*time.Millisecond)
			switch g := c.Tick(); {
			case speedOf(g) == "20" && i < 30:
				shown++
			case speedOf(g) == "20":
				afterPause++
			case speedOf(g) == "10" && i > 5:
				t.Errorf("%s, second %d: the old fix is shown as new", name, i)
			}
		}
		if shown != 30-4-2 || afterPause != 20 {
			t.Errorf("%s: %d and, after a pause, %d of the other's fixes are shown, want 24 and 20", name, shown,
				afterPause)
		}
	}
}

// How many fixes come in a second, and reports in an epoch, is not known of the next receiver
// that is followed, be it beside the first or at a gpsd that was started again.
func TestTheNextReceiverHasItsOwnRateAndReports(t *testing.T) {
	for name, restarted := range map[string]bool{"the first is silent": false, "gpsd is started again": true} {
		clk := &handClock{}
		c := primed(clk)
		at := time.Duration(0)
		for range 30 {
			at += 100 * time.Millisecond
			c.take(fixAt(at, 10), int64(at))
			clk.set(at + quiet)
			c.Tick()
		}
		if r := c.RateHz(); r == nil || *r < 9.9 {
			t.Fatalf("%s: rate %v of the first, want 10", name, r)
		}
		if restarted {
			c.disconnect()
		} else {
			at += receiverGone
		}
		shown := 0
		for i := range 12 {
			at += time.Second
			for report, speed := range []float64{14.7, 20} {
				c.take(other(fixAt(at, speed)), int64(at)+int64(report)*400e6)
				clk.set(at + time.Duration(report)*400*time.Millisecond + 200*time.Millisecond)
				switch g := c.Tick(); speedOf(g) {
				case "14.7":
					t.Errorf("%s: fix %d is shown before it is whole", name, i)
				case "20":
					shown++
				}
			}
			if r := c.RateHz(); r != nil && (*r < 0.9 || *r > 1.1) {
				t.Errorf("%s: rate %v after %d fixes, want 1", name, *r, i+1)
			}
		}
		if shown != 10 {
			t.Errorf("%s: %d fixes are shown, want 10 of 12", name, shown)
		}
	}
}

// Satellites that were told before the first fix are the receiver's that has it, or nobody's.
func TestSatellitesAreOfTheReceiverThatHasTheFix(t *testing.T) {
	sky := func(device, said string) []byte {
		return fmt.Appendf(nil, `{"class":"SKY","device":"%s",%s}`, device, said)
	}
	for name, c := range map[string]struct {
		told       [][]byte
		used, hdop string
	}{
		"its own":         {[][]byte{sky("/dev/gps", `"uSat":8`), sky("/dev/gps", `"hdop":1.5`)}, "8", "1.5"},
		"another's":       {[][]byte{sky("/dev/other", `"uSat":3,"hdop":9`)}, "none", "none"},
		"its and another": {[][]byte{sky("/dev/gps", `"uSat":8`), sky("/dev/other", `"hdop":9`)}, "none", "none"},
		"another and its": {[][]byte{sky("/dev/other", `"uSat":3`), sky("/dev/gps", `"hdop":1.5`)}, "none", "1.5"},
		"unnamed within another's": {[][]byte{sky("/dev/other", `"uSat":3`), sky("", `"hdop":9`)},
			"none", "none"},
	} {
		clk := &handClock{}
		client := primed(clk)
		for _, line := range append(c.told, fixAt(0, 10)) {
			client.take(line, 0)
		}
		clk.set(quiet)
		g, used, hdop := client.Tick(), "none", "none"
		if g.SatellitesUsed != nil {
			used = fmt.Sprint(*g.SatellitesUsed)
		}
		if g.HDOP != nil {
			hdop = fmt.Sprint(*g.HDOP)
		}
		if speedOf(g) != "10" || used != c.used || hdop != c.hdop {
			t.Errorf("%s: speed %s, %s satellites, HDOP %s, want %s and %s", name, speedOf(g), used, hdop,
				c.used, c.hdop)
		}
	}
}
