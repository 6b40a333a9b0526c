package cmd

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/influx"
	line "fieldmesh.dev/fieldmesh/internal/influx"
)

// startPatience is how long the start of a run waits for its database. One that
// is away then may come back: only a wrong password or address ends the start.
const startPatience = 10 * time.Second

// influxFlags name an InfluxDB. The password is never on the command line.
type influxFlags struct {
	target       line.Target
	passwordFile string
}

func (f *influxFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.target.URL, "influx", "", "write to the InfluxDB at this URL, http://HOST:PORT")
	c.Flags().StringVar(&f.target.Database, "database", "fieldmesh", "database in it; made when it is not there "+
		"(InfluxDB 2.x: bucket)")
	c.Flags().StringVar(&f.target.User, "user", "", "user of the InfluxDB (InfluxDB 2.x: any, with the token as "+
		"password)")
	c.Flags().StringVar(&f.passwordFile, "password-file", "", "file with the password, readable by its owner only "+
		"(default: $"+line.PasswordVariable+")")
}

// tail writes the run to the database as it goes, when there is one. What it
// returns is called at the end of the run, and waits a while for the rest. A
// database in trouble is a warning: the archive has everything.
func (f *influxFlags) tail(ctx context.Context, dir string, log *slog.Logger) (func() error, error) {
	if f.target.URL == "" {
		return func() error { return nil }, nil
	}
	w, err := line.Open(f.target, f.passwordFile, log)
	if err != nil {
		return nil, err
	}
	w.Patience = startPatience
	if err := w.Prepare(ctx); err != nil && !errors.Is(err, line.ErrAway) {
		return nil, err
	}
	w.Patience = 0
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		sent, err := influx.Tail(ctx, dir, w.Target, w, done, log)
		if sent.RefusedN > 0 {
			log.Warn("influxdb refused records, which its panels lack", "run", dir, "records", sent.RefusedN)
		}
		for node, n := range sent.Undated {
			log.Warn("influxdb lacks records whose time nothing tells", "run", dir, "node", node, "records", n)
		}
		if err != nil { // an interrupt is one, too: the run may be complete, and waiting for the database only
			log.Warn("influxdb does not have everything; `fieldmesh publish` brings the rest", "run", dir, "error", err)
		}
	}()
	return func() error {
		close(done)
		<-ended
		return nil
	}, nil
}
