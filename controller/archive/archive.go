// Package archive keeps a run on disk: what was planned, every record of every
// node, and every decision. It is the truth that reports, exports and the time
// series database are made from. It neither talks to nodes nor judges.
//
// A run is one folder:
//
//	run.json         what the run is (RunInfo)
//	campaign.yaml    the campaign file, byte for byte
//	schedule.json    the plan that the nodes hold, without its key
//	journal.ndjson   decisions and notes
//	cursors.ndjson   how far each node's records are stored
//	trials/0001-a1/  one attempt: records/NODE.ndjson; once sealed also plan.json,
//	                 verdict.json, iperf3/, provenance/ and MANIFEST.sha256
//	between/         records of no trial, one file a node; lines that are not
//	                 records in NODE.unreadable
//	late/0001-a1/    records that came after their attempt was sealed
//	MANIFEST.sha256  once the run is finished
//	PLAN.sha256      of run.json, campaign.yaml, schedule.json and what the campaign
//	                 names, before the first trial
//	*.signature.json the controller's signatures of those two
//	shards/          of a run that was merged: each shard's run.json, manifests and
//	                 signatures, and its schedule.json where its bytes are others
//
// Files of records are only ever appended to, in whole lines. Names that begin
// with a dot, and those of Derived, are not part of the record of the run.
package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/lock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Places a run can have been driven at.
const (
	PlaceRehearsal = "rehearsal"
	PlaceRoad      = "road"
	PlaceBench     = "bench"
	// PlaceLog is a run without trials: what a phone logged by itself.
	PlaceLog = "log"
)

// FieldNode is the pseudo-node under which an emulated field's records stand.
const FieldNode = "field"

const (
	runFile      = "run.json"
	campaignFile = "campaign.yaml"
	scheduleFile = "schedule.json"
	movementDir  = "movement"
	JournalFile  = "journal.ndjson"
	cursorFile   = "cursors.ndjson"
	manifestFile = "MANIFEST.sha256"
	planSums     = "PLAN.sha256"
	shardsDir    = "shards"

	manifestSignature = "MANIFEST.signature.json"
	planSignature     = "PLAN.signature.json"

	LockFile = ".lock"
	format   = 1
)

// ErrLocked is returned when another process writes the same run.
var ErrLocked = errors.New("the run is being written by another process")

// ErrExists is returned when a new run's folder holds a run already.
var ErrExists = errors.New("the folder holds a run already")

// ErrNoRun is returned when a folder that is to hold a run holds none.
var ErrNoRun = errors.New("there is no run in this folder")

// ErrNoFolder is returned when the folder of a new run cannot be made.
var ErrNoFolder = errors.New("make folder")

// ErrDamaged is returned when what says what a run is cannot be read.
var ErrDamaged = errors.New("the run is damaged")

// errReadOnly is what writing to an archive from Read gives.
var errReadOnly = errors.New("the archive is open for reading only")

// errMoved is what writing to a run gives whose folder is not there any more.
var errMoved = errors.New("the run's folder was moved or removed, or its disk is gone")

// RunInfo is what a run is, fixed when it is created.
type RunInfo struct {
	Run         string    `json:"run"`
	Campaign    string    `json:"campaign"`
	CreatedWall time.Time `json:"created_wall"`
	Seed        uint64    `json:"seed"`
	Version     string    `json:"version"`         // of the controllers that drove the run; stored: the first
	Place       string    `json:"place"`           // rehearsal | road | bench | log
	Clock       *Clock    `json:"clock,omitempty"` // of a rehearsal; nil: nature's
	// Radio is RadioMAC80211 where a rehearsal's nodes had the kernel's own radios; empty: interfaces
	// of Ethernet at an emulated radio, or it is no rehearsal.
	Radio      string   `json:"radio,omitempty"`
	Deviations []string `json:"deviations,omitempty"` // in what a rehearsal's network is not the campaign's
	// ChannelDraws is plan's, of a rehearsal; empty: one for all repetitions, as before there was a
	// choice.
	ChannelDraws string            `json:"channel_draws,omitempty"`
	Site         map[string]string `json:"site,omitempty"`
	Paper        *plan.Paper       `json:"paper,omitempty"`  // whose question the campaign puts; nil: nobody's
	Scale        *plan.Scale       `json:"scale,omitempty"`  // nil: the campaign as its file has it
	Shard        *Shard            `json:"shard,omitempty"`  // nil: the whole campaign
	Merged       int               `json:"merged,omitempty"` // of how many shards it was put together; 0: of none
	Enough       *plan.StopWhen    `json:"enough,omitempty"` // nil: all blocks are driven
	CampaignRaw  []byte            `json:"-"`                // campaign.yaml, byte for byte
	// Movement are the files that the campaign names, by their name in the
	// folder movement, byte for byte. They are only written: see Dir.
	Movement map[string][]byte `json:"-"`
	Plan     wire.RunPlan      `json:"-"` // schedule.json; its key is never stored
}

// The clocks that a rehearsal can have been driven by.
const (
	ClockReal    = "real"
	ClockVirtual = "virtual"
)

// RadioMAC80211 is the kernel's 802.11 stack over simulated cards.
const RadioMAC80211 = "mac80211"

// Clock is what time was in a rehearsal.
type Clock struct {
	Kind          string `json:"kind"`                    // real | virtual
	Kernel        string `json:"kernel,omitempty"`        // of virtual time: its version
	Configuration string `json:"configuration,omitempty"` // hash of all that this kernel is built from
	CallNs        int    `json:"call_ns,omitempty"`       // virtual time that a system call takes
}

// Virtual reports whether time stands still while anything runs.
func (c *Clock) Virtual() bool { return c != nil && c.Kind == ClockVirtual }

// stored is run.json.
type stored struct {
	Format int `json:"format"`
	RunInfo
}

// keyless is schedule.json: its Key hides the plan's.
type keyless struct {
	wire.RunPlan
	Key *struct{} `json:"key,omitempty"`
}

// Archive is one run's folder, open for writing or, from Read, for reading.
// It may be used by several goroutines at once.
type Archive struct {
	dir  string
	info RunInfo
	disk disk
	lock *os.File    // nil: open for reading only
	is   fs.FileInfo // run.json, of a run that is only read

	identity *keys.Identity // signs the run; nil: nobody does

	mu        sync.Mutex
	places    map[string]map[string]*place // node → epoch → how far its records are stored
	newest    map[string]string            // node → epoch of its newest append
	others    map[string]bool              // nodes of which another shard's records were passed over
	decisions []wire.Verdict
	decidedAt map[wire.TrialKey]int // where in decisions
	sealed    map[wire.TrialKey]bool
	finished  bool
	stop      *Stop  // nil: no block was found to be the last
	driver    string // the version of the controller that continued it last; empty: none but the first
	journal   journalSize
}

var runName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// Create makes the folder of a new run and locks it. run.json is written last,
// so that a folder left half made by a crash can be created again.
func Create(dir string, info RunInfo) (*Archive, error) {
	if !runName.MatchString(info.Run) {
		return nil, fmt.Errorf("create run %q: a name has 1 to 64 of a-z, 0-9 and -", info.Run)
	}
	info.Plan.Key = nil
	a := newArchive(dir, info)
	if err := a.disk.makeRoot(); err != nil {
		return nil, fmt.Errorf("create run %q: %w", info.Run, err)
	}
	found, err := a.disk.survey()
	if err != nil {
		return nil, fmt.Errorf("create run %q: %w", info.Run, err)
	}
	a.disk.extent = &found.own
	if err := a.takeLock(); err != nil {
		return nil, fmt.Errorf("create run %q: %w", info.Run, err)
	}
	if err := a.writeInfo(); err != nil {
		return nil, errors.Join(fmt.Errorf("create run %q: %w", info.Run, err), a.Close())
	}
	return a, nil
}

func (a *Archive) writeInfo() error {
	if _, err := os.Stat(filepath.Join(a.dir, runFile)); err == nil {
		return ErrExists
	}
	for _, of := range []string{"trials", "between", JournalFile} {
		if a.disk.exists(of) {
			return fmt.Errorf("%q has %s of a run whose %s is missing; copy that back from a copy of the folder, or "+
				"give the new run another name", a.dir, of, runFile)
		}
	}
	schedule, err := encoded(scheduleFile, keyless{RunPlan: a.info.Plan})
	if err != nil {
		return err
	}
	if err := readable(schedule); err != nil { // before anything is written, or driven
		return errors.Join(fmt.Errorf("its schedule could not be read again: %w; drive fewer trials at once", err),
			a.Discard())
	}
	if err := a.disk.replace(campaignFile, a.info.CampaignRaw); err != nil {
		return err
	}
	for name, raw := range a.info.Movement {
		if err := errors.Join(a.disk.mkdir(movementDir), a.disk.replace(filepath.Join(movementDir, filepath.Base(name)),
			raw)); err != nil {
			return err
		}
	}
	if err := a.disk.replace(scheduleFile, schedule); err != nil {
		return err
	}
	return a.disk.replaceJSON(runFile, stored{Format: format, RunInfo: a.info})
}

// Open opens a run to go on writing it: it locks it, cuts torn tails, and
// recovers every node's cursor. A finished run whose files are not as its manifest says is ErrDamaged.
func Open(dir string) (*Archive, error) {
	a := newArchive(dir, RunInfo{})
	if !a.disk.exists(runFile) { // before the lock, which would leave a file there
		return nil, fmt.Errorf("open run %q: %w", dir, ErrNoRun)
	}
	if err := a.takeLock(); err != nil {
		return nil, fmt.Errorf("open run %q: %w", dir, err)
	}
	if err := a.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("open run %q: %w", dir, err), a.Close())
	}
	return a, nil
}

// Read opens a run for reading only; it takes no lock and changes nothing, so
// that a run can be looked at while it is being driven.
func Read(dir string) (*Archive, error) { return read(disk{root: dir}) }

func read(d disk) (*Archive, error) {
	dir := d.root
	a := newArchive(dir, RunInfo{})
	a.disk = d
	var err error
	if a.is, err = os.Stat(d.path(runFile)); err != nil {
		return nil, fmt.Errorf("read run %q: %w", dir, ErrNoRun)
	}
	if err = a.load(); err != nil {
		return nil, fmt.Errorf("read run %q: %w", dir, err)
	}
	return a, nil
}

// Again is a run that Read opened as it is now. Only what changes while a run is driven is read again.
func (a *Archive) Again() (*Archive, error) {
	now, err := os.Stat(a.disk.path(runFile))
	// A new file may have the number of one that was removed.
	if err != nil || !os.SameFile(now, a.is) || !now.ModTime().Equal(a.is.ModTime()) {
		return read(a.disk)
	}
	again := newArchive(a.dir, a.info)
	again.disk, again.is = a.disk, a.is
	if err := again.readDecided(); err != nil {
		return nil, fmt.Errorf("read run %q: %w", a.dir, err)
	}
	return again, nil
}

func newArchive(dir string, info RunInfo) *Archive {
	return &Archive{
		dir: dir, info: info, disk: disk{root: dir},
		places: map[string]map[string]*place{}, newest: map[string]string{}, others: map[string]bool{},
		sealed:    map[wire.TrialKey]bool{},
		decidedAt: map[wire.TrialKey]int{},
	}
}

func (a *Archive) load() error {
	found, err := a.disk.survey()
	if err != nil || len(found.foreign) > 0 {
		return errors.Join(err, foreignErr(found.foreign))
	}
	if err := a.readInfo(); err != nil {
		return err
	}
	var mended []string
	if a.lock != nil {
		a.disk.extent = &found.own
		if err := a.disk.asFinished(); err != nil {
			return err
		}
		if mended, err = a.disk.mend(); err != nil {
			return err
		}
	}
	if err := a.readDecided(); err != nil {
		return err
	}
	if a.lock == nil {
		return nil
	}
	err = a.recoverCursors()
	for _, text := range mended {
		err = errors.Join(err, a.note("", text))
	}
	return err
}

// readDecided finds what is decided, what is sealed, and whether the run is over.
func (a *Archive) readDecided() error {
	if err := a.readJournal(); err != nil {
		return err
	}
	attempts, err := a.folders()
	for _, k := range attempts {
		a.sealed[k] = a.disk.exists(filepath.Join(trialDir(k), manifestFile))
	}
	a.finished = a.disk.exists(manifestFile)
	return err
}

func (a *Archive) readInfo() error {
	var s stored
	if err := a.disk.readJSON(runFile, &s); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if s.Format != format {
		return fmt.Errorf("read %s: format %d is not known here (known: %d)", runFile, s.Format, format)
	}
	if err := s.fits(); err != nil {
		return fmt.Errorf("read %s: %w", runFile, err)
	}
	a.info = s.RunInfo
	plan, err := a.disk.schedule(scheduleFile)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	a.info.Plan = plan
	raw, err := a.disk.read(campaignFile)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	a.info.CampaignRaw = raw
	return nil
}

// fits refuses shards that no run has: their numbers are reckoned with.
func (i RunInfo) fits() error {
	if s := i.Shard; s != nil && (s.Number < 1 || s.Number > s.Of || s.Of > wire.MaxTrials) {
		return fmt.Errorf("there is no shard %s", s)
	}
	if i.Merged < 0 || i.Merged > wire.MaxTrials {
		return fmt.Errorf("no run is merged of %d shards", i.Merged)
	}
	return nil
}

// takeLock holds the run for this process; the kernel frees it at its end.
func (a *Archive) takeLock() (err error) {
	if a.lock, err = lock.Hold(filepath.Join(a.dir, LockFile)); errors.Is(err, lock.ErrHeld) {
		return ErrLocked
	}
	return err
}

// Empty reports whether nothing is recorded or decided yet.
func (a *Archive) Empty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	attempts, err := a.folders()
	return err == nil && len(attempts) == 0 && len(a.decisions) == 0 && !a.disk.exists("between")
}

// Discard takes away a run that is empty and not finished, and closes it. Any other is
// closed only.
func (a *Archive) Discard() (err error) {
	if a.Empty() && !a.Finished() && a.writable() == nil { // with the lock held, so that nobody resumes it meanwhile
		err = os.RemoveAll(filepath.Join(a.dir, movementDir))
		for _, name := range []string{JournalFile, cursorFile, planSums, planSignature, runFile, scheduleFile,
			campaignFile, LockFile} {
			if rerr := os.Remove(filepath.Join(a.dir, name)); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, fmt.Errorf("discard run %q: %w", a.info.Run, rerr))
			}
		}
		_ = os.Remove(a.dir) // stays when there are files that are not ours
	}
	return errors.Join(err, a.Close())
}

// Close gives up the lock.
func (a *Archive) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lock == nil {
		return nil
	}
	err := a.lock.Close()
	a.lock = nil
	return err
}

// Dir is the run's folder.
func (a *Archive) Dir() string { return a.dir }

// Info is what the run is; its Plan has no key.
func (a *Archive) Info() RunInfo { return a.info }

// Trial is the plan's trial of a number.
func (a *Archive) Trial(number int) (wire.Trial, bool) {
	trials := a.info.Plan.Trials
	if i := number - 1; i >= 0 && i < len(trials) && trials[i].Number == number {
		return trials[i], true // the ordinary plan is in order; every record asks
	}
	for i := range trials {
		if trials[i].Number == number {
			return trials[i], true
		}
	}
	return wire.Trial{}, false
}

// FiguresFolder is where a report puts the figures that are files of their own.
const FiguresFolder = "figures"

// MapFile is a street map that somebody put beside a run's files.
const MapFile = "map.pmtiles"

// Derived reports whether a path in a run's folder is made from the run and can
// be made again, or is a street map: no manifest covers it.
func Derived(rel string) bool {
	first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return strings.HasPrefix(first, ".") || first == "report.html" || first == "report.pdf" || first == "metrics.csv" ||
		first == "calibrated.yaml" || first == "export" || first == FiguresFolder || first == MapFile
}

// writable guards every change. A finished run that is written again loses its
// manifest first: it is no longer what was finished. Another folder in the run's place,
// as that on which its disk was mounted, is not written to.
func (a *Archive) writable() error {
	if a.lock == nil {
		return errReadOnly
	}
	held, err := a.lock.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(a.disk.path(LockFile)); err != nil || !os.SameFile(held, there) {
		return errMoved
	}
	if !a.finished {
		return nil
	}
	if err := a.disk.remove(manifestFile); err != nil {
		return err
	}
	a.finished = false
	return nil
}

func trialDir(k wire.TrialKey) string {
	return filepath.Join("trials", attemptName(k))
}

func attemptName(k wire.TrialKey) string { return fmt.Sprintf("%04d-a%d", k.Trial, k.Attempt) }

func parseAttempt(name string) (wire.TrialKey, bool) {
	var k wire.TrialKey
	if _, err := fmt.Sscanf(name, "%d-a%d", &k.Trial, &k.Attempt); err != nil {
		return k, false
	}
	return k, attemptName(k) == name
}

func marshalLine(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode line: %w", err)
	}
	return append(b, '\n'), nil
}
