package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// endTime is how long a process may take to end in order: it may have a report to write.
const endTime = time.Minute

// listRuns answers at once, or when the runs are others than the caller knows.
func (s *Server) listRuns(c *call) (any, error) {
	known, err := c.number("known", math.MaxInt64)
	if err != nil {
		return nil, err
	}
	waitMs, err := c.number("wait_ms", campaigns.MostWaitMs)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(time.Duration(waitMs) * time.Millisecond)
	for {
		runs, err := s.board.look(lookEvery / 2)
		if err != nil {
			return nil, err
		}
		left := time.Until(until)
		if runs.Version != known || left <= 0 {
			return runs, nil
		}
		if err := pause.For(c.poll, min(left, lookEvery)); err != nil { // the server ends, or the peer is gone
			return runs, nil //nolint:nilerr // it is told what there is
		}
	}
}

// start begins a run, unless it was begun.
func (s *Server) start(c *call, want campaigns.Start) (any, error) {
	ch, err := s.choose(want.Choice)
	if err != nil {
		return nil, err
	}
	if err := preflight.Drivable(ch.campaign); err != nil {
		return nil, refusedCampaign(want.Choice.Campaign, err)
	}
	trials, err := ch.campaign.Schedule()
	if err != nil {
		return nil, refusedCampaign(want.Choice.Campaign, err)
	}
	if err := hold(c.ctx, s.steering); err != nil {
		return nil, err
	}
	defer release(s.steering)
	old, err := s.board.one(want.Name)
	if err != nil {
		return nil, err
	}
	if old != nil {
		return old, s.same(want.Name, ch)
	}
	if err := s.free(want.Name); err != nil {
		return nil, err
	}
	rec := record{Campaign: ch.campaign.Name, Scale: ch.scale, Place: s.place, Trials: len(trials),
		Begun: time.Now().UTC()}
	if err := os.MkdirAll(own(s.board.dir, want.Name), 0o755); err != nil {
		return nil, fmt.Errorf("keep the campaign of run %s: %w", want.Name, err)
	}
	file := filepath.Join(own(s.board.dir, want.Name), campaignFile)
	if err := keys.WriteFile(file, ch.text, 0o644); err != nil {
		return nil, err
	}
	if err := rec.write(s.board.dir, want.Name); err != nil { // last: with it the run is known
		return nil, err
	}
	s.log.Info("run begun", "run", want.Name, "campaign", rec.Campaign, "scale", rec.Scale, "by", c.peer)
	return s.drive(want.Name, rec)
}

// same refuses a name that another campaign's run has, or another choice of the campaign.
func (s *Server) same(name string, ch chosen) error {
	rec, err := readRecord(s.board.dir, name)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(own(s.board.dir, name), campaignFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // which one has that was begun elsewhere
		return fmt.Errorf("read the campaign of run %s: %w", name, err)
	}
	if rec == nil || rec.Scale != ch.scale || !bytes.Equal(text, ch.text) {
		return &wire.Error{Code: wire.CodeConflict, Message: fmt.Sprintf("there is a run %s of another choice", name),
			Cure: "give the new run another name"}
	}
	return nil
}

// free refuses to drive a run while another is driven, by this fleet's nodes or any.
func (s *Server) free(name string) error {
	all, err := s.board.candidates()
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.name == name {
			continue
		}
		if driven, err := s.board.isDriven(c.name); err != nil || !driven {
			if err != nil {
				return err
			}
			continue
		}
		other, err := s.board.one(c.name)
		if err != nil || other == nil || other.Place == archive.PlaceRehearsal {
			continue // what cannot be read cannot be told; a rehearsal has nodes of its own
		}
		return &wire.Error{Code: wire.CodeConflict, Message: fmt.Sprintf("run %s is under way", c.name),
			Cure: "pause or end it first"}
	}
	return nil
}

// drive has a process drive a run, from its beginning or on.
func (s *Server) drive(name string, rec record) (*campaigns.Run, error) {
	args := []string{"run", filepath.Join(own(s.board.dir, name), campaignFile), "--name=" + name, "--or-resume",
		"--scale=" + rec.Scale, "--place=" + rec.Place, "--fleet=" + s.fleet, "--runs=" + s.board.dir}
	if err := s.board.begin(name, args); err != nil {
		return nil, err
	}
	return s.board.one(name)
}

// steer has one call at a time do something to a run.
func (s *Server) steer(c *call, do func(r *campaigns.Run, rec *record) error) (any, error) {
	if err := hold(c.ctx, s.steering); err != nil {
		return nil, err
	}
	defer release(s.steering)
	r, err := s.board.one(c.run)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, wire.Errorf(wire.CodeNotFound, "there is no run %s", c.run)
	}
	if r.Place == archive.PlaceRehearsal {
		return nil, &wire.Error{Code: wire.CodeConflict, Message: fmt.Sprintf("run %s is a rehearsal", c.run),
			Cure: "steer it where it was started"}
	}
	rec, err := readRecord(s.board.dir, c.run)
	if err != nil {
		return nil, err
	}
	if rec == nil { // somebody began it at the command line
		rec = &record{Campaign: r.Campaign, Place: r.Place, Trials: r.Trials}
	}
	if err := do(r, rec); err != nil {
		return nil, err
	}
	return s.board.one(c.run)
}

// pause also puts back the nodes of a run whose process ended otherwise: by themselves they
// continue the schedule.
func (s *Server) pause(c *call) (any, error) {
	return s.steer(c, func(r *campaigns.Run, rec *record) error {
		switch r.Phase {
		case campaigns.Complete, campaigns.Ended:
			return nil
		case campaigns.Paused, campaigns.Failed:
			if err := s.free(r.Name); err != nil { // another's nodes must not be put back
				return err
			}
		}
		s.log.Info("run paused", "run", r.Name, "by", c.peer)
		return s.halt(c.ctx, r.Name, rec)
	})
}

// halt interrupts who drives a run, and has its nodes put back: by themselves they would go
// on. What goes wrong with a node is kept with the run.
func (s *Server) halt(ctx context.Context, name string, rec *record) error {
	if err := s.interrupt(ctx, name); err != nil {
		return err
	}
	fl, err := fleet.Load(s.fleet)
	if err != nil {
		return err
	}
	rec.Said = shortened(strings.Join(s.restore(ctx, fl, s.board.nodes(name)), "\n"), saidMost)
	return rec.write(s.board.dir, name)
}

// interrupt ends who drives a run, in order.
func (s *Server) interrupt(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	p := s.board.process(name)
	var err error
	if p != nil {
		err = p.Interrupt()
	} else if driven, derr := s.board.isDriven(name); derr != nil || !driven {
		return derr
	} else {
		err = s.driver.Interrupt(s.board.folder(name))
	}
	for err == nil {
		driven, derr := s.board.isDriven(name)
		if derr != nil || !driven {
			return derr
		}
		if pause.For(ctx, lookEvery/10) != nil {
			err = &wire.Error{Code: wire.CodeUnavailable, Message: fmt.Sprintf("run %s is told to end, and has not yet",
				name), Cure: "ask again in a minute"}
		}
	}
	return err
}

func (s *Server) resume(c *call) (any, error) {
	return s.steer(c, func(r *campaigns.Run, rec *record) error {
		switch r.Phase {
		case campaigns.Running, campaigns.Complete:
			return nil
		case campaigns.Ended:
			return &wire.Error{Code: wire.CodeConflict, Message: fmt.Sprintf("run %s has been ended", r.Name),
				Cure: "begin a new one; on the controller `fieldmesh run --resume` still resumes it"}
		}
		if err := s.free(r.Name); err != nil {
			return err
		}
		rec.Said = ""
		if err := rec.write(s.board.dir, r.Name); err != nil {
			return err
		}
		s.log.Info("run resumed", "run", r.Name, "by", c.peer)
		if rec.Scale != "" {
			_, err := s.drive(r.Name, *rec)
			return err
		}
		return s.board.begin(r.Name, []string{"run", "--resume=" + s.board.folder(r.Name), "--fleet=" + s.fleet})
	})
}

func (s *Server) end(c *call) (any, error) {
	return s.steer(c, func(r *campaigns.Run, rec *record) error {
		if r.Phase == campaigns.Complete || r.Phase == campaigns.Ended && r.Said == "" {
			return nil
		}
		if r.Phase != campaigns.Running {
			if err := s.free(r.Name); err != nil {
				return err
			}
		}
		s.log.Info("run ended", "run", r.Name, "by", c.peer)
		rec.Ended = true
		if err := rec.write(s.board.dir, r.Name); err != nil { // first: it must not be resumed whatever happens
			return err
		}
		return s.halt(c.ctx, r.Name, rec)
	})
}

// restoreNodes is `fieldmesh nodes restore`; it returns what went wrong.
func restoreNodes(ctx context.Context, fl *fleet.Fleet, names []string) (wrong []string) {
	identity, err := fl.Identity()
	if err != nil {
		return []string{err.Error()}
	}
	var clients []*fleet.Client
	for _, name := range names {
		if entry, known := fl.Nodes[name]; known {
			client := fleet.NewClient(identity, entry)
			defer client.Close()
			clients = append(clients, client)
		}
	}
	reports, errs := fleet.RestoreAll(ctx, clients)
	for i, client := range clients {
		for _, f := range reports[i].Failed {
			wrong = append(wrong, fmt.Sprintf("%s: not put back: %s", client.Node().Name, f))
		}
		if errs[i] != nil {
			wrong = append(wrong, fmt.Sprintf("%s: not told to stop: %v", client.Node().Name, errs[i]))
		}
	}
	return wrong
}

// isDriven reports whether any process drives a run.
func (b *board) isDriven(name string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.driven(name)
}

// nodes are those of a run's plan; none before its archive is there.
func (b *board) nodes(name string) (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, err := b.again(name, true)
	if err != nil || k == nil {
		return nil
	}
	for _, n := range k.archive.Info().Plan.Nodes {
		out = append(out, n.Name)
	}
	slices.Sort(out)
	return out
}
