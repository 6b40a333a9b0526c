//go:build e2e

package journeys

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/rehearsal/nmea"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const (
	feedEvery = 100 * time.Millisecond
	// accelMps2 is brisker than any car, to spare the tests the time.
	accelMps2 = 8
)

// receiver is a GPS receiver on a line that a real gpsd reads. Its track is
// that of a car which drives due east, or back at a speed below 0, and keeps the speed that it is told.
type receiver struct {
	line *os.File
	path string
	ns   *testnet.NS
	gpsd *testnet.Running

	mu      sync.Mutex
	target  float64
	speed   float64
	eastM   float64
	written map[string]int64 // time of an epoch, as gpsd words it → boot clock when it was written
}

// newReceiver starts a gpsd in the namespace, with a receiver that has a fix.
func newReceiver(t *testing.T, ns *testnet.NS) *receiver {
	t.Helper()
	r := &receiver{ns: ns, written: map[string]int64{}}
	r.line, r.path = testnet.Terminal(t)
	r.startGPSD(t)
	t.Cleanup(func() { r.pause(t, false) }) // a stopped one would not end
	testnet.Background(t, r.feed)
	return r
}

func (r *receiver) startGPSD(t *testing.T) {
	t.Helper()
	cmd := exec.Command("ip", "netns", "exec", r.ns.Name, "gpsd", "-N", "-n", "-b", "-S", "2947", r.path)
	// gpsd exports its state in the machine's one piece of shared memory;
	// another gpsd may be at work here.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWIPC}
	r.gpsd = testnet.Start(t, cmd)
}

// killGPSD ends gpsd as a crash does.
func (r *receiver) killGPSD(t *testing.T) {
	t.Helper()
	if err := r.gpsd.Cmd.Process.Kill(); err != nil {
		t.Errorf("kill gpsd: %v", err)
	}
}

// drive tells the car its speed.
func (r *receiver) drive(speedMps float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = speedMps
}

// atM is how far the car is from where it set off.
func (r *receiver) atM() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.eastM
}

// put sets the car down so far from where it set off.
func (r *receiver) put(eastM float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.eastM = eastM
}

// stands reports whether the car has come to a stand, as it was told.
func (r *receiver) stands() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.target == 0 && r.speed == 0
}

// pause stops gpsd where it is, or lets it go on.
func (r *receiver) pause(t *testing.T, on bool) {
	t.Helper()
	signal := syscall.SIGCONT
	if on {
		signal = syscall.SIGSTOP
	}
	if err := r.gpsd.Cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signal gpsd: %v", err)
	}
}

// feed writes an epoch at every tenth of a second of the wall clock.
func (r *receiver) feed(ctx context.Context) error {
	for {
		now := time.Now()
		epoch := now.Truncate(feedEvery).Add(feedEvery)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(epoch.Sub(now)):
		}
		if err := r.tell(epoch); err != nil {
			return err
		}
	}
}

func (r *receiver) tell(epoch time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	step := feedEvery.Seconds()
	change := math.Max(-accelMps2*step, math.Min(accelMps2*step, r.target-r.speed))
	r.eastM += (r.speed + change/2) * step
	r.speed += change
	track := 90.0
	if r.speed < 0 {
		track = 270
	}
	const perDegree = 111_195 // metres of a degree on a sphere of the Earth's mean radius
	f := nmea.Fix{
		Time: epoch, Valid: true, LatDeg: 50, LonDeg: 8 + r.eastM/(perDegree*math.Cos(50*math.Pi/180)),
		AltM: 100, GeoidM: 48, SpeedMps: math.Abs(r.speed), TrackDeg: track,
		Satellites: []int{2, 5, 7, 13, 15, 18, 21, 24, 29}, PDOP: 1.6, HDOP: 0.9, VDOP: 1.3,
	}
	r.written[epoch.UTC().Format("2006-01-02T15:04:05.000Z")] = testnet.BootNs()
	return r.write(nmea.Epoch(f))
}

// write tries once: a receiver does not wait for its reader.
func (r *receiver) write(text []byte) error {
	raw, err := r.line.SyscallConn()
	if err != nil {
		return err
	}
	var werr error
	err = raw.Write(func(fd uintptr) bool {
		_, werr = unix.Write(int(fd), text)
		return true
	})
	if errors.Is(werr, unix.EAGAIN) {
		werr = nil
	}
	return errors.Join(err, werr)
}

// writtenAt is when the epoch of a fix was written, by the boot clock.
func (r *receiver) writtenAt(utc string) (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ns, ok := r.written[utc]
	return ns, ok
}
