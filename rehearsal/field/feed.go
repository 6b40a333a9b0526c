package field

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
	"fieldmesh.dev/fieldmesh/rehearsal/nmea"
	"golang.org/x/sys/unix"
)

// The receiver that the field emulates: an ordinary single-frequency one under
// open sky. The figures only fill the sentences; the position is exact, and
// what an antenna in a car adds to it is left out.
var receiver = struct {
	satellites       []int
	pdop, hdop, vdop float64
	altM, geoidM     float64
}{[]int{2, 5, 7, 13, 15, 18, 21, 24, 29}, 1.6, 0.9, 1.3, 100, 48}

// receiverState is what a fault makes of the receiver.
type receiverState int32

const (
	receiverFix    receiverState = iota
	receiverNoFix                // reports, but has lost its satellites
	receiverSilent               // says nothing at all
)

// feed is one node's emulated GPS receiver: it writes NMEA at its rate from
// where the node is, whoever listens.
type feed struct {
	hz     float64
	where  func(boot time.Duration) (mobility.Site, mobility.State)
	state  atomic.Int32
	missed atomic.Uint64 // epochs that the line did not take
}

func (f *feed) set(s receiverState) { f.state.Store(int32(s)) }

// run writes epochs at multiples of the period of wall time, as receivers do,
// until ctx ends. line must not block.
func (f *feed) run(ctx context.Context, line io.Writer) error {
	period := time.Duration(float64(time.Second) / f.hz)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		now := time.Now()
		tick := now.Truncate(period).Add(period)
		timer.Reset(tick.Sub(now))
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := f.write(line, tick); err != nil {
			return err
		}
	}
}

func (f *feed) write(line io.Writer, tick time.Time) error {
	state := receiverState(f.state.Load())
	if state == receiverSilent {
		return nil
	}
	boot, err := bootNow()
	if err != nil {
		return err
	}
	_, err = line.Write(nmea.Epoch(f.fix(tick, boot-time.Since(tick), state)))
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, io.ErrShortWrite) {
		f.missed.Add(1) // the line is full: gpsd is not reading
		return nil
	}
	if err != nil {
		return fmt.Errorf("write NMEA: %w", err)
	}
	return nil
}

func (f *feed) fix(tick time.Time, boot time.Duration, state receiverState) nmea.Fix {
	site, s := f.where(boot)
	lat, lon := site.LatLon(s.XM, s.YM)
	return nmea.Fix{
		Time: tick, Valid: state == receiverFix, LatDeg: lat, LonDeg: lon,
		AltM: receiver.altM, GeoidM: receiver.geoidM, SpeedMps: s.SpeedMps, TrackDeg: s.TrackDeg,
		Satellites: receiver.satellites, PDOP: receiver.pdop, HDOP: receiver.hdop, VDOP: receiver.vdop,
	}
}

// lossyLine tries a write once and gives it up when the line is full: a
// receiver does not wait for its reader.
type lossyLine struct{ raw syscall.RawConn }

func (l lossyLine) Write(b []byte) (n int, err error) {
	outer := l.raw.Write(func(fd uintptr) bool {
		n, err = unix.Write(int(fd), b)
		return true
	})
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return max(n, 0), errors.Join(outer, err)
}
