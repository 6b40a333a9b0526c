// Package gps is the emulated GPS receiver of a node: what it writes in NMEA on
// a line, and what gpsd, which reads the line, makes of it. Where the node is,
// and who runs gpsd, are the field's business.
package gps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
	"fieldmesh.dev/fieldmesh/rehearsal/nmea"
)

// model is an ordinary single-frequency receiver under open sky. The figures
// only fill the sentences; the position is exact, and what an antenna in a car
// adds to it is left out.
var model = struct {
	satellites       []int
	pdop, hdop, vdop float64
	altM, geoidM     float64
}{[]int{2, 5, 7, 13, 15, 18, 21, 24, 29}, 1.6, 0.9, 1.3, 100, 48}

// State is what a fault makes of a receiver.
type State int32

// The states.
const (
	Fix    State = iota
	NoFix        // reports, but has lost its satellites
	Silent       // says nothing at all
)

// Receiver is one node's: it writes NMEA on its line from where the node is, whoever
// listens.
type Receiver struct {
	Line io.Writer // must not block
	// Where is the node's place so long ago.
	Where func(ago time.Duration) (earth.Site, mobility.State, error)

	state  atomic.Int32
	missed atomic.Uint64
}

// State is what it was set to last.
func (r *Receiver) State() State { return State(r.state.Load()) }

// Set changes its state.
func (r *Receiver) Set(s State) { r.state.Store(int32(s)) }

// Missed is how many epochs the line has not taken since this was last asked.
func (r *Receiver) Missed() uint64 { return r.missed.Swap(0) }

// Run has receivers write epochs at multiples of the period of wall time, as
// receivers do, until ctx ends. All that are on one machine have one timer, of the
// kernel: Go's would wake the process twice for each epoch, and its scheduler's
// watcher in between.
func Run(ctx context.Context, hz float64, receivers []*Receiver) error {
	period := time.Duration(float64(time.Second) / hz)
	ticks, err := newTicks(period)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = ticks.file.Close() })
	defer stop()
	for {
		tick, err := ticks.next()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return errors.Join(err, ticks.file.Close())
		}
		for _, r := range receivers {
			if err := r.write(tick); err != nil {
				return errors.Join(err, ticks.file.Close())
			}
		}
	}
}

func (r *Receiver) write(tick time.Time) error {
	state := r.State()
	if state == Silent {
		return nil
	}
	site, s, err := r.Where(time.Since(tick))
	if err != nil {
		return err
	}
	lat, lon := site.LatLon(s.XM, s.YM)
	_, err = r.Line.Write(nmea.Epoch(nmea.Fix{
		Time: tick, Valid: state == Fix, LatDeg: lat, LonDeg: lon,
		AltM: model.altM, GeoidM: model.geoidM, SpeedMps: s.SpeedMps, TrackDeg: s.TrackDeg,
		Satellites: model.satellites, PDOP: model.pdop, HDOP: model.hdop, VDOP: model.vdop,
	}))
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, io.ErrShortWrite) {
		r.missed.Add(1) // the line is full: gpsd is not reading
		return nil
	}
	if err != nil {
		return fmt.Errorf("write NMEA: %w", err)
	}
	return nil
}
