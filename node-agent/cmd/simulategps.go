package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/pause"
)

// SimulateGPSCommand is `fieldmesh-agent simulate-gps`: a track for a desk, where nobody drives.
func SimulateGPSCommand() *cobra.Command {
	var track simulatedTrack
	var listen string
	c := &cobra.Command{Use: "simulate-gps", Args: flags.None, RunE: func(c *cobra.Command, _ []string) error {
		if err := track.check(); err != nil {
			return err
		}
		if err := flags.Address("listen", listen, "127.0.0.1:2947"); err != nil {
			return err
		}
		l, err := (&net.ListenConfig{}).Listen(c.Context(), "tcp", listen)
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%w; stop gpsd first (`sudo systemctl stop gpsd.socket gpsd`), or name another "+
				"address by --listen, and in agent.yaml by `gpsd`", err)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "simulated GPS at %s: %v m/s, %g s each, until Ctrl-C\n", l.Addr(),
			track.speedsMps, track.holdS)
		return errors.Join(err, track.serve(c.Context(), l))
	}}
	c.Flags().Float64SliceVar(&track.speedsMps, "speeds-mps", []float64{2.8, 5.6, 8.3, 11.1, 13.9, 16.7},
		"speeds in turn, in m/s")
	c.Flags().Float64Var(&track.holdS, "hold-s", 9, "how long each speed is held")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:2947", "where to answer, as gpsd would")
	return c
}

// simulatedTrack leads along a straight line, east and back again, at each speed in turn.
type simulatedTrack struct {
	speedsMps []float64
	holdS     float64
}

// The line begins nowhere in particular.
const (
	simulatedLatDeg = 50.0
	simulatedLonDeg = 8.0
	metresPerDegree = 111_320.0 // of latitude, and of longitude at the equator
)

const simulatedEvery = 100 * time.Millisecond

func (tr simulatedTrack) check() error {
	fast := slices.IndexFunc(tr.speedsMps, func(v float64) bool { return !(v >= 0 && v <= 60) })
	switch {
	case len(tr.speedsMps) == 0:
		return errors.New("--speeds-mps: name at least one speed")
	case fast >= 0:
		return fmt.Errorf("--speeds-mps %g: expected 0 to 60 m/s", tr.speedsMps[fast])
	case !(tr.holdS >= 1 && tr.holdS <= 3600):
		return fmt.Errorf("--hold-s %g: expected 1 to 3600 seconds", tr.holdS)
	}
	return nil
}

// simulatedFix is gpsd's TPV report (gpsd_json(5)).
type simulatedFix struct {
	Class    string  `json:"class"`
	Device   string  `json:"device"`
	Mode     int     `json:"mode"`
	Time     string  `json:"time"`
	LatDeg   float64 `json:"lat"`
	LonDeg   float64 `json:"lon"`
	SpeedMps float64 `json:"speed"`
	TrackDeg float64 `json:"track"`
}

// at is where the track is after some time, without the time of day.
func (tr simulatedTrack) at(sinceS float64) simulatedFix {
	roundS := tr.holdS * float64(len(tr.speedsMps))
	round := math.Floor(sinceS / roundS)
	leftS := sinceS - round*roundS
	speed := tr.speedsMps[min(int(leftS/tr.holdS), len(tr.speedsMps)-1)]
	var goneM, roundM float64
	for _, v := range tr.speedsMps {
		heldS := min(max(leftS, 0), tr.holdS)
		goneM, roundM, leftS = goneM+v*heldS, roundM+v*tr.holdS, leftS-heldS
	}
	trackDeg := 90.0
	if math.Mod(round, 2) == 1 {
		goneM, trackDeg = roundM-goneM, 270
	}
	return simulatedFix{Class: "TPV", Device: "simulated", Mode: 3, LatDeg: simulatedLatDeg,
		LonDeg:   simulatedLonDeg + goneM/(metresPerDegree*math.Cos(simulatedLatDeg*math.Pi/180)),
		SpeedMps: speed, TrackDeg: trackDeg}
}

// serve tells everybody who connects where the track is, until ctx ends.
func (tr simulatedTrack) serve(ctx context.Context, l net.Listener) error {
	started := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	g.Go(func() error {
		for {
			conn, err := l.Accept()
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return fmt.Errorf("accept a reader of the track: %w", err)
			}
			g.Go(func() error {
				defer conn.Close()
				tr.tell(ctx, conn, started)
				return nil // a reader that is gone ends nothing
			})
		}
	})
	return g.Wait()
}

// tell writes fixes until the reader or ctx ends.
func (tr simulatedTrack) tell(ctx context.Context, conn net.Conn, started time.Time) {
	out := json.NewEncoder(conn)
	for pause.For(ctx, simulatedEvery) == nil {
		now := time.Now()
		fix := tr.at(now.Sub(started).Seconds())
		fix.Time = now.UTC().Format("2006-01-02T15:04:05.000Z")
		if conn.SetWriteDeadline(now.Add(time.Second)) != nil || out.Encode(fix) != nil {
			return
		}
	}
}
