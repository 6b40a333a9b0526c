package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/gps"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/node-agent/provenance"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// logFlags are what `fieldmesh-agent log` is told; it needs no configuration
// file and no root.
type logFlags struct {
	node, dir, iface, gpsd string
	forS                   float64
	influx                 influxFlags
}

// LogCommand is `fieldmesh-agent log`: GPS and interface counters onto the
// disk at 10 Hz, with no controller at all.
func LogCommand() *cobra.Command {
	f := logFlags{}
	c := &cobra.Command{Use: "log", Args: flags.None, RunE: func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		if f.forS < 0 {
			return fmt.Errorf("--for-s %g: expected 0 or more seconds", f.forS)
		}
		if f.forS > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(f.forS*float64(time.Second)))
			defer cancel()
		}
		return keepLog(ctx, f, c.OutOrStdout())
	}}
	host, err := os.Hostname()
	if err != nil {
		host = "node"
	}
	c.Flags().StringVar(&f.node, "node", host, "name of this node in the records")
	c.Flags().StringVar(&f.dir, "dir", "fieldmesh-log", "folder for the records; one that exists is resumed")
	c.Flags().StringVar(&f.iface, "interface", "wlan0", "interface whose counters are recorded")
	c.Flags().StringVar(&f.gpsd, "gpsd", "127.0.0.1:2947", "where gpsd answers")
	c.Flags().Float64Var(&f.forS, "for-s", 0, "stop after so many seconds (default: on Ctrl-C)")
	f.influx.add(c)
	return c
}

func keepLog(ctx context.Context, f logFlags, out io.Writer) (err error) {
	if _, err := net.InterfaceByName(f.iface); err != nil {
		if _, err := fmt.Fprintf(out, "there is no interface %s yet; its counters are recorded when it comes; "+
			"--interface names another\n", f.iface); err != nil {
			return fmt.Errorf("warn: %w", err)
		}
	}
	clk := clock.System{}
	sp, err := spool.Open(f.dir, f.node, spool.Options{Damaged: func(d spool.Damage) (wire.Header, wire.Body) {
		return wire.Header{TBootNs: clk.BootNs()}, &wire.Event{Level: "error", Text: d.String()}
	}})
	if err != nil {
		return fmt.Errorf("%w; --dir names another folder", err)
	}
	defer func() { err = errors.Join(err, sp.Close()) }()
	if err := warnOfDamage(sp.Recovered(), out); err != nil {
		return err
	}
	receiver := gps.New(f.gpsd, clk)
	emit := func(tBootNs int64, b wire.Body) error {
		_, err := sp.Append(wire.Header{TBootNs: tBootNs}, b)
		return err
	}
	p := provenance.New(ctx, f.iface, nil, nil).Read(ctx)
	if err := emit(clk.BootNs(), &p); err != nil {
		return err
	}
	// The wall clock beside the boot clock, so that the log can be dated.
	now := clk.BootNs()
	if err := emit(now, &wire.Clock{Peer: f.node, OwnWallOffsetNs: new(clk.Wall().UnixNano() - now)}); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return unlessEnded(gctx, receiver.Run(gctx)) })
	sources := []measure.Source{receiver, measure.NewInterface(f.iface),
		clock.NewWatch(clk, version.Built(), receiver.BehindBoot, nil)} // a step changes the log's dates
	g.Go(func() error {
		return unlessEnded(gctx, measure.Loop(gctx, clk, 100*time.Millisecond, sources, emit))
	})
	g.Go(func() error { return showLog(gctx, sp, receiver, out) })
	if err := f.influx.follow(gctx, g, sp, clk); err != nil {
		return err
	}
	err = g.Wait()
	_, perr := fmt.Fprintf(out, "%d records are in %[2]s\nnext: fieldmesh collect %[2]s\n", sp.Position().Seq, f.dir)
	return errors.Join(err, perr)
}

// warnOfDamage says what was found damaged in a folder that is resumed.
func warnOfDamage(r spool.Recovery, out io.Writer) error {
	var found []string
	for _, d := range r.Damaged {
		found = append(found, d.String())
	}
	if cut := r.Cut(); cut != "" {
		found = append(found, cut)
	}
	for _, what := range found {
		if _, err := fmt.Fprintln(out, what); err != nil {
			return fmt.Errorf("warn: %w", err)
		}
	}
	return nil
}

// unlessEnded is err, but not the one that only says that ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// showLog says once in a while that records are being made, and of what.
func showLog(ctx context.Context, sp *spool.Spool, receiver *gps.Client, out io.Writer) error {
	for pause.For(ctx, 2*time.Second) == nil {
		fix, _ := receiver.Last()
		state := "gpsd does not answer"
		switch {
		case fix.Connected && fix.Mode >= 2 && fix.SpeedMps != nil:
			state = fmt.Sprintf("%.1f m/s, fix %d-D", *fix.SpeedMps, fix.Mode)
		case fix.Connected:
			state = "no GPS fix"
		}
		if _, err := fmt.Fprintf(out, "%d records  %s\n", sp.Position().Seq, state); err != nil {
			return fmt.Errorf("show progress: %w", err)
		}
	}
	return nil
}
