package cmd

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/cmd/relay"
	"fieldmesh.dev/fieldmesh/controller/progress"
	"fieldmesh.dev/fieldmesh/controller/run"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
	"fieldmesh.dev/fieldmesh/rehearsal/kernel"
	"fieldmesh.dev/fieldmesh/rehearsal/virtual"
)

// callNs is the virtual time that a system call takes. On a chain of six with a
// routing daemon and a capture each, 200 ns halve the processor time that a
// trial costs, and the radio is no later than without (35 ms of a 5 s window);
// at 500 ns and above it is later by 40 to 65 ms.
const callNs = 200

// A node's agent, gpsd and traffic take what a node takes; controller, field
// and programs the rest.
const (
	memoryBaseMB = 512
	memoryNodeMB = 64
)

// The disk in virtual time is in memory, and may have half of what the kernel leaves
// (tmpfs(5)). Agents and captures leave some of a disk to others.
const (
	memoryKernelMB = 96
	diskLeftMB     = 256
)

// consoleFile is the log of the kernel's console in the run's folder: no part of the record of the run.
const consoleFile = ".console.log"

// virtualFlags say how a rehearsal in virtual time is made.
type virtualFlags struct {
	clock    string
	radio    string
	kernel   string
	jobs     int
	memoryMB int
	// memoryDir is where the memory of all kernels of the run is; empty: each chooses.
	memoryDir string
	start     string
}

func (f *virtualFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.clock, "clock", "", "real or virtual: virtual time waits for what runs in it, and "+
		"needs no root (default: real, or as the run was begun)")
	c.Flags().StringVar(&f.radio, "radio", "", "what a node's radio is: emulated, an interface of Ethernet at an "+
		"emulated radio, or mac80211, the kernel's own 802.11 stack, which joins as on the road and needs --clock "+
		"virtual (default: emulated, or as the run was begun)")
	c.Flags().StringVar(&f.kernel, "kernel", "",
		"for virtual time: the kernel's file (default: what '"+kernel.Build+"' built)")
	c.Flags().IntVar(&f.jobs, "jobs", 0,
		"for virtual time: drive the run in parts, so many of them side by side, each in a kernel of its own; the "+
			"results are the same for any number (default: in one kernel)")
	c.Flags().IntVar(&f.memoryMB, "memory-mb", 0,
		"for virtual time: the most that a kernel may take of this machine's memory (default: by "+
			"the number of nodes and the longest trial)")
	c.Flags().StringVar(&f.start, "start", "", "for virtual time: what its wall clock shows at the start, as "+
		"2026-11-30T12:00:00Z; the same again repeats a run, whose journal notes it (default: now)")
}

// virtually reports whether a rehearsal is to be in virtual time: as it is asked for, or as the run was begun.
func (f *rehearseFlags) virtually() (bool, error) {
	asked := f.virtual.clock
	switch asked {
	case "", archive.ClockReal, archive.ClockVirtual:
	default:
		return false, misused("--clock %q: expected real or virtual", asked)
	}
	begun, radio := archive.ClockReal, ""
	if p, err := f.begunParts(); err != nil || p != nil {
		if err == nil && asked == archive.ClockReal {
			err = misused("--clock real: run %s was begun in virtual time, and goes on in it", p.Name)
		}
		if err == nil {
			err = f.chooseRadio(p.Info.Radio, p.Name)
		}
		return err == nil, err
	}
	if f.resume != "" {
		a, err := archive.Read(runFolder(f.runs, f.resume))
		if err != nil {
			return false, explainRun(f.runs, f.resume, err)
		}
		if a.Info().Clock.Virtual() {
			begun = archive.ClockVirtual
		}
		if asked != "" && asked != begun {
			return false, misused("--clock %s: run %s was begun in %s time, and goes on in it", asked, a.Info().Run,
				begun)
		}
		asked, radio = begun, a.Info().Radio
	}
	if err := f.chooseRadio(radio, f.resume); err != nil {
		return false, err
	}
	if f.radio == archive.RadioMAC80211 && asked != archive.ClockVirtual {
		return false, errors.New("--radio mac80211: the kernel's own radios are in the kernel of virtual time; add " +
			"--clock virtual")
	}
	return asked == archive.ClockVirtual, nil
}

// radioEmulated is what --radio calls an interface of Ethernet at an emulated radio.
const radioEmulated = "emulated"

// chooseRadio takes the radio that is asked for, or that of the run that is resumed.
func (f *rehearseFlags) chooseRadio(begun, run string) error {
	asked := f.virtual.radio
	switch asked {
	case "", radioEmulated, archive.RadioMAC80211:
	default:
		return misused("--radio %q: expected %s or %s", asked, radioEmulated, archive.RadioMAC80211)
	}
	if begun = cmp.Or(begun, radioEmulated); f.resume != "" && asked != "" && asked != begun {
		return misused("--radio %s: run %s was begun with radio %s, and keeps it", asked, run, begun)
	}
	if f.resume != "" {
		asked = begun
	}
	f.radio = ""
	if asked == archive.RadioMAC80211 {
		f.radio = asked
	}
	return nil
}

// find finds the kernel, or says how to come by it.
func (f *virtualFlags) find() (kernel.Kernel, error) {
	k, err := kernel.Kernel{}, error(nil)
	if f.kernel != "" {
		k, err = kernel.At(f.kernel)
	} else {
		k, err = kernel.Find()
	}
	if virtual.Killed(err) { // when it was asked for its version
		return k, fmt.Errorf("%w: %w", virtual.ErrCut, err)
	}
	if errors.Is(err, kernel.ErrNone) {
		return k, fmt.Errorf("%w; build it once, in the source tree, with\n\n    %s\n\n"+
			"(a few minutes of two processors, 170 MB to fetch, 2 GB of disk meanwhile and 6 MB to stay), or "+
			"continue with --clock real", err, kernel.Build)
	}
	return k, err
}

// rehearseVirtually makes the run, or opens it, and has it driven inside a
// kernel in virtual time. What needs no field is done out here: the campaign's
// check, the database, the report.
func rehearseVirtually(c *cobra.Command, f rehearseFlags, file string) error {
	ctx, out := c.Context(), c.OutOrStdout()
	if f.fields != 1 {
		return misused("--fields %d: in virtual time a field has one processor; drive parts side by side "+
			"with --jobs", f.fields)
	}
	if m := f.virtual.memoryMB; m != 0 && m < memoryBaseMB {
		return misused("--memory-mb %d: expected %d or more, or leave it out", m, memoryBaseMB)
	}
	if f.virtual.start != "" {
		var err error
		if f.start, err = time.Parse(time.RFC3339, f.virtual.start); err != nil {
			return misused("--start %q: expected a time such as 2026-11-30T12:00:00Z", f.virtual.start)
		}
	}
	if err := field.CheckPrograms(); err != nil {
		return err
	}
	k, err := f.virtual.find()
	if err != nil {
		return err
	}
	f.clock = new(virtualClock(k))
	p, err := f.parts(file)
	if err != nil {
		return err
	}
	if p != nil {
		return inParts{p}.rehearse(ctx, f, k, out, c.ErrOrStderr())
	}
	s, err := openSession(f.runFlags, file, archive.PlaceRehearsal)
	if err != nil {
		return err
	}
	if s.archive.Finished() && len(s.reopened) == 0 { // a boot would unseal it, and drive nothing
		return errors.Join(s.published(ctx, f.influx), outcome(&run.Runner{Archive: s.archive, Plan: s.plan}),
			s.conclude(out), s.close())
	}
	if err = kernel.Check(s.plan.Trials); err == nil {
		shown := progress.New(c.ErrOrStderr(), []string{""})
		heard := relay.NewHearer(shown, "", &relay.Tally{Begun: time.Now()})
		s.announce(shown, 1)
		err = s.launch(ctx, f, k, heard, c.ErrOrStderr())
	}
	if s.refused() {
		err = begunAgain(err)
	} else {
		err = goesOn(err, s.archive.Dir())
	}
	return errors.Join(err, s.conclude(out), s.close())
}

// published writes to the database what it lacks of a run that is over.
func (s *session) published(ctx context.Context, to influxFlags) error {
	tail, err := to.tail(ctx, s.archive.Dir(), s.log)
	if err != nil {
		return err
	}
	return tail()
}

// begunAgain adds how a run is begun again that was cut off before anything was recorded.
func begunAgain(err error) error {
	if errors.Is(err, virtual.ErrCut) {
		return fmt.Errorf("%w; nothing was recorded, and no run is left: give the same command again", err)
	}
	return err
}

// goesOn adds how a run is resumed to an error after which it can be.
func goesOn(err error, resume string) error {
	switch {
	case errors.Is(err, virtual.ErrCut):
		return fmt.Errorf("%w; `fieldmesh rehearse --resume %s` goes on", err, resume)
	case errors.Is(err, errKilledTwice):
		return fmt.Errorf("%w; then `fieldmesh rehearse --resume %s` goes on", err, resume)
	}
	return err
}

// launch drives the run inside a kernel, which it announces on out, and then reads
// what it has become.
func (s *session) launch(ctx context.Context, f rehearseFlags, k kernel.Kernel, heard *relay.Hearer,
	out io.Writer) error {
	if err := sameKernel(s.plan.Run, *s.archive.Info().Clock, *f.clock, k.Path); err != nil {
		return err
	}
	o, err := s.launchOptions(f, k)
	if err != nil {
		return err
	}
	tail, err := f.influx.tail(ctx, s.archive.Dir(), s.log)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "virtual time: Linux %s on one processor, at most %d MB; console: %s\n", k.Version,
		o.MemoryMB, o.Log); err != nil {
		return err
	}
	if err := s.again(); err != nil {
		return err
	}
	if err := s.archive.Note(fmt.Sprintf("%sLinux %s, configuration %s, --start %s", bootNote, k.Version,
		k.Configuration, o.Start.Format(time.RFC3339Nano))); err != nil {
		return err
	}
	o.Line = heard.Line
	err = errors.Join(virtual.Launch(ctx, o), tail())
	if err == nil {
		var wanting bool
		if wanting, err = heard.End(); wanting {
			err = unmet{err}
		}
	}
	if rerr := s.reopen(); rerr != nil {
		return errors.Join(err, rerr)
	}
	if errors.Is(err, virtual.ErrKilled) && ctx.Err() == nil {
		return s.killed(err, o.MemoryMB)
	}
	if s.refused() {
		if rerr := os.Remove(o.Log); !errors.Is(rerr, fs.ErrNotExist) { // nothing shall be left of it
			err = errors.Join(err, rerr)
		}
	}
	return err
}

// bootNote begins the journal's note of a boot.
const bootNote = "virtual time: "

// killedNote stands in the journal of a run whose kernel was killed.
const killedNote = "the kernel in virtual time was killed from outside"

// errKilledTwice is in place of ErrCut when resuming alone does not help.
var errKilledTwice = errors.New("its kernel was killed twice, and no attempt was accepted or rejected in between")

// killed notes that the kernel was killed, as happens where memory is scarce. When it was before, and no
// attempt has been accepted or rejected since, the error is errKilledTwice.
func (s *session) killed(err error, mb int) error {
	entries, jerr := s.archive.Journal()
	if jerr != nil {
		return errors.Join(err, jerr)
	}
	s.runs = "" // the note is kept, though nothing else may be recorded
	for _, e := range slices.Backward(entries) {
		if v := e.Verdict; v != nil && (v.Outcome == wire.Accepted || v.Outcome == wire.Rejected) {
			break
		}
		if e.Text == killedNote {
			return fmt.Errorf("run %s: %w (%v); whatever bounds memory or processor time here must allow more than "+
				"%d MB for each kernel, or it must take less, by --memory-mb", s.plan.Run, errKilledTwice, err, mb)
		}
	}
	return errors.Join(err, s.archive.Note(killedNote))
}

// virtualClock is the clock of a run in a kernel.
func virtualClock(k kernel.Kernel) archive.Clock {
	return archive.Clock{Kind: archive.ClockVirtual, Kernel: k.Version, Configuration: k.Configuration, CallNs: callNs}
}

// sameKernel refuses a kernel that is not the one that a run was begun with. A run may know a kernel by its file's
// hash: formerly that was so wherever the file was.
func sameKernel(run string, begun, this archive.Clock, path string) error {
	if begun == this {
		return nil
	}
	byFile, err := this, error(nil)
	if byFile.Configuration, err = kernel.FileHash(path); err == nil && begun == byFile {
		return nil
	}
	return anotherKernel(run, begun, this)
}

// anotherKernel says why a run cannot be resumed by this clock, and how it can.
func anotherKernel(run string, begun, this archive.Clock) error {
	err := fmt.Errorf("run %s was begun with kernel %s of configuration %s and %d ns a system call, and this is %s of "+
		"%s and %d ns", run, begun.Kernel, begun.Configuration, begun.CallNs, this.Kernel, this.Configuration,
		this.CallNs)
	if begun.CallNs != this.CallNs {
		return fmt.Errorf("%w; resume it with the version of fieldmesh that began it", err)
	}
	path, missing := kernel.Built(begun.Configuration)
	if missing != nil {
		return fmt.Errorf("%w; name the file of the former with --kernel, or build it with the version of fieldmesh "+
			"that began the run", err)
	}
	return fmt.Errorf("%w; add --kernel %s", err, path)
}

// reopen reads the run's folder again: it was written to inside.
func (s *session) reopen() error {
	dir := s.archive.Dir()
	if err := s.archive.Close(); err != nil {
		return err
	}
	a, err := archive.Open(dir)
	if err != nil {
		return err
	}
	s.archive = a
	return nil
}

func (s *session) launchOptions(f rehearseFlags, k kernel.Kernel) (virtual.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return virtual.Options{}, fmt.Errorf("find this program: %w", err)
	}
	dir, err := filepath.Abs(s.archive.Dir())
	if err != nil {
		return virtual.Options{}, fmt.Errorf("find the run's folder: %w", err)
	}
	agent := f.agent
	if agent == "" {
		agent = filepath.Join(filepath.Dir(self), agentBinary)
	}
	if agent, err = filepath.Abs(agent); err != nil {
		return virtual.Options{}, fmt.Errorf("find the agent's program: %w", err)
	}
	if _, err := os.Stat(agent); err != nil {
		return virtual.Options{}, fmt.Errorf("find the agent's program: %w; build it with `make build`, or "+
			"name it with --agent", err)
	}
	seed, err := s.bootSeed()
	if err != nil {
		return virtual.Options{}, err
	}
	start := f.start
	if start.IsZero() {
		if start, err = s.start(); err != nil {
			return virtual.Options{}, err
		}
	}
	return virtual.Options{
		Kernel: k.Path, Init: self, InitArgs: []string{"field", "boot"},
		Command:  []string{self, "field", "drive", dir, "--agent", agent, "--patience", f.patience.String()},
		Writable: filepath.Dir(dir), Readable: []string{filepath.Dir(self), filepath.Dir(agent)},
		MemoryMB: f.virtual.memory(s.plan), MemoryDir: f.virtual.memoryDir, CallNs: callNs,
		Start: start.UTC(), Seed: seed,
		Log: filepath.Join(dir, consoleFile),
	}, nil
}

// start is the wall clock of a boot that nobody said: at the first when the run was made, the same for all its parts,
// so that one --start repeats it; later now, or two hours after the last verdict, beyond any attempt, if that is ahead.
func (s *session) start() (begin time.Time, err error) {
	entries, err := s.archive.Journal()
	booted := false
	for _, e := range entries {
		booted = booted || strings.HasPrefix(e.Text, bootNote)
		if beyond := e.Wall.Add(2 * time.Hour); e.Verdict != nil && beyond.After(begin) {
			begin = beyond
		}
	}
	if !booted {
		return s.archive.Info().CreatedWall, err
	}
	return slices.MaxFunc([]time.Time{begin, time.Now()}, time.Time.Compare), err
}

// memory is the most that a kernel may take for a plan, in MB: its disk has room for the longest trial.
func (f *virtualFlags) memory(p wire.RunPlan) int {
	var spool int64
	for _, t := range p.Trials {
		spool = max(spool, t.SpoolBytes())
	}
	disk := diskLeftMB + int(spool>>20) + 1
	return cmp.Or(f.memoryMB, max(memoryBaseMB+memoryNodeMB*len(p.Nodes), memoryKernelMB+2*disk))
}

// bootSeed is the seed of a boot's entropy: it follows from the run's, and no two boots of a run have the same, because
// what they draw names their records. Each is noted in the journal, which each shard has of its own.
func (s *session) bootSeed() (uint64, error) {
	entries, err := s.archive.Journal()
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	var b [24]byte
	binary.LittleEndian.PutUint64(b[:], s.plan.Seed)
	binary.LittleEndian.PutUint64(b[8:], uint64(len(entries)))
	if shard := s.archive.Info().Shard; shard != nil {
		binary.LittleEndian.PutUint64(b[16:], uint64(shard.Number))
	}
	h.Write(b[:])
	return h.Sum64(), nil
}
