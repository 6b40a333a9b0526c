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
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/influx"
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
		if err != nil || line == nil {
			return err
		}
		return do(line)
	})
}

// eachOf gives an attempt's records of one kind, and decodes no others.
func eachOf[T wire.Body](l lines, k wire.TrialKey, do func(wire.Header, T) error) error {
	var kind T
	encoder := influx.NewEncoder()
	return l.each(k, func(line []byte) error {
		p, err := encoder.Parse(line)
		if err != nil || p.Header.Kind != kind.Kind() {
			return err
		}
		var r wire.Record
		if err := r.UnmarshalJSON(line); err != nil {
			return err
		}
		return do(r.Header, r.Body.(T))
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
// run, and what a person wrote: addresses and names of other radios, texts, and
// where a node was and how it moved while nothing was measured, which may lead to
// somebody's home. A radio keeps one name within an export, and has another in
// the next.
type redactor struct {
	key    []byte
	own    map[string]bool // addresses and names of the run's own radios and cells
	shared sync.Map        // a record's type → its texts that leave
}

// mac is a MAC address as records write it, or as others do.
var mac = regexp.MustCompile(`\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b`)

// shared are the texts of a kind of record that leave in a redacted export: the
// fields with the tag redact, and what is below one. Every other text stays behind.
// Numbers leave, but for places and movement.
func shared(body reflect.Type) []string {
	return append(sharedBelow(reflect.TypeFor[wire.Header](), ""), sharedBelow(body, "")...)
}

// sharedBelow lists the fields of a struct, or of what lists and pointers lead to, that
// have the tag; a name that ends in a dot stands for all below it.
func sharedBelow(t reflect.Type, below string) (out []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" || name == "-":
		case f.Tag.Get("redact") == "keep":
			out = append(out, below+name, below+name+".")
		default:
			out = append(out, sharedBelow(f.Type, below+name+".")...)
		}
	}
	return out
}

// movement are the numbers that say where a node is, or lead there.
var movement = []string{"lat_deg", "lon_deg", "alt_m", "speed_mps", "track_deg"}

// blankRedactor knows of no radio that is the run's own.
func blankRedactor() *redactor {
	r := &redactor{key: make([]byte, 32), own: map[string]bool{}}
	_, _ = rand.Read(r.key) // it never fails: crypto/rand ends the program instead
	return r
}

func newRedactor(a *archive.Archive) (*redactor, error) {
	r := blankRedactor()
	for _, t := range a.Info().Plan.Trials {
		r.own[strings.ToLower(t.Radio.BSSID)], r.own[t.Radio.SSID] = true, true
	}
	attempts, err := a.Trials()
	if err != nil {
		return nil, err
	}
	for _, at := range attempts {
		err := eachOf(lines{a: a}, at.TrialKey, func(_ wire.Header, p *wire.Provenance) error {
			r.own[strings.ToLower(p.MAC)] = true
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// line is a record without what does not leave; nil where nothing of it does.
func (r *redactor) line(line []byte, opened map[string]wire.Window) ([]byte, error) {
	var rec wire.Record
	if err := rec.UnmarshalJSON(line); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	var members map[string]any
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil {
		return nil, fmt.Errorf("redact: %w", err)
	}
	if !measured(opened, rec.Header) {
		if _, fix := rec.Body.(*wire.GPS); fix { // its age and time would lead along a track, too
			return nil, nil
		}
		for _, name := range movement {
			delete(members, name)
		}
	}
	body := reflect.TypeOf(rec.Body)
	texts, known := r.shared.Load(body)
	if !known {
		texts, _ = r.shared.LoadOrStore(body, shared(body))
	}
	r.clean(texts.([]string), "", members)
	return json.Marshal(members)
}

// clean leaves the texts that are shared, and gives those about other radios
// made-up names. It reports whether anything is left.
func (r *redactor) clean(shared []string, path string, v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			below := name
			if path != "" {
				below = path + "." + name
			}
			cleaned, some := r.clean(shared, below, member)
			if !some {
				delete(v, name)
				continue
			}
			v[name] = cleaned
		}
		return v, true
	case []any:
		out := []any{}
		for _, element := range v {
			if cleaned, some := r.clean(shared, path, element); some {
				out = append(out, cleaned)
			}
		}
		return out, len(out) > 0 || len(v) == 0
	case string:
		return r.text(shared, path, v)
	}
	return v, true
}

func (r *redactor) text(shared []string, path, text string) (string, bool) {
	leaves := func(name string) bool {
		return name == path || strings.HasSuffix(name, ".") && strings.HasPrefix(path, name)
	}
	if !slices.ContainsFunc(shared, leaves) {
		return "", false
	}
	switch {
	case path == "reason":
		text = codeOf(wire.ParseReason(text))
	case strings.HasSuffix(path, "ssid") && !strings.HasSuffix(path, "bssid") && !r.own[text]:
		text = "network-" + r.name(text)
	}
	return mac.ReplaceAllStringFunc(text, func(address string) string {
		a := strings.ToLower(strings.ReplaceAll(address, "-", ":"))
		if r.own[a] {
			return address
		}
		return "radio-" + r.name(a)
	}), true
}

// code is what a reason's code looks like; a reason that is a text alone has none.
var code = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func codeOf(r wire.Reason) string {
	if c := string(r.Code); code.MatchString(c) {
		return c
	}
	return ""
}

// name is made up for something, the same within an export.
func (r *redactor) name(of string) string {
	h := hmac.New(sha256.New, r.key)
	h.Write([]byte(of))
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// measured reports whether a record falls into its node's measuring window.
func measured(opened map[string]wire.Window, h wire.Header) bool {
	w, ok := opened[h.Node]
	return ok && h.TBootNs >= w.OpenBootNs && h.TBootNs <= w.CloseBootNs
}
