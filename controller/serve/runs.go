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
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// endTime is how long a process may take to end in order: it may have a report to write.
// restoreTime is how long nodes may take to put themselves back, and collectTime how long what
// they recorded last may take to come; steerTime bounds the whole.
const (
	endTime     = 35 * time.Second
	restoreTime = 45 * time.Second
	collectTime = 20 * time.Second
	steerTime   = endTime + restoreTime + collectTime + 5*time.Second
)

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
	if problems := ch.campaign.Room(func(int) bool { return true }); problems != nil {
		return nil, refusedCampaign(want.Choice.Campaign, problems)
	}
	if err := s.missing(ch.campaign); err != nil {
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
	if err := s.keep(want.Name, ch); err != nil {
		return nil, err
	}
	if err := rec.write(s.board.dir, want.Name); err != nil { // last: with it the run is known
		return nil, err
	}
	s.log.Info("run begun", "run", want.Name, "campaign", rec.Campaign, "scale", rec.Scale, "by", c.peer)
	return s.drive(want.Name, &rec)
}

// missing refuses a campaign with nodes that the fleet file does not name.
func (s *Server) missing(c *plan.Campaign) error {
	fl, err := fleet.Load(s.fleet)
	if err != nil {
		return err
	}
	for _, n := range c.Nodes {
		if _, known := fl.Nodes[n.Name]; !known {
			err = errors.Join(err, fmt.Errorf("the fleet file has no node %s: pair it", n.Name))
		}
	}
	return err
}

// keep writes a run's campaign, and the files of movement that it names, into the run's folder.
func (s *Server) keep(name string, ch chosen) error {
	movement, err := ch.campaign.Movement()
	if err != nil {
		return err
	}
	files := map[string][]byte{campaignFile: ch.text}
	for file, raw := range movement {
		files[filepath.Join(movementFolder, file)] = raw
	}
	for file, raw := range files {
		path := filepath.Join(own(s.board.dir, name), file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("keep the campaign of run %s: %w", name, err)
		}
		if err := keys.WriteFile(path, raw, 0o644); err != nil {
			return err
		}
	}
	return nil
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
		rec, err := readRecord(s.board.dir, c.name)
		if err != nil { // its lock still says if it is driven
			s.log.Warn("read what is known of a run", "run", c.name, "error", err)
		}
		if driven, err := s.board.driven(c.name, rec); err != nil || !driven {
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
func (s *Server) drive(name string, rec *record) (*campaigns.Run, error) {
	args := []string{"run", filepath.Join(own(s.board.dir, name), campaignFile), "--name=" + name, "--or-resume",
		"--scale=" + rec.Scale, "--place=" + rec.Place, "--fleet=" + s.fleet, "--runs=" + s.board.dir}
	if rec.Scale == "" { // somebody began it at the command line
		args = []string{"run", "--resume=" + s.board.folder(name), "--fleet=" + s.fleet}
	}
	p, err := s.driver.Begin(args, filepath.Join(own(s.board.dir, name), outputFile))
	if err != nil {
		rec.Said = shortened(err.Error(), saidMost)
		return nil, errors.Join(err, rec.write(s.board.dir, name))
	}
	rec.Process, rec.Told, rec.RestoreDue, rec.Said = &p, nil, false, ""
	if err := rec.write(s.board.dir, name); err != nil {
		return nil, err
	}
	return s.board.one(name)
}

// steer has one call at a time do something to a run.
func (s *Server) steer(c *call, do func(r *campaigns.Run, rec *record) error) (any, error) {
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithTimeout(c.ctx, steerTime)
	defer cancel()
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
		if over(r) && !rec.RestoreDue {
			return nil
		}
		return s.halt(c, r, rec, rec.Ended)
	})
}

func (s *Server) end(c *call) (any, error) {
	return s.steer(c, func(r *campaigns.Run, rec *record) error {
		if over(r) && !rec.RestoreDue {
			return nil
		}
		return s.halt(c, r, rec, true)
	})
}

// over reports whether a run can no more be resumed from a phone.
func over(r *campaigns.Run) bool { return r.Phase == campaigns.Complete || r.Phase == campaigns.Ended }

// halt interrupts who drives a run, and has its nodes put back: by themselves they would go
// on. Until they are, that is due, whatever ends this server meanwhile. What goes wrong with
// a node is kept with the run.
func (s *Server) halt(c *call, r *campaigns.Run, rec *record, end bool) error {
	if r.Phase != campaigns.Running {
		if err := s.free(r.Name); err != nil { // another's nodes must not be put back
			return err
		}
	}
	nodes, err := s.nodes(r.Name, rec) // first: a process that is only starting may leave nothing that tells
	if err != nil {
		return err
	}
	rec.RestoreDue, rec.Said = true, restoreDue
	s.note(rec, r.Name)
	if err := s.interrupt(c.ctx, r.Name, rec); err != nil {
		return err
	}
	s.log.Info("run halted", "run", r.Name, "for_good", end, "by", c.peer)
	rec.Process, rec.Ended = nil, end
	s.note(rec, r.Name)
	fl, err := fleet.Load(s.fleet)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, restoreTime)
	defer cancel()
	wrong := s.restore(ctx, fl, nodes)
	wrong = append(wrong, s.board.holding(r.Name, func() []string { return s.collect(c.ctx, fl, r.Name) })...)
	rec.RestoreDue, rec.Said = len(wrong) > 0, shortened(strings.Join(wrong, "\n"), saidMost)
	if err := rec.write(s.board.dir, r.Name); err != nil {
		return &wire.Error{Code: wire.CodeUnavailable, Message: fmt.Sprintf("run %s was halted and its nodes were "+
			"asked to put themselves back, but that cannot be noted: %v", r.Name, err),
			Cure: "make room on the controller's disk, then ask again"}
	}
	return nil
}

// note writes what is known of a run. A disk that is full does not keep its nodes from being put back.
func (s *Server) note(rec *record, name string) {
	if err := rec.write(s.board.dir, name); err != nil {
		s.log.Warn("keep what is known of a run", "run", name, "error", err)
	}
}

// interrupt ends who drives a run, in order, and once: a process that is told twice is killed.
func (s *Server) interrupt(ctx context.Context, name string, rec *record) error {
	driven, err := s.board.driven(name, rec)
	if err != nil || !driven {
		return err
	}
	var p Process
	if rec.Process != nil && s.driver.Alive(*rec.Process) {
		p = *rec.Process
	} else if p, err = s.driver.Holder(s.board.folder(name)); err != nil {
		return err
	}
	if rec.Told == nil || *rec.Told != p {
		rec.Told = &p
		s.note(rec, name)
		if err := s.driver.Interrupt(p); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.endTime)
	defer cancel()
	for driven && err == nil {
		if pause.For(ctx, lookEvery/10) != nil {
			return &wire.Error{Code: wire.CodeUnavailable, Message: fmt.Sprintf("run %s was told to end and is still "+
				"at it", name), Cure: "ask again in a minute"}
		}
		driven, err = s.board.driven(name, rec)
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
		if err := rec.write(s.board.dir, r.Name); err != nil { // which makes the folder of the output, too
			return err
		}
		s.log.Info("run resumed", "run", r.Name, "by", c.peer)
		_, err := s.drive(r.Name, rec)
		return err
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
			if _, refused := errors.AsType[*wire.Error](errs[i]); refused {
				wrong = append(wrong, fmt.Sprintf("%s: not put back: %v", client.Node().Name, errs[i]))
				continue
			}
			wrong = append(wrong, fmt.Sprintf(outOfReach, client.Node().Name))
		}
	}
	return wrong
}

// collectLast copies what the nodes of a run recorded after the last that its process copied:
// the end of the attempt that was under way. It returns what went wrong.
func (s *Server) collectLast(ctx context.Context, fl *fleet.Fleet, name string) (wrong []string) {
	identity, err := fl.Identity()
	if err != nil {
		return []string{err.Error()}
	}
	a, err := archive.Open(s.board.folder(name))
	if errors.Is(err, archive.ErrNoRun) { // it had not begun
		return nil
	}
	if err != nil {
		return []string{err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, collectTime)
	defer cancel()
	var mu sync.Mutex
	var copying sync.WaitGroup
	for _, n := range a.Info().Plan.Nodes {
		entry, known := fl.Nodes[n.Name]
		if !known || a.Finished() {
			continue
		}
		copying.Go(func() {
			client := fleet.NewClient(identity, entry)
			defer client.Close()
			lane := &run.Lane{Nodes: map[string]*fleet.Client{n.Name: client}}
			err := (&run.Runner{Archive: a, Plan: a.Info().Plan, Lanes: []*run.Lane{lane}, Log: s.log}).Copy(ctx)
			if err != nil {
				s.log.Warn("what a node recorded last is still on it", "run", name, "node", n.Name, "error", err)
				mu.Lock()
				defer mu.Unlock()
				wrong = append(wrong, fmt.Sprintf(recordedLast, n.Name))
			}
		})
	}
	copying.Wait()
	slices.Sort(wrong)
	if err := a.Close(); err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// nodes are those of a run's plan; of the campaign that was kept, before its archive is there.
func (s *Server) nodes(name string, rec *record) (out []string, err error) {
	s.board.mu.Lock()
	defer s.board.mu.Unlock()
	k, err := s.board.again(name, true)
	if err != nil {
		return nil, err
	}
	if k != nil {
		for _, n := range k.archive.Info().Plan.Nodes {
			out = append(out, n.Name)
		}
	} else if rec.Scale != "" {
		path := filepath.Join(own(s.board.dir, name), campaignFile)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the campaign of run %s: %w", name, err)
		}
		c, err := plan.ParseAt(path, text, rec.Scale)
		if err != nil {
			return nil, err
		}
		for _, n := range c.Nodes {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}
