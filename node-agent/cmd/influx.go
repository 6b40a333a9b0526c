package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
)

const (
	influxEvery = 500 * time.Millisecond // a batch of what was recorded in the meantime
	influxBatch = 5000
	influxGrace = 10 * time.Second // for the last records, once the log ends
)

// influxFlags name an InfluxDB. The password is never on the command line.
type influxFlags struct {
	target       influx.Target
	passwordFile string
}

func (f *influxFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.target.URL, "influx", "", "write to the InfluxDB at this URL too, http://HOST:PORT")
	c.Flags().StringVar(&f.target.Database, "database", "fieldmesh", "database in it; made when it is not there")
	c.Flags().StringVar(&f.target.User, "user", "", "user of the InfluxDB")
	c.Flags().StringVar(&f.passwordFile, "password-file", "", "file with the password, readable by its owner only "+
		"(default: $"+influx.PasswordVariable+")")
}

// follow writes what this log records to the database, when one is named, from
// the record after the newest that the spool holds now. The disk comes first:
// only durable records are sent, and a database that is away is waited for.
func (f *influxFlags) follow(ctx context.Context, g *errgroup.Group, sp *spool.Spool, clk clock.Clock) error {
	if f.target.URL == "" {
		return nil
	}
	w, err := influx.Open(f.target, f.passwordFile, logger())
	if err != nil {
		return err
	}
	s := &influxSender{spool: sp, writer: w, encoder: influx.NewEncoder(), after: sp.Position().Seq}
	// One offset for the whole log: a step of the wall clock moves no record.
	s.wallOffsetNs = clk.Wall().UnixNano() - clk.BootNs()
	g.Go(func() error { return s.run(ctx) })
	return nil
}

// influxSender carries a spool's records to a database.
type influxSender struct {
	spool        *spool.Spool
	writer       *influx.Writer
	encoder      *influx.Encoder
	wallOffsetNs int64
	after        uint64 // acknowledged up to here
}

// run sends until ctx ends, and then what is left, for a while.
//
// It is an error that the database refuses the log when that begins: somebody is there, who can mend it.
func (s *influxSender) run(ctx context.Context) error {
	away, tell := false, s.writer.Outage
	s.writer.Outage = func(err error) {
		away = true
		tell(err)
	}
	err := s.writer.Prepare(ctx)
	if err != nil && ctx.Err() == nil && !away {
		return err
	}
	for ctx.Err() == nil {
		if err == nil {
			err = s.pass(ctx)
		}
		if err != nil && ctx.Err() == nil {
			// The log goes on: what it is for is the disk.
			fmt.Fprintf(os.Stderr, "no more records go to influxdb; they are on disk, from number %d: %v\n", s.after+1,
				err)
			return nil
		}
		_ = pause.For(ctx, influxEvery)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), influxGrace)
	defer cancel()
	if err := errors.Join(s.spool.Sync(last), s.pass(last)); err != nil {
		return fmt.Errorf("send the last records to influxdb (they are on disk, from number %d): %w", s.after+1, err)
	}
	return nil
}

// pass sends every durable record that is new.
func (s *influxSender) pass(ctx context.Context) error {
	for {
		lines, last, err := s.spool.Read(s.after, influxBatch)
		if err != nil || last == s.after {
			return err
		}
		var batch []byte
		for _, text := range lines {
			p, err := s.encoder.Parse(text)
			if err != nil {
				return err
			}
			grown, err := s.encoder.Append(batch, p, s.wallOffsetNs)
			if err != nil && !errors.Is(err, influx.ErrNoMeasurement) {
				return err
			}
			batch = grown
		}
		refused, err := s.writer.Write(ctx, batch)
		if err != nil {
			return err
		}
		for _, r := range refused {
			fmt.Fprintf(os.Stderr, "influxdb refuses a record: %s: %s\n", r.Reason, r.Line)
		}
		s.after = last
	}
}
