package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// place is how far one epoch of a node's records is stored.
type place struct {
	seq    uint64          // everything up to here is stored, or is not this run's
	beyond map[uint64]bool // stored too, by an append that did not come to its end
}

func (p *place) holds(seq uint64) bool { return seq <= p.seq || p.beyond[seq] }

// cursorLine is a line of cursors.ndjson. It is written after the records that
// it vouches for are on disk, with the sizes that their files then had.
type cursorLine struct {
	Node  string           `json:"node"`
	Epoch string           `json:"epoch"`
	Seq   uint64           `json:"seq"`
	Bytes map[string]int64 `json:"bytes,omitempty"`
	// records of another shard's trials were passed over
	Others bool `json:"others,omitempty"`
}

// A node's name is part of paths, so it may not lead out of the folder.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// isNodeName reports whether a node of this name can have records here.
func isNodeName(name string) bool { return nodeName.MatchString(name) }

// batch is one append on its way to the files.
type batch struct {
	files map[string][]byte
	order []string // paths in the order of their first record
	keys  map[string][]seqKey
	last  map[string]uint64 // epoch → highest seq in the batch
	epoch []string          // epochs in the order in which they came
	aside []unreadable
	// it has records of another shard's trials
	others bool
}

// unreadable is a line that is not a record, or not one that can be stored.
type unreadable struct {
	line []byte
	why  error
}

type seqKey struct {
	epoch string
	seq   uint64
}

// Append stores a node's records, one JSON object each, without newline. When
// it returns nil they are on disk. Records that are held already, by (node,
// epoch, seq), and those of another run or another shard's trial are passed over. A line that is not a
// record is set aside, with a note in the journal: one bad line must not keep
// the good ones behind it out for ever.
func (a *Archive) Append(node string, lines [][]byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.appendLocked(node, lines)
}

func (a *Archive) appendLocked(node string, lines [][]byte) error {
	if !nodeName.MatchString(node) {
		return fmt.Errorf("append records of %q: not a node's name", node)
	}
	b := a.sortOut(node, lines)
	a.others[node] = a.others[node] || b.others
	if a.finished && len(b.order)+len(b.aside) == 0 {
		return nil // nothing is the run's, which stays finished
	}
	if err := a.writable(); err != nil {
		return fmt.Errorf("append records of %q: %w", node, err)
	}
	if err := a.setAside(node, b.aside); err != nil {
		return fmt.Errorf("append records of %q: %w", node, err)
	}
	return a.store(node, b)
}

// store writes a batch to its files, and then how far the node's records are.
func (a *Archive) store(node string, b batch) error {
	sizes := map[string]int64{}
	for _, rel := range b.order {
		size, err := a.disk.append(rel, b.files[rel])
		if err != nil {
			return fmt.Errorf("append records of %q: %w", node, err)
		}
		sizes[rel] = size
		for _, k := range b.keys[rel] {
			a.placeOf(node, k.epoch).beyond[k.seq] = true
		}
	}
	for i, epoch := range b.epoch {
		c := cursorLine{Node: node, Epoch: epoch, Seq: b.last[epoch], Others: b.others}
		if i == len(b.epoch)-1 {
			c.Bytes = sizes
		}
		if err := a.advance(c); err != nil {
			return fmt.Errorf("append records of %q: %w", node, err)
		}
	}
	return nil
}

// sortOut decides for every new line which file it belongs to.
func (a *Archive) sortOut(node string, lines [][]byte) batch {
	b := batch{files: map[string][]byte{}, keys: map[string][]seqKey{}, last: map[string]uint64{}}
	seen := map[seqKey]bool{}
	for _, line := range lines {
		h, err := readHeader(node, line)
		if err != nil {
			b.aside = append(b.aside, unreadable{line, err})
			continue
		}
		k := seqKey{h.Epoch, h.Seq}
		if seen[k] || h.Seq <= a.placeOf(node, h.Epoch).seq {
			continue
		}
		seen[k] = true
		if _, known := b.last[h.Epoch]; !known {
			b.epoch = append(b.epoch, h.Epoch)
		}
		b.last[h.Epoch] = max(b.last[h.Epoch], h.Seq)
		if a.placeOf(node, h.Epoch).beyond[h.Seq] || (h.Run != "" && h.Run != a.info.Run) {
			continue
		}
		if h.Trial > 0 && !a.info.Shard.Has(h.Trial) {
			b.others = true
			continue
		}
		rel := a.route(h)
		if _, known := b.files[rel]; !known {
			b.order = append(b.order, rel)
		}
		b.files[rel] = append(append(b.files[rel], line...), '\n')
		b.keys[rel] = append(b.keys[rel], k)
	}
	return b
}

// readHeader reads the whole record, not only its header: a line that cannot
// be read back would spoil its trial.
func readHeader(node string, line []byte) (wire.Header, error) {
	var r wire.Record
	if err := r.UnmarshalJSON(line); err != nil {
		return wire.Header{}, fmt.Errorf("not a record: %w", err)
	}
	h := r.Header
	switch {
	case h.Node != node:
		return h, fmt.Errorf("it names node %q", h.Node)
	case h.Epoch == "" || h.Seq == 0 || h.Kind == "":
		return h, errors.New("it lacks kind, epoch or seq")
	case bytes.ContainsRune(line, '\n'):
		return h, errors.New("it spans lines")
	}
	return h, nil
}

// asideFile holds the lines of a node that are not records. A node's records
// have names in ndjson, so nothing reads these as one.
func asideFile(node string) string { return filepath.Join("between", node+".unreadable") }

// setAside keeps lines that are not records, each once: after a restart a node
// is asked for some of its lines again.
func (a *Archive) setAside(node string, lines []unreadable) error {
	if len(lines) == 0 {
		return nil
	}
	held := map[string]bool{}
	if err := a.disk.lines(asideFile(node), func(l []byte) error { held[string(l)] = true; return nil }); err != nil {
		return err
	}
	var text []byte
	var fresh []unreadable
	for _, l := range lines {
		// A newline within a line can only be white space of JSON.
		l.line = bytes.ReplaceAll(l.line, []byte("\n"), []byte(" "))
		if !held[string(l.line)] {
			held[string(l.line)] = true
			text = append(append(text, l.line...), '\n')
			fresh = append(fresh, l)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if _, err := a.disk.append(asideFile(node), text); err != nil {
		return err
	}
	return a.note("", fmt.Sprintf("%d lines of node %s are set aside in %s; the first, %.80q: %v", len(fresh), node,
		asideFile(node), fresh[0].line, fresh[0].why))
}

// route gives the file of a record. A trial that the plan does not have is not
// given a folder: its records stand with those of no trial.
func (a *Archive) route(h wire.Header) string {
	name := h.Node + ".ndjson"
	if _, planned := a.Trial(h.Trial); !planned || h.Attempt < 1 || h.Attempt > 9999 {
		return filepath.Join("between", name)
	}
	k := wire.TrialKey{Trial: h.Trial, Attempt: h.Attempt}
	if a.sealed[k] {
		return filepath.Join("late", attemptName(k), name)
	}
	return filepath.Join(trialDir(k), "records", name)
}

func (a *Archive) placeOf(node, epoch string) *place {
	if a.places[node] == nil {
		a.places[node] = map[string]*place{}
	}
	if a.places[node][epoch] == nil {
		a.places[node][epoch] = &place{beyond: map[uint64]bool{}}
	}
	return a.places[node][epoch]
}

func (a *Archive) advance(c cursorLine) error {
	line, err := marshalLine(c)
	if err != nil {
		return err
	}
	if _, err := a.disk.append(cursorFile, line); err != nil {
		return err
	}
	a.moveTo(c)
	return nil
}

func (a *Archive) moveTo(c cursorLine) {
	p := a.placeOf(c.Node, c.Epoch)
	p.seq = max(p.seq, c.Seq)
	for seq := range p.beyond {
		if seq <= p.seq {
			delete(p.beyond, seq)
		}
	}
	a.newest[c.Node] = c.Epoch
	a.others[c.Node] = a.others[c.Node] || c.Others
}

// PassedOver reports whether records of another shard's trials were among a node's. What
// the archive holds of the node is then not all of the run that the node has recorded.
func (a *Archive) PassedOver(node string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.others[node]
}

// Begin notes that nothing of this run is among a node's records up to a
// position: a spool may hold those of other runs. It is for a node of which the
// archive knows nothing yet, and does nothing for any other.
func (a *Archive) Begin(node string, at wire.SpoolPosition) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.newest[node]; known {
		return nil
	}
	return a.reach(node, at, "begin with")
}

// reach advances to a position. mu is held.
func (a *Archive) reach(node string, at wire.SpoolPosition, doing string) error {
	if err := a.writable(); err != nil {
		return fmt.Errorf("%s the records of %q: %w", doing, node, err)
	}
	if !nodeName.MatchString(node) {
		return fmt.Errorf("%s the records of %q: not a node's name", doing, node)
	}
	return a.advance(cursorLine{Node: node, Epoch: at.Epoch, Seq: at.Seq})
}

// Reached notes that all of a node's records up to a position have been given
// to Append. It matters where the last of them were set aside: no record told
// the position then.
func (a *Archive) Reached(node string, at wire.SpoolPosition) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at.Seq <= a.placeOf(node, at.Epoch).seq {
		return nil
	}
	return a.reach(node, at, "note the end of")
}

// Holds reports whether every record of a node up to a position is durable
// here, or is not this run's.
func (a *Archive) Holds(node string, at wire.SpoolPosition) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.places[node][at.Epoch]
	return p != nil && p.seq >= at.Seq
}

// Cursor names the newest durable record of a node; zero when there is none.
// Two fields of a rehearsal have nodes of one name: what the newest record of
// the two is does not tell how far either is, Holds does.
func (a *Archive) Cursor(node string) wire.SpoolPosition {
	a.mu.Lock()
	defer a.mu.Unlock()
	epoch, ok := a.newest[node]
	if !ok {
		return wire.SpoolPosition{}
	}
	return wire.SpoolPosition{Epoch: epoch, Seq: a.placeOf(node, epoch).seq}
}

// AppendField stores records that the emulated field makes of an attempt, under
// the node "field"; the header's node, epoch, seq, run, trial and attempt are
// set here.
func (a *Archive) AppendField(trial, attempt int, records []wire.Record) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	epoch := FieldNode
	if a.info.Shard != nil { // the shards' records of the field come together
		epoch = fmt.Sprintf("%s-%d", FieldNode, a.info.Shard.Number)
	}
	p := a.placeOf(FieldNode, epoch)
	seq := p.seq
	for s := range p.beyond { // left by an append that did not end
		seq = max(seq, s)
	}
	lines := make([][]byte, 0, len(records))
	for _, r := range records {
		seq++
		r.Node, r.Epoch, r.Seq = FieldNode, epoch, seq
		r.Run, r.Trial, r.Attempt = a.info.Run, trial, attempt
		line, err := r.MarshalJSON() // json.Marshal would look through it once more
		if err != nil {
			return fmt.Errorf("append records of the field: %w", err)
		}
		lines = append(lines, line)
	}
	return a.appendLocked(FieldNode, lines)
}

// recoverCursors reads the cursors, and finds the records beyond them that an
// append stored before it was cut short.
func (a *Archive) recoverCursors() error {
	durable := map[string]int64{}
	err := a.disk.lines(cursorFile, func(line []byte) error {
		var c cursorLine
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("read %s: %w", cursorFile, err)
		}
		a.moveTo(c)
		for rel, size := range c.Bytes {
			durable[rel] = max(durable[rel], size)
		}
		return nil
	})
	if err != nil {
		return err
	}
	open, err := a.openRecordFiles()
	if err != nil {
		return err
	}
	for _, rel := range open {
		if err := a.findBeyond(rel); err != nil {
			return err
		}
	}
	return a.noteShortFiles(durable)
}

func (a *Archive) findBeyond(rel string) error {
	return a.disk.lines(rel, func(line []byte) error {
		var h wire.Header
		if err := json.Unmarshal(line, &h); err != nil {
			return fmt.Errorf("read %s: %w", rel, err)
		}
		if p := a.placeOf(h.Node, h.Epoch); !p.holds(h.Seq) {
			p.beyond[h.Seq] = true
		}
		return nil
	})
}

// noteShortFiles leaves a word about records that were made durable and are
// gone: the disk did not keep its promise, or somebody cut the file.
func (a *Archive) noteShortFiles(durable map[string]int64) error {
	for rel, want := range durable {
		if got := a.disk.size(rel); got < want {
			text := fmt.Sprintf("%s has %d bytes, but %d were made durable: records are lost", rel, got, want)
			if err := a.note("", text); err != nil {
				return err
			}
		}
	}
	return nil
}
