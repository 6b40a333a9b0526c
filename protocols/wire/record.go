// Package wire is what crosses a link between controller, agents and app: the
// API's bodies, the plan that nodes hold, the datagram GO, and the record
// schema. It holds types, their encoding and their validation; no socket, no
// clock, no file.
//
// Every fact is declared once, here. A field's tags are its name in JSON (json); its unit (unit); what it may hold:
// bounds of a number, or of the length of a text or list (min, above, max), a form (form) or words (words names a
// function that lists them). Bounds may name constants. Its comment is its meaning; words that it may hold stand there
// as "open | close". `go generate ./protocols/wire` makes everything else of that, and the golden files.
//
// A record kind is a struct and its method Kind, in sampled.go, stated.go or beside its like, and a sample at the end
// of those in sample_test.go. Its fields' tags also say what they are in InfluxDB (influx: tag, absent=, name=, after=)
// and why one is only in the archive (archive). A text leaves in a redacted export only with redact:"keep", on its
// field or on one that it is part of.
//
// A key of a campaign's trial is a field of Trial or of its parts, and its value in sampleTrial in sample_test.go. The
// tag campaign says what is otherwise in a campaign than on the wire: see generate/campaign.go.
package wire

//go:generate go run ./generate
//go:generate go test . -run Golden -update
//go:generate go test ../../internal/influx -run "Golden|Document" -update
//go:generate go generate ../../controller/plan ../../controller/reference ../../test/documents

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// SchemaVersion is the version that every record carries. It rises when a
// field changes its meaning; a new field does not raise it.
const SchemaVersion = 1

// Header names a record and places it in time and in the run.
//
// (node, epoch, seq) is unique: epoch is random per spool, seq counts from 1,
// with a gap at a boot. TBootNs is the node's CLOCK_BOOTTIME.
type Header struct {
	Kind    string `json:"kind" redact:"keep"`
	Version int    `json:"version"`
	Node    string `json:"node" redact:"keep"`
	Epoch   string `json:"epoch" redact:"keep"`
	Seq     uint64 `json:"seq"`
	TBootNs int64  `json:"t_boot_ns"`
	Run     string `json:"run,omitempty" redact:"keep"`
	Trial   int    `json:"trial,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
}

// Record is one line of a spool or an archive.
type Record struct {
	Header
	Body Body
}

// Body is what a kind of record says. The set is closed: see newBody.
type Body interface{ Kind() string }

// MarshalJSON writes header and body as one flat object.
func (r Record) MarshalJSON() ([]byte, error) {
	if r.Body == nil {
		return nil, fmt.Errorf("encode record %s/%d: no body", r.Node, r.Seq)
	}
	if u, ok := r.Body.(Unknown); ok {
		return u.Raw, nil
	}
	h := r.Header
	h.Kind = r.Body.Kind()
	if h.Version == 0 {
		h.Version = SchemaVersion
	}
	head, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode record header: %w", err)
	}
	body, err := json.Marshal(r.Body)
	if err != nil {
		return nil, fmt.Errorf("encode %s record: %w", h.Kind, err)
	}
	if len(body) <= 2 {
		return head, nil
	}
	out := make([]byte, 0, len(head)+len(body))
	out = append(out, head[:len(head)-1]...)
	out = append(out, ',')
	return append(out, body[1:]...), nil
}

// UnmarshalJSON reads one flat object. A kind that this version does not know
// is kept whole as Unknown, so that nothing from a newer node is lost.
func (r *Record) UnmarshalJSON(line []byte) error {
	if r.unmarshalAtOnce(line) {
		return nil
	}
	if err := json.Unmarshal(line, &r.Header); err != nil {
		return fmt.Errorf("decode record header: %w", err)
	}
	if r.Header.Kind == "" {
		return fmt.Errorf("decode record: no kind in %.80q", line)
	}
	body := newBody(r.Header.Kind)
	if body == nil {
		r.Body = Unknown{Name: r.Header.Kind, Raw: bytes.Clone(line)}
		return nil
	}
	if err := json.Unmarshal(line, body); err != nil {
		return fmt.Errorf("decode %s record %s/%d: %w", r.Header.Kind, r.Node, r.Seq, err)
	}
	r.Body = body
	return nil
}

// unmarshalAtOnce reads a line that begins with its kind, as MarshalJSON writes
// it, in one pass, and reports whether it could. If not, r is as it was.
func (r *Record) unmarshalAtOnce(line []byte) bool {
	rest, first := bytes.CutPrefix(line, []byte(`{"kind":"`))
	kind, _, ends := bytes.Cut(rest, []byte(`"`))
	if !first || !ends {
		return false
	}
	header := r.Header
	body, whole := newWhole(string(kind), &header)
	if body == nil || json.Unmarshal(line, whole) != nil || header.Kind != string(kind) {
		return false
	}
	r.Header, r.Body = header, body
	return true
}

// Unknown is a record of a kind that this version does not know, as it came.
type Unknown struct {
	Name string
	Raw  json.RawMessage
}

// Kind is the kind that the record's header named.
func (u Unknown) Kind() string { return u.Name }
