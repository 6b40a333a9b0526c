package cmd

import (
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/rehearsal/virtual"
)

// told is a line from a rehearsal inside a kernel in virtual time to the one
// that started it.
type told struct {
	UptimeS float64       `json:"uptime_s"` // of the kernel, in virtual time
	Step    *run.Progress `json:"step,omitempty"`
	Ended   *ended        `json:"ended,omitempty"` // the last line
}

// ended is how the rehearsal inside ended.
type ended struct {
	Error string `json:"error,omitempty"`
	Unmet bool   `json:"unmet,omitempty"` // the error is an errUnmet
}

// teller writes lines.
type teller struct {
	mu  sync.Mutex
	out *json.Encoder
	err error // the first
}

func newTeller(out io.Writer) *teller { return &teller{out: json.NewEncoder(out)} }

func (t *teller) tell(line told) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line.UptimeS = virtual.Uptime().Seconds()
	if t.err == nil {
		t.err = t.out.Encode(line)
	}
}

// fieldBootCommand is the first process of a kernel in virtual time.
func fieldBootCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "boot JOB",
		Short:  "Be the first process of a kernel in virtual time (started by rehearse)",
		Hidden: true,
		Args:   exactly(1),
		RunE:   func(_ *cobra.Command, args []string) error { return virtual.Boot(args[0]) },
	}
}

// fieldDriveCommand is what rehearse does inside a kernel in virtual time: it
// drives a run that was made outside, and tells its steps.
func fieldDriveCommand() *cobra.Command {
	var f rehearseFlags
	var patience time.Duration
	c := &cobra.Command{
		Use:    "drive RUN",
		Short:  "Drive a run inside a kernel in virtual time (started by rehearse)",
		Hidden: true,
		Args:   exactly(1),
		RunE: func(c *cobra.Command, args []string) error {
			t := newTeller(c.OutOrStdout())
			f.resume, f.fields, f.dir, f.patience = args[0], 1, "/var/lib/fieldmesh/rehearsal", patience
			s, err := openSession(f.runFlags, "", archive.PlaceRehearsal)
			if err == nil {
				err = s.inFields(c.Context(), f, func(p run.Progress) { t.tell(told{Step: &p}) })
				if cerr := s.close(); err == nil {
					err = cerr
				}
			}
			end := &ended{}
			if err != nil {
				end.Error, end.Unmet = err.Error(), errors.Is(err, errUnmet)
			}
			t.tell(told{Ended: end})
			return t.err
		},
	}
	c.Flags().DurationVar(&patience, "patience", 0, "as of rehearse")
	c.Flags().StringVar(&f.agent, "agent", "", "the agent's program")
	return c
}
