//go:build e2e

package gps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// receiver is a pseudo-terminal that plays a GPS receiver to a real gpsd.
type receiver struct {
	master *os.File
	gpsd   *exec.Cmd
	addr   string
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	testnet.Need(t, "gpsd")
	gpsd, err := exec.LookPath("gpsd")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(testnet.FreePort(t))
	r := &receiver{addr: "127.0.0.1:" + port}
	var terminal string
	r.master, terminal = testnet.Terminal(t)
	// -b: read only; gpsd would otherwise probe for the receiver's make.
	r.gpsd = exec.Command(gpsd, "-N", "-n", "-b", "-S", port, terminal)
	if err := r.gpsd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.gpsd.Process.Kill()
		_ = r.gpsd.Wait()
	})
	return r
}

func (r *receiver) send(t *testing.T, sentences ...string) {
	t.Helper()
	for _, s := range sentences {
		if _, err := r.master.WriteString(s); err != nil {
			t.Fatal(err)
		}
	}
}

// sentence adds the frame of NMEA 0183: $, checksum, line end.
func sentence(body string) string {
	sum := byte(0)
	for _, c := range []byte(body) {
		sum ^= c
	}
	return fmt.Sprintf("$%s*%02X\r\n", body, sum)
}

const metersPerSecondPerKnot = 1852. / 3600 // the international nautical mile, by the hour

// track is a car that drives north at a speed, as NMEA at one instant.
func track(at time.Time, metersPerSecond float64) []string {
	at = at.UTC()
	clockText := at.Format("150405.00")
	minutes := 6 + float64(at.UnixMilli()%60_000)/60_000
	lat := fmt.Sprintf("52%07.4f,N,01136.0000,E", minutes)
	return []string{
		sentence(fmt.Sprintf("GPRMC,%s,A,%s,%.3f,0.0,%s,,", clockText, lat, metersPerSecond/metersPerSecondPerKnot,
			at.Format("020106"))),
		sentence(fmt.Sprintf("GPGGA,%s,%s,1,08,0.9,50.0,M,45.0,M,,", clockText, lat)),
		sentence("GPGSA,A,3,01,02,03,04,05,06,07,08,,,,,1.8,0.9,1.5"),
		// gpsd reports satellites and HDOP only when it has GSV.
		sentence("GPGSV,2,1,08,01,40,083,46,02,17,308,41,03,07,344,39,04,22,228,45"),
		sentence("GPGSV,2,2,08,05,40,083,46,06,17,308,41,07,07,344,39,08,22,228,45"),
	}
}

// follow runs a client of the receiver's gpsd.
func follow(t *testing.T, r *receiver) *Client {
	t.Helper()
	c := New(r.addr, clock.System{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
	})
	for range 2000 {
		if c.Tick().Connected {
			return c
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("gpsd did not answer")
	return nil
}

// ticks collects the client's ticks every 20 ms for a while.
func ticks(c *Client, d time.Duration) []wire.GPS {
	var out []wire.GPS
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		out = append(out, c.Tick())
	}
	return out
}

// drive sends a track whose speed is a function of the receiver's time, five
// times a second, until stopped.
func drive(t *testing.T, r *receiver, speed func(time.Time) float64) (stop func()) {
	t.Helper()
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		beat := time.NewTicker(200 * time.Millisecond)
		defer beat.Stop()
		for {
			select {
			case <-quit:
				return
			case <-beat.C:
			}
			now := time.Now().Truncate(10 * time.Millisecond)
			for _, s := range track(now, speed(now)) {
				if _, err := r.master.WriteString(s); err != nil {
					return // the test has ended and closed it
				}
			}
		}
	}()
	return func() { close(quit); <-ended }
}

func speedAt(at time.Time) float64 { return 2.8 + float64(at.UTC().UnixMilli()%10_000)/1000 }

// timeOf returns the receiver's own time of a fix.
func timeOf(t *testing.T, g wire.GPS) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, g.TimeUTC)
	if err != nil {
		t.Fatalf("time %q: %v", g.TimeUTC, err)
	}
	return at
}

func TestSpeedsOfARealGpsd(t *testing.T) {
	r := startReceiver(t)
	stop := drive(t, r, speedAt)
	defer stop()
	c := follow(t, r)
	fixes, aged := 0, 0
	var stall time.Time // after which fixes that waited for the machine come, for a while
	for began, last := time.Now(), time.Now(); time.Since(began) < 6*time.Second; time.Sleep(20 * time.Millisecond) {
		g, now := c.Tick(), time.Now()
		if now.Sub(last) > quiet {
			stall = now
		}
		last = now
		if g.SpeedMps == nil {
			continue
		}
		fixes++
		at := timeOf(t, g)
		if want := speedAt(at); math.Abs(*g.SpeedMps-want) > 0.01 {
			t.Errorf("at %s gpsd says %.3f m/s, the track was driven at %.3f", g.TimeUTC, *g.SpeedMps, want)
		}
		if g.Mode != 3 || g.LatDeg == nil || *g.LatDeg < 52 || *g.LatDeg > 53 {
			t.Errorf("fix of %s: mode %d, position %+v", g.TimeUTC, g.Mode, g)
		}
		if now.Sub(stall) < 2*time.Second {
			continue
		}
		aged++
		// How young it may be depends on when the next one came: the unit tests have that.
		if *g.FixAgeMs > 1000 {
			t.Errorf("fix of %s: age %g ms", g.TimeUTC, *g.FixAgeMs)
		}
	}
	if fixes < 15 {
		t.Errorf("%d fixes in 6 s at 5 Hz", fixes)
	}
	if aged == 0 {
		t.Skip("the machine stood still again and again: no fix has an age that could be held")
	}
	// Of a receiver that stood still, as its machine did, there were fewer.
	if rate := c.RateHz(); rate == nil || *rate < 4 && stall.IsZero() || *rate > 6 {
		t.Errorf("rate %v, want about 5", rate)
	}
	last, ok := c.Last()
	if !ok || last.SatellitesUsed == nil || last.HDOP == nil || *last.HDOP != 0.9 {
		t.Errorf("satellites of %+v", last)
	}
}

func TestStoppedGpsdShowsNoSpeed(t *testing.T) {
	r := startReceiver(t)
	stop := drive(t, r, speedAt)
	defer stop()
	c := follow(t, r)
	before := ticks(c, 3*time.Second)
	if last, ok := c.Last(); !ok || *last.FixAgeMs > 1000 {
		t.Fatalf("no fresh fix after 3 s: %+v, %d ticks", last, len(before))
	}
	if err := r.gpsd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ticks(c, 300*time.Millisecond) // what was on its way when gpsd stopped
	age := -1.
	for _, g := range ticks(c, 2700*time.Millisecond) {
		if g.SpeedMps != nil || g.LatDeg != nil || g.FixBootNs != nil {
			t.Errorf("a fix while gpsd is stopped: %+v", g)
		}
		if g.FixAgeMs == nil || *g.FixAgeMs <= age {
			t.Fatalf("the fix's age does not grow: %v after %v", g.FixAgeMs, age)
		}
		age = *g.FixAgeMs
	}
	if age < 2700 {
		t.Errorf("age %v ms after 3 s", age)
	}
	if err := r.gpsd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	fresh := 0
	for _, g := range ticks(c, 4*time.Second) {
		if g.SpeedMps == nil {
			continue
		}
		fresh++
		at := timeOf(t, g)
		arrived := time.Now().Add(time.Duration(*g.FixBootNs - clock.System{}.BootNs()))
		if late := arrived.Sub(at); late > time.Second {
			t.Errorf("fix of %s shown %v later", g.TimeUTC, late)
		}
	}
	if fresh < 5 {
		t.Errorf("%d fixes in the 4 s after gpsd went on", fresh)
	}
}

// recorded reads RMC sentences by itself: time of day → speed in m/s. A time
// with two speeds is left out.
func recorded(data []byte) map[string]float64 {
	speeds, doubtful := map[string]float64{}, map[string]bool{}
	for _, line := range strings.Split(string(data), "\n") {
		body, sum, ok := strings.Cut(strings.TrimSpace(line), "*")
		if !ok || !strings.HasPrefix(body, "$") || sentence(body[1:]) != body+"*"+strings.ToUpper(sum)+"\r\n" {
			continue
		}
		f := strings.Split(body, ",")
		if len(f) < 10 || !strings.HasSuffix(f[0], "RMC") || f[2] != "A" || len(f[1]) < 6 {
			continue
		}
		knots, err := strconv.ParseFloat(f[7], 64)
		if err != nil {
			continue
		}
		at := timeOfDay(f[1])
		if old, seen := speeds[at]; seen && old != knots*metersPerSecondPerKnot {
			doubtful[at] = true
		}
		speeds[at] = knots * metersPerSecondPerKnot
	}
	for at := range doubtful {
		delete(speeds, at)
	}
	return speeds
}

// timeOfDay makes hhmmss and hhmmss.sss one text in milliseconds.
func timeOfDay(hhmmss string) string {
	seconds, err := strconv.ParseFloat(hhmmss[4:], 64)
	if err != nil {
		return "?"
	}
	return fmt.Sprintf("%s:%06.3f", hhmmss[:4], seconds)
}

func TestRecordingsThroughARealGpsd(t *testing.T) {
	files, err := filepath.Glob("testdata/*.nmea")
	if err != nil || len(files) == 0 {
		t.Fatalf("recordings: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			data = data[:min(len(data), 45_000)]
			want := recorded(data)
			r := startReceiver(t)
			c := follow(t, r)
			matched, fixes := 0, 0
			check := func() {
				g := c.Tick()
				if g.SpeedMps == nil {
					return
				}
				fixes++
				at, err := time.Parse(time.RFC3339Nano, g.TimeUTC)
				if err != nil {
					return // a fix without a time cannot be looked up
				}
				if speed, ok := want[timeOfDay(at.Format("150405.000"))]; ok {
					matched++
					// gpsd may take VTG's speed, which some receivers round otherwise.
					if math.Abs(speed-*g.SpeedMps) > 0.1 {
						t.Errorf("at %s gpsd says %.3f m/s, the recording %.3f", g.TimeUTC, *g.SpeedMps, speed)
					}
				}
			}
			play(t, r, data, check)
			t.Logf("%d times in the recording, %d fixes, %d of them matched", len(want), fixes, matched)
			if matched < min(len(want)/4, 20) || matched == 0 {
				t.Errorf("only %d of %d recorded speeds came through", matched, len(want))
			}
		})
	}
}

// play gives a receiver's sentences to gpsd, and looks at each what came of it.
func play(t *testing.T, r *receiver, data []byte, look func()) {
	t.Helper()
	for _, line := range bytes.SplitAfter(data, []byte("\n")) {
		r.send(t, string(line))
		time.Sleep(4 * time.Millisecond)
		look()
	}
	for range 50 {
		time.Sleep(10 * time.Millisecond)
		look()
	}
}

// A receiver that tells no speed has none, though gpsd works one out.
func TestASpeedThatGpsdWorksOutIsNone(t *testing.T) {
	for _, file := range []string{"testdata/quectel-eg25-g.nmea", "testdata/haicom-305N.nmea"} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var silent []byte
			for _, line := range strings.SplitAfter(string(data[:min(len(data), 45_000)]), "\n") {
				body, _, _ := strings.Cut(strings.TrimPrefix(line, "$"), "*")
				f := strings.Split(body, ",")
				switch {
				case strings.HasSuffix(f[0], "VTG"):
					continue
				case strings.HasSuffix(f[0], "RMC") && len(f) > 9:
					f[7], f[8] = "", ""
					line = sentence(strings.Join(f, ","))
				}
				silent = append(silent, line...)
			}
			r := startReceiver(t)
			c := follow(t, r)
			fixes := 0
			play(t, r, silent, func() {
				switch g := c.Tick(); {
				case g.SpeedMps != nil && *g.SpeedMps != 0:
					t.Errorf("at %s a speed of %.3f m/s", g.TimeUTC, *g.SpeedMps)
				case g.LatDeg != nil && g.TimeUTC != "":
					fixes++
				}
			})
			if t.Logf("%d fixes", fixes); fixes < 10 {
				t.Errorf("only %d fixes", fixes)
			}
		})
	}
}
