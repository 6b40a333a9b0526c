package cmd

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/archive/runkey"
	"fieldmesh.dev/fieldmesh/controller/cmd/parts"
	"fieldmesh.dev/fieldmesh/controller/cmd/scene"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/controller/progress"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// runFlags are the flags that run and rehearse have in common.
type runFlags struct {
	runs     string
	name     string
	shard    string
	scale    string
	place    string // where the run is driven; empty: wherever it was begun
	resume   string
	orResume bool
	retry    []int
	why      string
	influx   influxFlags
	patience time.Duration
	clock    *archive.Clock            // of a rehearsal
	radio    string                    // of a rehearsal: see archive.RunInfo
	start    time.Time                 // what the run's clock shows when it is begun; zero: now
	locate   func(*wire.RunPlan) error // writes into a plan where its roadside nodes stand; of a run on a road
}

func (f *runFlags) add(c *cobra.Command) {
	addRuns(c, &f.runs)
	c.Flags().StringVar(&f.name, "name", "", "name of the run (default: the campaign's name and the time)")
	c.Flags().StringVar(&f.shard, "shard", "", "drive only a part, such as 2/3 for the second of three; fieldmesh "+
		"merge puts them together")
	c.Flags().StringVar(&f.scale, "scale", plan.FullScale, "drive the campaign at one of the scales that its file "+
		"declares")
	c.Flags().StringVar(&f.resume, "resume", "", "continue with this run: its folder or its name")
	c.Flags().BoolVar(&f.orResume, "or-resume", false, "with FILE and --name: continue with that run if it was begun, "+
		"so that the same command can be given again")
	c.Flags().IntSliceVar(&f.retry, "retry", nil, "with --resume: drive this trial again though it was given up; may "+
		"be given several times, or with commas between trials")
	c.Flags().StringVar(&f.why, "why", "", "with --retry: why, for the run's journal and its report")
	c.Flags().DurationVar(&f.patience, "patience", 20*time.Second, "how long to wait for GPS fixes, nodes and a busy "+
		"node's iperf3 before refusing")
	f.influx.add(c)
	completes(c, "resume", completeRuns)
	completes(c, "scale", completeScales)
}

// begun is when a new run is begun.
func (f *runFlags) begun() time.Time {
	if f.start.IsZero() {
		return time.Now().UTC()
	}
	return f.start.UTC()
}

// session is one run being driven: its archive, its plan with the secret key,
// and where its field is described.
type session struct {
	archive  *archive.Archive
	campaign *plan.Campaign
	plan     wire.RunPlan
	log      *slog.Logger
	runs     string         // the folder of runs, for a new run; "" for one that is resumed
	reopened []wire.Verdict // reopen trials that were given up; decided when they can be driven
	complete bool           // every trial is accepted or given up, and the archive closed
}

// openSession begins a run, or resumes one.
func openSession(f runFlags, file, place string) (*session, error) {
	f.place = place
	if f.resume != "" {
		s, err := resumeSession(f)
		// In virtual time it is checked outside.
		if err == nil && f.runs != "" && (!s.archive.Finished() || len(s.reopened) > 0) {
			err = preflight.Room(s.archive.Dir())
		}
		if err != nil && s != nil {
			err = errors.Join(err, s.archive.Close())
		}
		return s, err
	}
	if err := preflight.Room(f.runs); err != nil {
		return nil, err
	}
	c, err := scene.Read(file, f.scale)
	if err != nil {
		return nil, err
	}
	shard, folder, err := f.part()
	if err != nil {
		return nil, err
	}
	if shard != nil && c.Design.StopWhen != nil {
		return nil, misused("--shard %s: the campaign stops when enough is known (design.stop_when), which "+
			"no shard "+
			"can tell alone; drive it whole, or take design.stop_when out", f.shard)
	}
	if problems := c.Room(shard.Has); problems != nil {
		return nil, problems
	}
	name := f.name
	if name != "" && !plan.IsRunName(name) {
		return nil, misused("--name %q: expected 1 to 64 of a-z, 0-9 and -", name)
	}
	if name == "" {
		name = c.Name + "-" + f.begun().Format("20060102-150405")
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("make the run's key: %w", err)
	}
	p, err := f.plan(c, name, key, place)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", file, err)
	}
	draws, deviations := "", []string(nil)
	if place == archive.PlaceRehearsal {
		draws = c.ChannelDraws()
		if deviations, err = scene.Radios(c, p.Trials, f.radio); err != nil {
			return nil, fmt.Errorf("rehearse %s: %w", file, err)
		}
	}
	movement, err := c.Movement()
	if err != nil {
		return nil, err
	}
	folder = cmp.Or(folder, name)
	if isDir(parts.Dir(filepath.Join(f.runs, folder))) {
		return nil, explainRun(f.runs, folder, fmt.Errorf("create run %q: %w", name, archive.ErrExists))
	}
	a, err := archive.Create(filepath.Join(f.runs, folder),
		archive.RunInfo{Run: name, Shard: shard, Campaign: c.Name, CreatedWall: f.begun(), Clock: f.clock,
			Radio: f.radio, Deviations: deviations,
			Paper: c.Paper, Scale: c.Scale, Enough: c.Design.StopWhen, Seed: p.Seed, Version: version.String(),
			Place: place, ChannelDraws: draws, Site: c.Site.Sheet(), CampaignRaw: c.Raw, Movement: movement, Plan: p})
	if err != nil {
		return nil, explainRun(f.runs, folder, err)
	}
	// Not before: the name may be that of a run whose key this would replace.
	if err := runkey.Keep(a.Dir(), key); err != nil {
		return nil, errors.Join(err, a.Discard())
	}
	return &session{archive: a, campaign: c, plan: p, log: logger(), runs: f.runs}, nil
}

// discard takes away a run in which nothing is recorded.
func discard(dir string) error {
	a, err := archive.Open(dir)
	if err != nil {
		return err
	}
	return a.Discard()
}

// part is the shard that is asked for, and the name of its folder. Shards of a
// run bear its name, by which their records know each other.
func (f *runFlags) part() (shard *archive.Shard, folder string, err error) {
	if f.shard == "" {
		return nil, "", nil
	}
	if shard, err = archive.ParseShard(f.shard); err != nil {
		return nil, "", misuse{err}
	}
	if f.name == "" {
		return nil, "", misused("--shard %s: give the run a --name, the same for all its shards", f.shard)
	}
	return shard, fmt.Sprintf("%s-shard-%d-of-%d", f.name, shard.Number, shard.Of), nil
}

// findBegun makes flags that begin a run those that continue it, where it was begun
// and that is wanted. It returns the campaign file to begin with, "" to continue.
func (f *runFlags) findBegun(file string) (string, error) {
	if !f.orResume {
		return file, nil
	}
	if f.name == "" || f.resume != "" {
		return "", errors.New("--or-resume: name a campaign file, and the run by --name, by which it is found again")
	}
	_, folder, err := f.part()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(f.runs, cmp.Or(folder, f.name))
	var a *archive.Archive
	if p, perr := parts.Find(dir); perr == nil && p != nil {
		a, err = archive.Read(p.Shards[0])
	} else {
		a, err = archive.Read(dir)
	}
	if errors.Is(err, archive.ErrNoRun) {
		return file, nil
	}
	if err != nil {
		return "", err
	}
	if _, kerr := runkey.Read(dir); errors.Is(kerr, fs.ErrNotExist) && dir == a.Dir() && a.Empty() && !a.Finished() {
		return file, discard(dir) // killed before it had its key
	}
	scale := plan.FullScale
	if s := a.Info().Scale; s != nil {
		scale = s.Name
	}
	raw, err := os.ReadFile(file)
	switch {
	case err != nil:
		return "", fmt.Errorf("read the campaign: %w", err)
	case !bytes.Equal(raw, a.Info().CampaignRaw), scale != f.scale, f.place != a.Info().Place:
		return "", misused("--or-resume: run %s was begun with another campaign file, scale or place than %s "+
			"at scale %s and place %s; give the new run another --name, or continue the old one by --resume %s",
			a.Info().Run, file, f.scale, f.place, dir)
	}
	f.resume, f.name, f.shard = dir, "", ""
	return "", nil
}

// plan is the schedule of a campaign's run at a place.
func (f *runFlags) plan(c *plan.Campaign, name string, key []byte, place string) (wire.RunPlan, error) {
	p, err := c.RunPlan(name, key)
	if err != nil {
		return p, err
	}
	if place == archive.PlaceRehearsal {
		err = scene.Rehearsed(&p, c)
	} else if err = preflight.Drivable(c); err == nil && place == archive.PlaceRoad {
		err = f.locate(&p)
	}
	if err != nil {
		return p, err
	}
	for i := range p.Trials {
		if place == archive.PlaceBench { // where no car comes to a start
			p.Trials[i].Gate.AtStart = false
		}
	}
	for i := range p.Nodes {
		p.Nodes[i].GoPort = wire.DefaultGoPort
	}
	return p, p.Validate()
}

// refused reports whether this is a new run in which nothing has happened. A shard
// that has no trials is finished without.
func (s *session) refused() bool { return s.runs != "" && s.archive.Empty() && !s.archive.Finished() }

// close ends the session. A new run that was refused before it began leaves
// nothing behind: its name is free again.
func (s *session) close() error {
	if s.refused() {
		return errors.Join(s.archive.Discard(), runkey.Forget(s.archive.Dir()))
	}
	return s.archive.Close()
}

func resumeSession(f runFlags) (*session, error) {
	dir := runFolder(f.runs, f.resume)
	a, err := archive.Open(dir)
	if err != nil {
		return nil, explainRun(f.runs, f.resume, err)
	}
	const rehearsal = archive.PlaceRehearsal
	if begun := a.Info().Place; f.place != "" && (f.place == rehearsal) != (begun == rehearsal) {
		return nil, errors.Join(misused("--resume %s: its place is %s; `fieldmesh rehearse --resume` continues a "+
			"rehearsal, and `fieldmesh run --resume` any other run", f.resume, begun), a.Close())
	}
	scale := plan.FullScale
	if s := a.Info().Scale; s != nil {
		scale = s.Name
	}
	c, err := plan.ParseArchived(filepath.Join(dir, "campaign.yaml"), a.Info().CampaignRaw, scale)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if info := a.Info(); info.Place == archive.PlaceRehearsal && info.ChannelDraws == "" {
		c.HaveOneDraw() // as it was when the run began
	}
	p := a.Info().Plan
	if p.Key, err = runkey.Read(dir); err != nil && a.Empty() {
		err = fmt.Errorf("%w; or remove %s, in which nothing is recorded, and begin the run again", err, dir)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	reopened, err := run.Reopening(a, f.retry, person(), f.why)
	if err == nil {
		err = a.ContinuedBy(version.String())
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return &session{archive: a, campaign: c, plan: p, reopened: reopened, log: logger()}, nil
}

// again reopens the trials that are to be driven again. Before it a complete run stays complete, whatever refuses to
// drive them.
func (s *session) again() error {
	for _, v := range s.reopened {
		if err := s.archive.Decide(v); err != nil {
			return fmt.Errorf("retry trial %d: %w", v.Trial, err)
		}
	}
	return s.archive.ContinuedBy(version.String())
}

// person is who uses this program, by the name of the login: with sudo that of
// whoever called it.
func person() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "controller"
}

// runFolder takes a run's folder or its name.
func runFolder(runs, given string) string {
	if _, err := os.Stat(given); err == nil {
		return filepath.Clean(given)
	}
	return filepath.Join(runs, given)
}

func logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// announce says which run this is, how long it takes with so many lanes side by side, and how it can be watched. How
// fast virtual time goes nobody knows before.
func (s *session) announce(shown *progress.Display, lanes int) {
	accepted, givenUp, left := (&run.Runner{Archive: s.archive, Plan: s.plan}).Counts()
	var each time.Duration
	if !s.archive.Info().Clock.Virtual() {
		each = s.campaign.Estimate().Each(s.archive.Info().Place == archive.PlaceRehearsal) / time.Duration(lanes)
	}
	total, decided := accepted+givenUp+left, accepted+givenUp-len(s.reopened)
	shown.Say(fmt.Sprintf("run %s in %s: %s%s\nwatch: fieldmesh live %[2]s", s.plan.Run, s.archive.Dir(),
		words.Count(total, "trial"), shown.Expect(each, run.Progress{Decided: decided, Total: total})))
}

// drive runs the schedule over the lanes, and has each step watched.
func (s *session) drive(ctx context.Context, lanes []*run.Lane, f runFlags, watch func(run.Progress)) error {
	waiting := func(u run.Unmet) {
		if u.Passed {
			s.log.Warn("the run goes on all the same", "node", u.Node, "need", u.Need, "found", u.Found)
			return
		}
		s.log.Warn("waiting, at most "+f.patience.String(), "node", u.Node, "need", u.Need, "found", u.Found)
	}
	for _, lane := range lanes {
		if err := run.Preflight(ctx, s.plan, lane, s.runs == "", f.patience, waiting); err != nil {
			return err
		}
	}
	tail, err := f.influx.tail(ctx, s.archive.Dir(), s.log)
	if err != nil {
		return err
	}
	r := &run.Runner{Archive: s.archive, Plan: s.plan, Lanes: lanes, Watch: watch, Log: s.log}
	if err = s.again(); err == nil {
		err = r.Run(ctx)
	}
	if err == nil {
		err = s.archive.Finish()
		s.complete = err == nil
	}
	err = errors.Join(err, tail())
	if s.complete {
		err = errors.Join(err, r.Attachments(ctx))
	}
	if err != nil {
		return err
	}
	return outcome(r)
}

// outcome is what went wrong in a run that is over: trials that were not
// accepted, and cells in which nobody forwarded.
func outcome(r *run.Runner) (err error) {
	accepted, givenUp, left := r.Counts()
	if givenUp+left > 0 {
		err = unmet{fmt.Errorf("run %s: %d of %d trials accepted, %s; `fieldmesh report %s` tells why, and --resume "+
			"%[5]s --retry TRIAL drives a trial again",
			r.Plan.Run, accepted, accepted+givenUp+left, r.GivenUp(), r.Archive.Dir())}
	}
	return errors.Join(err, r.Forwarded())
}
