// Package journal keeps what must outlive an agent of the run that it takes part in.
package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"fieldmesh.dev/fieldmesh/internal/durable"
	"fieldmesh.dev/fieldmesh/internal/verdict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Journal keeps what must outlive the agent: the plan (with its secret key,
// so 0600), whether the run has begun, and the outcome of every attempt.
type Journal struct {
	dir  string
	file appendFile
	size int64 // up to here every line is whole
}

// Records are those that the node keeps (node-agent/spool).
type Records interface {
	Position() wire.SpoolPosition
	Read(after uint64, limit int) (lines [][]byte, last uint64, err error)
}

// newestRecords is far more than are written between an attempt's end and its verdict in the journal.
const newestRecords = 1000

// KeptIn is the verdict with which an attempt was recorded to be kept, without an outcome
// where it was not: the agent may have been killed before it was in the journal. Records
// of before it was armed may be those of a former run of that name.
func KeptIn(records Records, run string, k Attempt) (wire.Verdict, error) {
	v := wire.Verdict{TrialKey: k.TrialKey}
	after := records.Position().Seq
	after = max(after-min(after, newestRecords), k.After)
	for {
		lines, last, err := records.Read(after, newestRecords)
		if err != nil || last == after {
			return v, err
		}
		after = last
		for _, line := range lines {
			var r wire.Record
			if r.UnmarshalJSON(line) != nil {
				continue // it is the controller's to look into
			}
			if s, ok := r.Body.(*wire.TrialState); ok && r.Run == run && r.Trial == k.Trial && r.Attempt == k.Attempt {
				v.Outcome, v.Reason = s.Outcome, s.Reason
			}
		}
	}
}

// appendFile is what the journal needs of *os.File; a test fills its disk.
type appendFile interface {
	io.WriterAt
	Sync() error
	Truncate(size int64) error
	Close() error
}

type journalLine struct {
	Begun   bool          `json:"begun,omitempty"`
	Ended   bool          `json:"ended,omitempty"`
	ByHand  string        `json:"by_hand,omitempty"` // with Begun, or alone when the plan was loaded
	Armed   *Attempt      `json:"armed,omitempty"`
	Verdict *wire.Verdict `json:"verdict,omitempty"`
	Heard   *Heard        `json:"heard,omitempty"` // with Armed and Verdict
}

// Attempt is one that was armed, and after which record of the node's.
type Attempt struct {
	wire.TrialKey
	After uint64 `json:"after,omitempty"`
}

// State is what a journal holds.
type State struct {
	Plan       *wire.RunPlan
	Started    bool
	Ended      bool
	ByHand     string // the newest restore by hand when the run was loaded, or begun
	Heard      Heard  // the newest; zero: not known
	Verdicts   map[int][]wire.Verdict
	Unfinished *Attempt // armed, and no outcome of the node's own
}

func (j *Journal) planPath() string { return filepath.Join(j.dir, "plan.json") }
func (j *Journal) linePath() string { return filepath.Join(j.dir, "attempts.ndjson") }

// Open opens the journal in a folder, and reads what it holds.
func Open(dir string) (*Journal, State, error) {
	st := State{Verdicts: map[int][]wire.Verdict{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, st, fmt.Errorf("open run state: %w", err)
	}
	j := &Journal{dir: dir}
	plan, err := os.ReadFile(j.planPath())
	if errors.Is(err, fs.ErrNotExist) {
		return j, st, nil
	}
	if err != nil {
		return nil, st, fmt.Errorf("open run state: %w", err)
	}
	if err := json.Unmarshal(plan, &st.Plan); err != nil {
		return nil, st, fmt.Errorf("read run state %q: %w", j.planPath(), err)
	}
	good, err := j.replay(&st)
	if err != nil {
		return nil, st, err
	}
	f, err := os.OpenFile(j.linePath(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, st, fmt.Errorf("open run state: %w", err)
	}
	j.file = f
	// A line that a crash tore is cut: nothing was promised for it.
	if err := j.file.Truncate(good); err != nil {
		return nil, st, fmt.Errorf("cut torn run state: %w", err)
	}
	j.size = good
	return j, st, nil
}

// replay reads the lines into st and returns how many bytes of them are whole.
func (j *Journal) replay(st *State) (int64, error) {
	data, err := os.ReadFile(j.linePath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("read run state: %w", err)
	}
	var good int64
	r := bufio.NewReader(bytes.NewReader(data))
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return good, nil
		}
		var l journalLine
		if json.Unmarshal(line, &l) != nil {
			return good, nil
		}
		good += int64(len(line))
		if l.Heard != nil {
			st.Heard = *l.Heard
		}
		switch {
		case l.Begun:
			st.Started, st.Ended, st.ByHand = true, false, l.ByHand
		case l.ByHand != "":
			st.ByHand = l.ByHand
		case l.Ended:
			st.Started, st.Ended = false, true
		case l.Armed != nil:
			st.Unfinished = l.Armed
		case l.Verdict != nil:
			// A final verdict is the controller's: the node may have no record yet.
			if k := st.Unfinished; k != nil && k.TrialKey == l.Verdict.TrialKey && !l.Verdict.Final {
				st.Unfinished = nil
			}
			st.Verdicts[l.Verdict.Trial] = SetVerdict(st.Verdicts[l.Verdict.Trial], *l.Verdict)
		}
	}
}

// Load replaces whatever run was held by a new one, and notes which restore by hand was the newest then.
func (j *Journal) Load(plan wire.RunPlan, byHand string) error {
	if j.file != nil {
		if err := j.file.Close(); err != nil {
			return fmt.Errorf("close run state: %w", err)
		}
		j.file = nil
	}
	if err := os.Remove(j.linePath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget former run: %w", err)
	}
	if err := j.ReplacePlan(plan); err != nil {
		return err
	}
	f, err := os.OpenFile(j.linePath(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("open run state: %w", err)
	}
	j.file, j.size = f, 0
	if byHand == "" {
		return nil
	}
	return j.append(journalLine{ByHand: byHand})
}

// SamePlan compares two plans but for where the control links are, and the shard: a run that
// is resumed may find its nodes under other addresses, and older controllers told no shard.
func SamePlan(a, b wire.RunPlan) (bool, error) {
	var texts [2]string
	for i, p := range []wire.RunPlan{a, b} {
		p.Nodes, p.Shard = slices.Clone(p.Nodes), nil
		for k := range p.Nodes {
			p.Nodes[k].ControlAddr = ""
		}
		text, err := json.Marshal(p)
		if err != nil {
			return false, fmt.Errorf("encode plan: %w", err)
		}
		texts[i] = string(text)
	}
	return texts[0] == texts[1], nil
}

// GivesWay reports whether a plan is that of another shard of the run that is held, and the controller of the shard
// that is held has decided all its trials. Each shard has a key of its own.
func GivesWay(held wire.RunPlan, verdicts map[int][]wire.Verdict, plan wire.RunPlan) bool {
	if held.Shard == nil || plan.Shard == nil || *held.Shard == *plan.Shard {
		return false
	}
	for _, t := range held.Trials {
		vs := verdicts[t.Number]
		_, more := verdict.Next(held.AttemptsMax, vs)
		alone := slices.ContainsFunc(vs, func(v wire.Verdict) bool { return !v.Final })
		if held.Shard.Has(t.Number) && (more || alone) {
			return false
		}
	}
	plan.Key = held.Key
	same, err := SamePlan(held, plan)
	return err == nil && same
}

// ReplacePlan rewrites the plan and leaves what was noted of its attempts.
func (j *Journal) ReplacePlan(plan wire.RunPlan) error {
	body, err := json.Marshal(plan)
	if err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	return writeDurably(j.planPath(), body)
}

// Armed notes that an attempt was armed, and when the run was last heard of then.
func (j *Journal) Armed(a Attempt, h Heard) error { return j.append(journalLine{Armed: &a, Heard: &h}) }

// Kept notes the outcome of an attempt, and when the run was last heard of then.
func (j *Journal) Kept(v wire.Verdict, h Heard) error {
	return j.append(journalLine{Verdict: &v, Heard: &h})
}

// Begun notes that the run has begun, and which restore by hand was the newest then.
func (j *Journal) Begun(byHand string) error {
	return j.append(journalLine{Begun: true, ByHand: byHand})
}

// Ended notes that the run has ended.
func (j *Journal) Ended() error { return j.append(journalLine{Ended: true}) }

func (j *Journal) append(l journalLine) error {
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode run state: %w", err)
	}
	if j.file == nil {
		return errors.New("write run state: the plan could not be written, and no run is held")
	}
	b = append(b, '\n')
	_, err = j.file.WriteAt(b, j.size)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		// The next line is written over what a full disk took of this one.
		return errors.Join(fmt.Errorf("write run state: %w", err), j.file.Truncate(j.size))
	}
	j.size += int64(len(b))
	return nil
}

// writeDurably replaces a file so that a crash leaves the old one or the new one.
func writeDurably(path string, body []byte) error {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	_, err = f.Write(body)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err == nil {
		err = durable.Folder(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	return nil
}

// SetVerdict puts v among a trial's verdicts. A final one replaces a
// provisional one of the same attempt and is never replaced by it.
func SetVerdict(vs []wire.Verdict, v wire.Verdict) []wire.Verdict {
	for i := range vs {
		if vs[i].Attempt == v.Attempt {
			if v.Final || !vs[i].Final {
				vs[i] = v
			}
			return vs
		}
	}
	return append(vs, v)
}
