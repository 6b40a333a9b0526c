package export

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// lines are the records that an export is made of: those of the archive, or
// those with what concerns bystanders taken out.
type lines struct {
	a      *archive.Archive
	redact *redactor // nil: as they are
}

// each gives an attempt's lines, or with a zero key those of no trial.
func (l lines) each(k wire.TrialKey, do func(line []byte) error) error {
	if l.redact == nil {
		return l.a.EachLine(k, do)
	}
	w, err := windows(l.a, k)
	if err != nil {
		return err
	}
	return l.a.EachLine(k, func(line []byte) error {
		line, err := l.redact.line(line, w)
		if err != nil {
			return err
		}
		return do(line)
	})
}

// copy writes every line of the run, trials in order and what lies between
// them last.
func (l lines) copy(w io.Writer) error {
	if l.redact == nil {
		return l.a.CopyLines(w)
	}
	keys, err := l.keys()
	if err != nil {
		return err
	}
	for _, k := range keys {
		err := l.each(k, func(line []byte) error {
			_, err := w.Write(append(line, '\n'))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keys are all attempts, and the zero key for what lies between them.
func (l lines) keys() ([]wire.TrialKey, error) {
	attempts, err := l.a.Trials()
	if err != nil {
		return nil, err
	}
	var out []wire.TrialKey
	for _, at := range attempts {
		out = append(out, at.TrialKey)
	}
	return append(out, wire.TrialKey{}), nil
}

// redactor takes out of records what concerns people who are not part of the
// run: addresses of other radios, and where a node was while nothing was
// measured, which may be somebody's home. A radio keeps one name within an
// export, and has another in the next.
type redactor struct {
	key []byte
	own map[string]bool // addresses of the run's own radios and cells
}

// mac is a MAC address as records write it.
var mac = regexp.MustCompile(`\b[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}\b`)

func newRedactor(a *archive.Archive) (*redactor, error) {
	r := &redactor{key: make([]byte, 32), own: map[string]bool{}}
	_, _ = rand.Read(r.key) // it never fails: crypto/rand ends the program instead
	for _, t := range a.Info().Plan.Trials {
		r.own[strings.ToLower(t.Radio.BSSID)] = true
	}
	attempts, err := a.Trials()
	if err != nil {
		return nil, err
	}
	for _, at := range attempts {
		for rec, err := range a.Records(at.Trial, at.Attempt) {
			if err != nil {
				return nil, err
			}
			if p, ok := rec.Body.(*wire.Provenance); ok {
				r.own[strings.ToLower(p.MAC)] = true
			}
		}
	}
	return r, nil
}

// line is a record without what concerns bystanders. What is left is as it was.
func (r *redactor) line(line []byte, opened map[string]wire.Window) ([]byte, error) {
	line = mac.ReplaceAllFunc(line, func(address []byte) []byte {
		a := strings.ToLower(string(address))
		if r.own[a] {
			return address
		}
		h := hmac.New(sha256.New, r.key)
		h.Write([]byte(a))
		return []byte("radio-" + hex.EncodeToString(h.Sum(nil)[:6]))
	})
	if !bytes.Contains(line, []byte(`"lat_deg"`)) {
		return line, nil
	}
	var rec wire.Record
	if err := rec.UnmarshalJSON(line); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	if measured(opened, rec.Header) {
		return line, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	for _, name := range []string{"lat_deg", "lon_deg", "alt_m"} {
		delete(members, name)
	}
	return json.Marshal(members)
}

// measured reports whether a record falls into its node's measuring window.
func measured(opened map[string]wire.Window, h wire.Header) bool {
	w, ok := opened[h.Node]
	return ok && h.TBootNs >= w.OpenBootNs && h.TBootNs <= w.CloseBootNs
}
