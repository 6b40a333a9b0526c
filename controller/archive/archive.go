// Package archive keeps a run on disk: what was planned, every record of every
// node, and every decision. It is the truth that reports, exports and the time
// series database are made from. It neither talks to nodes nor judges.
package archive

import (
	"encoding/json"
	"errors"
	"iter"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Places a run can have been driven at.
const (
	PlaceRehearsal = "rehearsal"
	PlaceRoad      = "road"
	PlaceBench     = "bench"
)

// ErrLocked is returned when another process writes the same run.
var ErrLocked = errors.New("the run is being written by another process")

// RunInfo is what a run is, fixed when it is created.
type RunInfo struct {
	Run         string            `json:"run"`
	Campaign    string            `json:"campaign"`
	CreatedWall time.Time         `json:"created_wall"`
	Seed        uint64            `json:"seed"`
	Version     string            `json:"version"` // of the controller that drove the run
	Place       string            `json:"place"`   // rehearsal | road | bench
	Site        map[string]string `json:"site,omitempty"`
	CampaignRaw []byte            `json:"-"` // campaign.yaml, byte for byte
	Plan        wire.RunPlan      `json:"-"` // schedule.json; its key is never stored
}

// Attempt is one attempt at a trial as the archive holds it.
type Attempt struct {
	wire.TrialKey
	Nodes   []string      // whose records are held, sorted; "field" is the emulated field
	Verdict *wire.Verdict // absent while undecided
	Sealed  bool
}

// Finding is one thing that Verify holds against an archive.
type Finding struct {
	Path    string // relative to the run's folder
	Problem string // missing | changed | truncated | unexpected | unfinished | unreadable
	Detail  string
}

// JournalEntry is one line of journal.ndjson.
type JournalEntry struct {
	Wall    time.Time       `json:"t_wall"`
	Type    string          `json:"type"` // verdict | note | sealed | finished
	Verdict *wire.Verdict   `json:"verdict,omitempty"`
	Trial   *wire.TrialKey  `json:"trial,omitempty"`
	Text    string          `json:"text,omitempty"`
	Extra   json.RawMessage `json:"extra,omitempty"`
}

// Archive is one run's folder, open for writing or, from Read, for reading.
// It may be used by several goroutines at once.
type Archive struct {
	dir  string
	info RunInfo
}

var errTODO = errors.New("not built yet")

// Create makes the folder of a new run and locks it.
func Create(dir string, info RunInfo) (*Archive, error) { return nil, errTODO }

// Open opens a run to go on writing it: it locks it, cuts torn tails, and
// recovers every node's cursor.
func Open(dir string) (*Archive, error) { return nil, errTODO }

// Read opens a run for reading only; it takes no lock and changes nothing.
func Read(dir string) (*Archive, error) { return nil, errTODO }

// Close gives up the lock.
func (a *Archive) Close() error { return nil }

// Dir is the run's folder.
func (a *Archive) Dir() string { return a.dir }

// Info is what the run is; its Plan has no key.
func (a *Archive) Info() RunInfo { return a.info }

// Append stores a node's records, one JSON object each, without newline. When
// it returns nil they are on disk. Records that are held already, by (node,
// epoch, seq), and those of another run are passed over.
func (a *Archive) Append(node string, lines [][]byte) error { return errTODO }

// AppendField stores records that the emulated field tells of an attempt, under
// the node "field"; the header's node, epoch, seq, run, trial and attempt are
// set here.
func (a *Archive) AppendField(trial, attempt int, records []wire.Record) error { return errTODO }

// Cursor names the newest durable record of a node; zero when there is none.
func (a *Archive) Cursor(node string) wire.SpoolPosition { return wire.SpoolPosition{} }

// Decide writes a final verdict to the journal.
func (a *Archive) Decide(v wire.Verdict) error { return errTODO }

// Note writes a remark about the run to the journal.
func (a *Archive) Note(text string) error { return errTODO }

// Decisions are the final verdicts in the order in which they fell.
func (a *Archive) Decisions() []wire.Verdict { return nil }

// Journal is every decision and note in order.
func (a *Archive) Journal() ([]JournalEntry, error) { return nil, errTODO }

// Trials lists the attempts that have records or a verdict, in order.
func (a *Archive) Trials() ([]Attempt, error) { return nil, errTODO }

// Records streams an attempt's records, node by node in the order of their seq.
func (a *Archive) Records(trial, attempt int) iter.Seq2[wire.Record, error] {
	return func(func(wire.Record, error) bool) {}
}

// Between streams the records of all nodes that belong to no trial.
func (a *Archive) Between() iter.Seq2[wire.Record, error] {
	return func(func(wire.Record, error) bool) {}
}

// Seal closes a decided attempt: plan, verdict, iperf3's outputs and the nodes'
// provenance become files, and the manifest is written last.
func (a *Archive) Seal(trial, attempt int) error { return errTODO }

// Finish seals what is decided and writes the run's manifest.
func (a *Archive) Finish() error { return errTODO }

// Verify compares a run's folder with its manifests.
func Verify(dir string) ([]Finding, error) { return nil, errTODO }
