package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/cmd/handover"
	"fieldmesh.dev/fieldmesh/controller/cmd/output"
	"fieldmesh.dev/fieldmesh/controller/cmd/parts"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/progress"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
	"fieldmesh.dev/fieldmesh/rehearsal/field/ledger"
)

// agentBinary is the agent's program, found beside this one.
const agentBinary = "fieldmesh-agent"

type rehearseFlags struct {
	runFlags
	fields  int
	dir     string
	agent   string
	virtual virtualFlags
}

// RehearseCommand is `fieldmesh rehearse FILE`.
func RehearseCommand() *cobra.Command {
	var f rehearseFlags
	c := &cobra.Command{Use: "rehearse FILE", Args: fileOrResume(&f.runFlags),
		RunE: func(c *cobra.Command, args []string) error {
			f.place = archive.PlaceRehearsal
			file, err := f.findBegun(first(args))
			if err != nil {
				return err
			}
			if p, err := parts.Find(f.resume); f.orResume && file == "" && p == nil && err == nil {
				f.virtual.jobs = 0 // it is one run already
			}
			virtually, err := f.virtually()
			if err != nil {
				return err
			}
			if virtually {
				return rehearseVirtually(c, f, file)
			}
			if f.virtual.jobs != 0 {
				return misused("--jobs %d: it is for virtual time; add --clock virtual, or see --fields",
					f.virtual.jobs)
			}
			if os.Geteuid() != 0 {
				return errors.New("a rehearsal makes network namespaces and interfaces, which needs root: run it " +
					"with sudo, or as it is with --clock virtual")
			}
			if f.fields < 1 {
				return misused("--fields %d: at least one is needed", f.fields)
			}
			if err := field.CheckHost(); err != nil {
				return err
			}
			f.clock = &archive.Clock{Kind: archive.ClockReal}
			to := handover.New(f.runs)
			s, err := openSession(f.runFlags, file, archive.PlaceRehearsal)
			if err != nil {
				return err
			}
			var lanes []string
			for i := range f.fields {
				lanes = append(lanes, laneName(i, f.fields))
			}
			shown := progress.New(c.ErrOrStderr(), lanes)
			s.announce(shown, f.fields)
			err = s.inFields(c.Context(), f, shown.Step)
			if c.Context().Err() != nil && !s.refused() && !s.complete {
				c.PrintErrf("`fieldmesh rehearse --resume %s` continues the run\n", s.archive.Dir())
			}
			return errors.Join(err, s.conclude(c.OutOrStdout()), s.close(), to.Give(s.archive.Dir()))
		}}
	f.add(c)
	c.Flags().IntVar(&f.fields, "fields", 1, "fields side by side that share the schedule; too many make trials "+
		"late, and late ones are rejected")
	c.Flags().StringVar(&f.dir, "field-dir", "/var/lib/fieldmesh/rehearsal",
		"folder for the fields' files, which stay there while a run is unfinished; unprivileged users must "+
			"be able to enter it")
	rename(c, "worlds", "fields")
	rename(c, "world-dir", "field-dir")
	f.virtual.add(c)
	c.Flags().StringVar(&f.agent, "agent", "", "the agent's program (default: "+agentBinary+" beside this program)")
	return c
}

// inFields creates the fields, drives the campaign in them, and takes them away.
func (s *session) inFields(ctx context.Context, f rehearseFlags, watch func(run.Progress)) (err error) {
	if _, err := ledger.Sweep(""); err != nil {
		return err
	}
	dir, err := filepath.Abs(field.Folder(f.dir, filepath.Base(s.archive.Dir())))
	if err != nil {
		return fmt.Errorf("find --field-dir: %w", err)
	}
	agent, err := installAgent(f, dir)
	if err != nil {
		return err
	}
	// What was begun and is not complete may be resumed, and the nodes' disks hold
	// records that nobody has collected yet.
	defer func() {
		if s.complete || s.refused() {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	identity, err := controllerIdentity(filepath.Join(dir, "controller"))
	if err == nil {
		err = s.archive.SignWith(identity)
	}
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	lanes, closeFields, err := s.startFields(ctx, end, f, dir, agent, identity)
	defer func() { err = errors.Join(err, closeFields()) }()
	if err != nil {
		return err
	}
	return s.drive(ctx, lanes, f.runFlags, watch)
}

// startFields starts the fields that are asked for. What it returns to close
// them is to be called even when it fails.
func (s *session) startFields(ctx context.Context, end context.CancelCauseFunc, f rehearseFlags, dir, agent string,
	identity keys.Identity) ([]*run.Lane, func() error, error) {
	var lanes []*run.Lane
	var open []func() error
	closeAll := func() error {
		var errs []error
		for _, one := range slices.Backward(open) {
			errs = append(errs, one())
		}
		return errors.Join(errs...)
	}
	for i := range f.fields {
		cfg, err := s.fieldConfigOf(filepath.Join(dir, fmt.Sprintf("field%d", i)), agent, identity,
			filepath.Join(dir, "controller"))
		if err != nil {
			return nil, closeAll, err
		}
		lane, closeField, err := s.startField(ctx, end, cfg, laneName(i, f.fields))
		if err != nil {
			return nil, closeAll, err
		}
		lanes, open = append(lanes, lane), append(open, closeField)
	}
	return lanes, closeAll, nil
}

func laneName(i, of int) string {
	if of == 1 {
		return ""
	}
	return fmt.Sprintf("field %d", i+1)
}

// controllerIdentity makes the controller's keys, or takes those with which the
// run was begun: the nodes know no other.
func controllerIdentity(dir string) (keys.Identity, error) {
	identity, err := keys.LoadIdentity(dir)
	if errors.Is(err, keys.ErrNoIdentity) {
		return fleet.Init(dir)
	}
	return identity, err
}

// installAgent copies the agent to where its unprivileged half can be started
// from: the folder of a checkout may be closed to other users.
func installAgent(f rehearseFlags, dir string) (string, error) {
	from := f.agent
	if from == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find the agent's program: %w", err)
		}
		from = filepath.Join(filepath.Dir(self), agentBinary)
	}
	body, err := os.ReadFile(from)
	if err != nil {
		return "", fmt.Errorf("find the agent's program: %w; build it with `make build`, or name it with --agent", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the fields' folder: %w", err)
	}
	to := filepath.Join(dir, agentBinary)
	// Replaced, not written over: a field that is still ending may run it.
	err = output.ReplaceFile(to, func(w io.Writer) error { _, err := w.Write(body); return err })
	if err == nil {
		err = os.Chmod(to, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("install the agent's program: %w", err)
	}
	return to, nil
}

// startField starts one field and makes the lane that drives in it. A field
// that ends by itself ends the run: its nodes will not come back.
func (s *session) startField(ctx context.Context, end context.CancelCauseFunc, cfg field.Config,
	name string) (*run.Lane, func() error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	// Not ctx: an interrupt ends the run first, and then the field, in order.
	started, err := field.Start(context.WithoutCancel(ctx), []string{self, "field", "serve"}, cfg)
	if err != nil {
		return nil, nil, err
	}
	lane, closeLane, err := s.lane(name, started.Info().Fleet, started)
	if err != nil {
		return nil, nil, errors.Join(err, started.Close())
	}
	closing, closed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(closed)
		select {
		case <-started.Ended():
			end(fmt.Errorf("the field ended by itself; `fieldmesh rehearse --resume %s` goes on", s.archive.Dir()))
		case <-closing:
		}
	}()
	return lane, func() error { close(closing); <-closed; closeLane(); return started.Close() }, nil
}
