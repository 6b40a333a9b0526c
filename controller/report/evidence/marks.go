package evidence

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Mark is what a person noted on the way, by the phone's app.
type Mark struct {
	wire.Header
	wire.Noted
	Wall time.Time // by the node's clock; zero: not known
	Here bool      // its photo or recording, if it has one, is in the run's folder
}

// marks gathers them. What the clock of the day was is told by the same nodes' records.
type marks struct {
	found []Mark
	walls map[string][]told // by node and epoch: its boots, as its records have them
	seen  map[string]int    // place in found, by who noted it and its id
}

// told is what a record says about the boot in which it was made.
type told struct {
	seq      uint64
	bootNs   int64
	offsetNs *int64 // the clock of the day minus the boot clock; nil: not told
}

const (
	// A spool is numbered through all boots of its node. Each leaves out at least so many numbers.
	bootGap = 1 << 24
	// Records of one boot may have been made in another order than they are numbered in, a little apart.
	disorderNs = int64(time.Minute)
)

// inBootOf is the newest offset in the boot in which a record was made; nil: not told. all is in the order of numbers.
func inBootOf(seq uint64, all []told) (offsetNs *int64) {
	for i, one := range all {
		if i > 0 && (one.seq-all[i-1].seq >= bootGap || one.bootNs < all[i-1].bootNs-disorderNs) {
			if one.seq > seq {
				break
			}
			offsetNs = nil
		}
		if one.offsetNs != nil {
			offsetNs = one.offsetNs
		}
	}
	return offsetNs
}

func (m *marks) add(r wire.Record) {
	if m.walls == nil {
		m.walls = map[string][]told{}
	}
	spool := r.Node + "/" + r.Epoch
	switch b := r.Body.(type) {
	case *wire.WallClock:
		m.walls[spool] = append(m.walls[spool], told{r.Seq, r.TBootNs, new(b.OwnWallOffsetNs)})
	case *wire.Noted:
		if b.Note != "mark" {
			return
		}
		m.walls[spool] = append(m.walls[spool], told{r.Seq, r.TBootNs, nil})
		one := Mark{Header: r.Header, Noted: *b}
		if b.Attachment != nil && b.Attachment.Validate() != nil {
			one.Attachment = nil
		}
		key := b.By + "/" + b.ID
		if at, again := m.seen[key]; again {
			// An older agent took the words alone, and a newer one took them with the file.
			if m.found[at].Attachment == nil {
				m.found[at].Attachment = one.Attachment
			}
			return
		}
		if m.seen == nil {
			m.seen = map[string]int{}
		}
		m.seen[key] = len(m.found)
		m.found = append(m.found, one)
	}
}

// between adds what lies outside of attempts.
func (m *marks) between(a *archive.Archive) error {
	err := a.EachLine(wire.TrialKey{}, func(line []byte) error {
		if !bytes.HasPrefix(line, []byte(`{"kind":"note"`)) && !bytes.HasPrefix(line, []byte(`{"kind":"wall_clock"`)) {
			return nil
		}
		var r wire.Record
		if r.UnmarshalJSON(line) == nil { // `fieldmesh verify` names one that is damaged
			m.add(r)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read notes: %w", err)
	}
	return nil
}

// all are in the order of the time that is known; the others come last.
func (m *marks) all(dir string) []Mark {
	for _, spool := range m.walls {
		slices.SortFunc(spool, func(a, b told) int { return cmp.Compare(a.seq, b.seq) })
	}
	for i := range m.found {
		one := &m.found[i]
		if offset := inBootOf(one.Seq, m.walls[one.Node+"/"+one.Epoch]); offset != nil && one.NotedBootNs != nil {
			one.Wall = time.Unix(0, *one.NotedBootNs+*offset)
		}
		if one.Attachment != nil {
			_, err := os.Stat(filepath.Join(dir, filepath.FromSlash(one.Attachment.Path())))
			one.Here = err == nil
		}
	}
	slices.SortStableFunc(m.found, func(x, y Mark) int {
		switch {
		case x.Wall.IsZero() == y.Wall.IsZero():
			return x.Wall.Compare(y.Wall)
		case x.Wall.IsZero():
			return 1
		}
		return -1
	})
	return m.found
}
