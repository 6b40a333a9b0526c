package archive

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"fieldmesh.dev/fieldmesh/controller/archive/unsigned"
	"fieldmesh.dev/fieldmesh/controller/terminal"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// NodeSigned says how many of a node's records its key vouches for.
type NodeSigned struct {
	Node            string
	Pins            []string // of the keys that signed, sorted; a node has another one when it was set up again
	Records, Signed int
}

// VerifyRecords holds the nodes' records against the signatures that stand among
// them. It reads each once, and holds the checksums of one file's at most.
func VerifyRecords(dir string) ([]NodeSigned, []Finding, error) {
	a, err := Read(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("verify records: %w", err)
	}
	v := &vouching{check: check{disk: a.disk}, shard: a.info.Shard != nil,
		nodes: map[string]*NodeSigned{}, lives: map[life][]signedAt{}}
	groups, err := a.groups()
	if err != nil {
		return nil, nil, fmt.Errorf("verify records: %w", err)
	}
	for _, g := range groups {
		if err := v.group(g); err != nil {
			return nil, nil, fmt.Errorf("verify records: %w", err)
		}
	}
	v.chains()
	var out []NodeSigned
	for _, name := range slices.Sorted(maps.Keys(v.nodes)) {
		slices.Sort(v.nodes[name].Pins)
		out = append(out, *v.nodes[name])
	}
	return out, v.findings, nil
}

// groups are the files of one node's records of one attempt, or of none, in the
// order in which they were stored.
func (a *Archive) groups() ([][]string, error) {
	attempts, err := a.folders()
	if err != nil {
		return nil, err
	}
	var out [][]string
	for _, k := range attempts {
		files, err := a.recordFiles(k)
		if err != nil {
			return nil, err
		}
		byNode := map[string][]string{}
		for _, rel := range files {
			byNode[filepath.Base(rel)] = append(byNode[filepath.Base(rel)], rel)
		}
		for _, node := range slices.Sorted(maps.Keys(byNode)) {
			out = append(out, byNode[node])
		}
	}
	between, err := a.betweenFiles()
	for _, rel := range between {
		out = append(out, []string{rel})
	}
	return out, err
}

const (
	// mostUnsigned bounds the records of a file whose signature is waited for; a node
	// signs every ten seconds.
	mostUnsigned = 1 << 18
	// signaturesMost bounds those whose chains are looked at: 200 nodes for 14 hours.
	signaturesMost = 1_000_000
	// livesMost bounds the chains, and pinsMost the keys of a node.
	livesMost = 10_000
	pinsMost  = 64
)

// vouching is one look at a run's signatures.
type vouching struct {
	check
	shard      bool // the run is one
	nodes      map[string]*NodeSigned
	lives      map[life][]signedAt
	signatures int
	waiting    int // records
}

// life is what the signatures of a chain have in common.
type life struct{ node, epoch, run string }

// signedAt is a signature, and the one that it follows.
type signedAt struct {
	seq, after uint64
	rel        string
	between    bool // it is on records of no trial
}

// subject is what a signature is on.
type subject struct {
	epoch, run     string
	trial, attempt int
}

func (v *vouching) group(files []string) error {
	open := map[subject]*unsigned.Records{}
	v.waiting = 0
	name := nodeOf(files[0])
	for _, rel := range files {
		err := v.disk.lines(rel, func(line []byte) error { return v.line(open, rel, name, line) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *vouching) line(open map[subject]*unsigned.Records, rel, name string, line []byte) error {
	var h wire.Header
	if err := json.Unmarshal(line, &h); err != nil {
		v.found(rel, Unreadable, err.Error())
		return nil
	}
	node := v.nodes[name]
	if node == nil {
		node = &NodeSigned{Node: name}
		v.nodes[name] = node
	}
	if h.Node != name {
		v.found(rel, Changed, fmt.Sprintf("record %d names node %.80q", h.Seq, h.Node))
		return nil
	}
	of := subject{h.Epoch, h.Run, h.Trial, h.Attempt}
	if h.Kind == (*wire.Signature)(nil).Kind() {
		var s wire.Signature
		if err := json.Unmarshal(line, &s); err != nil {
			v.found(rel, Unreadable, err.Error())
			return nil
		}
		v.signed(open[of], rel, node, h, s)
		if open[of].Count() == 0 {
			delete(open, of)
		}
		return nil
	}
	node.Records++
	if v.waiting++; v.waiting > mostUnsigned {
		clear(open) // nobody signs them
		v.waiting = 1
	}
	w := open[of]
	if w == nil {
		w = &unsigned.Records{}
		open[of] = w
	}
	w.Add(h.Seq, line)
	return nil
}

// signed holds what waits against its signature.
func (v *vouching) signed(w *unsigned.Records, rel string, node *NodeSigned, h wire.Header, s wire.Signature) {
	pin, err := keys.Signed{Key: s.Key, Signature: s.Signature}.Check(s.Message(h))
	if err != nil {
		v.found(rel, Changed, fmt.Sprintf("signature %d: %v", h.Seq, err))
		return
	}
	if !slices.Contains(node.Pins, pin) {
		if len(node.Pins) == pinsMost {
			v.found(rel, Changed, fmt.Sprintf("%s's records are signed by more than %d keys", h.Node, pinsMost))
			return
		}
		node.Pins = append(node.Pins, pin)
	}
	if v.signatures++; v.signatures > signaturesMost {
		v.found(rel, Unreadable, fmt.Sprintf("the run has more than %d signatures", signaturesMost))
		return
	}
	if chain := (life{h.Node, h.Epoch, h.Run}); h.Run != "" {
		if v.lives[chain] == nil && len(v.lives) == livesMost {
			v.found(rel, Unreadable, fmt.Sprintf("nodes began to record more than %d times", livesMost))
			return
		}
		v.lives[chain] = append(v.lives[chain], signedAt{h.Seq, s.AfterSeq, rel, h.Trial == 0})
	}
	before := w.Count()
	sum, held := w.Take(s.FirstSeq, s.LastSeq)
	v.waiting -= before - w.Count()
	switch {
	case sum == s.SHA256 && held == s.Records:
		node.Signed += int(held)
	case h.Run == "" && held < s.Records:
		// Of no run: it began before this one, of which its first records are no part.
	default:
		v.found(rel, Changed, fmt.Sprintf("%d of %d records, %d to %d, are there, and they are not as %s signed them",
			held, s.Records, s.FirstSeq, s.LastSeq, h.Node))
	}
}

// chains finds signatures that are missing, with what they signed.
func (v *vouching) chains() {
	order := func(x, y life) int {
		return cmp.Or(cmp.Compare(x.node, y.node), cmp.Compare(x.epoch, y.epoch), cmp.Compare(x.run, y.run))
	}
	for _, of := range slices.SortedFunc(maps.Keys(v.lives), order) {
		all := v.lives[of]
		slices.SortFunc(all, func(x, y signedAt) int { return cmp.Compare(x.seq, y.seq) })
		for _, s := range all {
			if s.after == 0 || v.shard && s.between { // which may follow that of another shard's trial
				continue
			}
			if _, there := slices.BinarySearchFunc(all, s.after, func(x signedAt, seq uint64) int {
				return cmp.Compare(x.seq, seq)
			}); !there {
				v.found(s.rel, Missing, fmt.Sprintf("%s's signature %d, which %d follows", of.node, s.after, s.seq))
			}
		}
	}
}

// String is for people. Nodes of a merged run may have a key in each part: then the keys are counted.
func (n NodeSigned) String() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %d of %d records are signed", n.Node, n.Signed, n.Records)
	if len(n.Pins) > 4 {
		return terminal.Text(fmt.Sprintf("%s by %d keys; hold them to a fleet by --fleet", &b, len(n.Pins)))
	}
	for i, pin := range n.Pins {
		fmt.Fprintf(&b, "%s key %s", []string{" by", " and"}[min(i, 1)], pin)
	}
	return terminal.Text(b.String())
}
