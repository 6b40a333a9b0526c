package cmd

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
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

// consoleFile is the log of the kernel's console in the run's folder: no part
// of the record of the run.
const consoleFile = ".console.log"

// virtualFlags say how a rehearsal in virtual time is made.
type virtualFlags struct {
	clock    string
	kernel   string
	memoryMB int
	start    string
}

func (f *virtualFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.clock, "clock", "", "real or virtual: virtual time waits for what runs in it, and "+
		"needs no root (default: real, or as the run was begun)")
	c.Flags().StringVar(&f.kernel, "kernel", "",
		"for virtual time: the kernel's file (default: what `"+kernel.Build+"` built)")
	c.Flags().IntVar(&f.memoryMB, "memory-mb", 0,
		"for virtual time: the most that the kernel may take of this machine's memory (default: by "+
			"the number of nodes)")
	c.Flags().StringVar(&f.start, "start", "", "for virtual time: what its wall clock shows at the start, as "+
		"2026-11-30T12:00:00Z (default: now)")
}

// virtually reports whether a rehearsal is to be in virtual time: as it is asked
// for, or as the run was begun.
func (f *rehearseFlags) virtually() (bool, error) {
	asked := f.virtual.clock
	switch asked {
	case "", archive.ClockReal, archive.ClockVirtual:
	default:
		return false, fmt.Errorf("--clock %s: it is real or virtual", asked)
	}
	begun := archive.ClockReal
	if f.resume != "" {
		a, err := archive.Read(runFolder(f.runs, f.resume))
		if err != nil {
			return false, explainRun(f.runs, f.resume, err)
		}
		if a.Info().Clock.Virtual() {
			begun = archive.ClockVirtual
		}
		if asked != "" && asked != begun {
			return false, fmt.Errorf("--clock %s: run %s was begun in %s time, and goes on in it", asked, a.Info().Run,
				begun)
		}
		asked = begun
	}
	return asked == archive.ClockVirtual, nil
}

// findKernel finds the kernel, or says how to come by it.
func (f *virtualFlags) find() (kernel.Kernel, error) {
	if f.kernel != "" {
		return kernel.At(f.kernel)
	}
	k, err := kernel.Find()
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
func rehearseVirtually(ctx context.Context, f rehearseFlags, file string, out io.Writer) error {
	if f.fields != 1 {
		return fmt.Errorf("--fields %d: in virtual time a field has one processor; drive parts side "+
			"by side with --shard", f.fields)
	}
	k, err := f.virtual.find()
	if err != nil {
		return err
	}
	if f.virtual.start != "" {
		if f.start, err = time.Parse(time.RFC3339, f.virtual.start); err != nil {
			return fmt.Errorf("--start: %w", err)
		}
	}
	f.clock = &archive.Clock{Kind: archive.ClockVirtual, Kernel: k.Version, Configuration: k.Configuration,
		CallNs: callNs}
	s, err := openSession(f.runFlags, file, archive.PlaceRehearsal)
	if err != nil {
		return err
	}
	if err = kernel.Check(s.plan.Trials); err == nil {
		err = s.launch(ctx, f, k, out)
	}
	return errors.Join(err, s.conclude(out), s.close())
}

// launch drives the run inside a kernel, and then reads what it has become.
func (s *session) launch(ctx context.Context, f rehearseFlags, k kernel.Kernel, out io.Writer) error {
	if c := s.archive.Info().Clock; *c != *f.clock {
		return fmt.Errorf("run %s was begun with kernel %s of configuration %s, and this is %s of %s; name the "+
			"former with --kernel",
			s.plan.Run, c.Kernel, c.Configuration, k.Version, k.Configuration)
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
	if err := s.archive.Note(fmt.Sprintf("virtual time: Linux %s, configuration %s", k.Version,
		k.Configuration)); err != nil {
		return err
	}
	heard := newHearer(newProgress(out, []string{""}))
	o.Line = heard.line
	err = errors.Join(virtual.Launch(ctx, o), tail())
	if err == nil {
		err = heard.ended()
	}
	if rerr := s.reopen(); rerr != nil {
		return errors.Join(err, rerr)
	}
	if s.refused() {
		return errors.Join(err, os.Remove(o.Log)) // nothing shall be left of it
	}
	if errors.Is(err, virtual.ErrCut) {
		return fmt.Errorf("%w; `fieldmesh rehearse --resume %s` goes on", err, s.archive.Dir())
	}
	return err
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
	memory := f.virtual.memoryMB
	if memory == 0 {
		memory = memoryBaseMB + memoryNodeMB*len(s.plan.Nodes)
	}
	start := f.start
	if start.IsZero() {
		start = time.Now()
	}
	return virtual.Options{
		Kernel: k.Path, Init: self, InitArgs: []string{"field", "boot"},
		Command:  []string{self, "field", "drive", dir, "--agent", agent, "--patience", f.patience.String()},
		Writable: filepath.Dir(dir), Readable: []string{filepath.Dir(self), filepath.Dir(agent)},
		MemoryMB: memory, Start: start, Seed: seed, CallNs: callNs, Log: filepath.Join(dir, consoleFile),
	}, nil
}

// bootSeed is the seed of a boot's entropy: it follows from the run's, and no
// two boots of a run have the same, because what they draw names their records.
// Each boot is noted in the journal, which therefore only grows.
func (s *session) bootSeed() (uint64, error) {
	entries, err := s.archive.Journal()
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], s.plan.Seed)
	binary.LittleEndian.PutUint64(b[8:], uint64(len(entries)))
	h.Write(b[:])
	return h.Sum64(), nil
}

// hearer takes the lines from inside.
type hearer struct {
	progress *progress
	begun    time.Time // by this machine's clock
	begunAt  int       // trials decided before
	known    bool      // begunAt is
	end      *ended
}

func newHearer(p *progress) *hearer { return &hearer{progress: p, begun: time.Now()} }

func (h *hearer) line(raw []byte) error {
	var l told
	if err := json.Unmarshal(raw, &l); err != nil {
		return fmt.Errorf("decode line %.80q from virtual time: %w", raw, err)
	}
	if l.Step != nil {
		if !h.known {
			h.begunAt, h.known = l.Step.Decided, true
		}
		h.progress.step(*l.Step)
		if l.Step.Verdict != nil {
			h.progress.say(h.pace(l))
		}
	}
	if l.Ended != nil {
		h.end = l.Ended
	}
	return nil
}

// pace says how virtual time goes beside this machine's, and what is left by it.
func (h *hearer) pace(l told) string {
	took := time.Since(h.begun)
	text := fmt.Sprintf("        %.0f s of virtual time in %.0f s", l.UptimeS, took.Seconds())
	if done := l.Step.Decided - h.begunAt; done > 0 && l.Step.Total > l.Step.Decided {
		left := took / time.Duration(done) * time.Duration(l.Step.Total-l.Step.Decided)
		text += fmt.Sprintf(", about %v left", left.Round(time.Second))
	}
	return text
}

// ended is how the rehearsal inside said that it ended.
func (h *hearer) ended() error {
	switch {
	case h.end == nil:
		return errors.New("the rehearsal in virtual time ended without a word; its console says more")
	case h.end.Error != "":
		return errors.New(h.end.Error)
	}
	return nil
}
