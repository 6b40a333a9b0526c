package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/nearest"
	"fieldmesh.dev/fieldmesh/internal/yamlfault"
)

// Error says what is wrong where in a configuration. Line and Column count
// from 1; 0 means that no place in the file can be named.
type Error struct {
	File    string
	Line    int
	Column  int
	Message string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// kind is a form that texts of the file have.
type kind struct {
	form  *regexp.Regexp
	fits  func(text string) bool // nil: whatever has the form does
	words string                 // what is said of one that does not
}

// kinds are the forms that Config's tags name.
var kinds = sync.OnceValue(func() map[string]kind {
	// IFNAMSIZ leaves 15 characters.
	return map[string]kind{
		"name": {regexp.MustCompile(keys.NameForm), nil, "is not a name of 1 to 32 of a-z, 0-9 and -"},
		"interface": {regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`), func(name string) bool {
			return !slices.Contains([]string{".", "..", "all", "default", "lo"}, name)
		}, "is not the name of an interface that can be tested; `ip link` lists the names"},
		"user": {regexp.MustCompile(`^([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10}:[0-9]{1,10})$`), nil,
			"is neither a user's name nor uid:gid"},
		"address": {regexp.MustCompile(`:[0-9]+$`), func(address string) bool {
			_, _, ok := splitAddress(address)
			return ok
		}, "is not HOST:PORT or :PORT with a port of 1 to 65535, such as :7443"},
		"gpsd": {regexp.MustCompile(`^(none|.+:[0-9]+)$`), func(address string) bool {
			host, _, ok := splitAddress(address)
			return address == NoGPSD || ok && host != ""
		}, "is not where gpsd answers, such as 127.0.0.1:2947, nor none; a receiver's device is for gpsd itself"},
		"privileges": {regexp.MustCompile(`^(root|none)$`), nil, "is neither root nor none"},
		"pin": {regexp.MustCompile(keys.PinForm), nil, "is not a key of 64 digits, 0 to 9 and a to f, as the app's " +
			"Pair screen shows it"},
		"path": {regexp.MustCompile(`^/.`), func(path string) bool {
			return filepath.Clean(path) == path
		}, "is not an absolute path; write it in full, such as /var/lib/fieldmesh, without ~, . and .."},
	}
})

func splitAddress(address string) (host string, port int, ok bool) {
	host, text, err := net.SplitHostPort(address)
	port, perr := strconv.Atoi(text)
	return host, port, err == nil && perr == nil && port >= 1 && port <= 65535
}

func (k kind) takes(text string) bool {
	return k.form.MatchString(text) && (k.fits == nil || k.fits(text))
}

// Parse reads and checks a configuration; name stands for the file in errors.
func Parse(name string, data []byte) (Config, error) {
	doc := document{name: name}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return Config{}, doc.decodeError(err)
	}
	if len(file.Docs) > 1 {
		return Config{}, &Error{File: name, Message: "holds several YAML documents, one is expected"}
	}
	doc.file = file
	for _, t := range lexer.Tokenize(string(data)) { // what is unfolded may be endless, and in itself
		if t.Type == token.AnchorType || t.Type == token.AliasType {
			return Config{}, &Error{File: name, Line: t.Position.Line, Column: t.Position.Column,
				Message: "anchors and aliases are not part of the format; write the value out"}
		}
	}
	cfg := defaults()
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict(), yaml.CustomUnmarshaler(unmarshalPrefix))
	if err := dec.Decode(&cfg); err != nil && !errors.Is(err, io.EOF) {
		return Config{}, doc.decodeError(err)
	}
	binaries := DefaultBinaries()
	for tool, path := range cfg.Binaries {
		binaries[tool] = path
	}
	cfg.Binaries = binaries
	if err := doc.check(cfg); err != nil {
		return Config{}, err
	}
	return cfg, nil
}

func unmarshalPrefix(p *netip.Prefix, text []byte) error {
	value := strings.Trim(strings.TrimSpace(string(text)), `"'`)
	parsed, err := netip.ParsePrefix(value)
	if err != nil {
		return fmt.Errorf("%q is not a prefix such as 10.77.0.0/16", value)
	}
	if parsed != parsed.Masked() {
		return fmt.Errorf("%q has bits set beyond its length; write %s", value, parsed.Masked())
	}
	*p = parsed
	return nil
}

// document finds the place in a file that a complaint is about.
type document struct {
	name string
	file *ast.File
}

func (d document) at(path, format string, args ...any) error {
	e := &Error{File: d.name, Message: fmt.Sprintf("%s: %s", path, fmt.Sprintf(format, args...))}
	if d.file == nil {
		return e
	}
	p, err := yaml.PathString("$." + path)
	if err != nil {
		return e
	}
	if node, err := p.FilterFile(d.file); err == nil && node != nil && node.GetToken() != nil {
		e.Line, e.Column = node.GetToken().Position.Line, node.GetToken().Position.Column
	}
	return e
}

func (d document) decodeError(err error) error {
	var located yaml.Error
	if !errors.As(err, &located) {
		// A prefix is the only value that this package decodes itself.
		return d.at("allow.prefixes", "%v", err)
	}
	e := &Error{File: d.name, Message: yamlfault.Explain(located.GetMessage())}
	if _, torn := errors.AsType[*yaml.SyntaxError](err); torn {
		e.Message = "not valid YAML: " + e.Message
	}
	if token := located.GetToken(); token != nil {
		e.Line, e.Column = token.Position.Line, token.Position.Column
		if strings.HasPrefix(e.Message, "unknown field") {
			e.Message = fmt.Sprintf("unknown key %q; allowed: %s", token.Value, strings.Join(knownKeys(), ", "))
			if near := nearest.Word(token.Value, knownKeys()); near != "" {
				e.Message = fmt.Sprintf("unknown key %q; did you mean %q?", token.Value, near)
			}
			if now := renamed(token.Value); now != "" {
				e.Message = fmt.Sprintf("key %q is called %q now", token.Value, now)
			}
		}
		if key := keyOf(err); key.name != "" {
			if key.unit != "" {
				e.Message = strings.Replace(e.Message, ", without a unit", " of "+key.unit+", without the unit", 1)
			}
			if strings.ContainsAny(token.Value, ":[{") { // what begins a list or keys
				e.Message = key.name + ": " + e.Message
			} else {
				e.Message = fmt.Sprintf("%s: %q: %s", key.name, token.Value, e.Message)
			}
		}
	}
	return e
}

// keyOf is the key whose value is of the wrong type, and its unit, where err is about that.
func keyOf(err error) (key struct{ name, unit string }) {
	wrong, ok := errors.AsType[*yaml.TypeError](err)
	if !ok || wrong.StructFieldName == nil {
		return key
	}
	_, name, _ := strings.Cut(*wrong.StructFieldName, ".")
	field, _ := reflect.TypeFor[Config]().FieldByName(name)
	key.name, key.unit = field.Tag.Get("yaml"), field.Tag.Get("unit")
	return key
}

// renamed is what a key is called that had this name; "" when none had.
func renamed(former string) string {
	for i := range reflect.TypeFor[Config]().NumField() {
		if tag := reflect.TypeFor[Config]().Field(i).Tag; tag.Get("former") == former {
			return tag.Get("yaml")
		}
	}
	return ""
}

// knownKeys are the keys of the file at every level.
func knownKeys() []string {
	var keys []string
	for _, t := range []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[Allow]()} {
		for i := range t.NumField() {
			keys = append(keys, t.Field(i).Tag.Get("yaml"))
		}
	}
	return keys
}

func (d document) check(c Config) error {
	v, standard := reflect.ValueOf(c), reflect.ValueOf(defaults())
	for i := range v.NumField() {
		absent := v.Field(i).IsZero() && standard.Field(i).IsZero()
		if err := d.checkKey(v.Type().Field(i).Tag, v.Field(i), absent); err != nil {
			return err
		}
	}
	checks := []func(Config) error{d.checkInterfaces, d.checkPrivileges, d.checkFace, d.checkPrefixes, d.checkPaths}
	for _, check := range checks {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

// checkKey holds one key to its tags: missing (what to do when a key that is
// needed is not there), kind (the form of a text), min, max, zero and unit (of a
// number).
func (d document) checkKey(tag reflect.StructTag, v reflect.Value, absent bool) error {
	key := tag.Get("yaml")
	if cure, needed := tag.Lookup("missing"); needed && absent {
		return &Error{File: d.name, Message: key + ": missing; " + cure}
	}
	switch {
	case v.Kind() == reflect.String && !absent:
		if k := kinds()[tag.Get("kind")]; !k.takes(v.String()) {
			return d.at(key, "%q %s", v, k.words)
		}
	case v.CanInt():
		return d.checkAmount(key, tag, float64(v.Int()))
	case v.CanFloat():
		return d.checkAmount(key, tag, v.Float())
	}
	return nil
}

func (d document) checkAmount(key string, tag reflect.StructTag, x float64) error {
	if x >= bound(tag, "min", math.Inf(-1)) && x <= bound(tag, "max", math.Inf(1)) {
		return nil
	}
	allowed := tag.Get("min")
	if zero := tag.Get("zero"); zero != "" {
		allowed += " (" + zero + ")"
	}
	if most, there := tag.Lookup("max"); there {
		allowed = strings.TrimSpace(allowed + " to " + most + " " + tag.Get("unit"))
	} else {
		allowed += " and more"
	}
	return d.at(key, "%s is not allowed; allowed: %s", strconv.FormatFloat(x, 'g', -1, 64), allowed)
}

func bound(tag reflect.StructTag, name string, otherwise float64) float64 {
	if x, err := strconv.ParseFloat(tag.Get(name), 64); err == nil {
		return x
	}
	return otherwise
}

func (d document) checkInterfaces(c Config) error {
	if c.ControlInterface == c.Interface {
		return d.at("control_interface", "%q is the interface under test; leave control_interface out when there is "+
			"no other",
			c.Interface)
	}
	if c.PhyOf == c.Interface {
		return d.at("phy_of", "%q is the interface under test; give `interface` a new name, such as mesh0, "+
			"or leave phy_of out to use the interface itself", c.PhyOf)
	}
	if c.PhyOf != "" && c.FeedbackSocket != "" {
		return d.at("phy_of", "feedback_socket is given too, and what serves that sets the radio; leave one of the "+
			"two out")
	}
	if c.RadioFeedback && c.FeedbackSocket != "" {
		return d.at("radio_feedback", "feedback_socket is given too; leave one of the two out")
	}
	return nil
}

// checkPrivileges refuses keys that ask for what only root can do.
func (d document) checkPrivileges(c Config) error {
	for _, needs := range []struct {
		key string
		set bool
	}{{"phy_of", c.PhyOf != ""}, {"radio_feedback", c.RadioFeedback}} {
		if needs.set && c.Unprivileged() {
			return d.at(needs.key, "needs root, and `privileges` is none; leave one of the two out")
		}
	}
	return nil
}

func (d document) checkFace(c Config) error {
	if c.FaceUser == "root" || strings.HasPrefix(c.FaceUser, "0:") {
		return d.at("face_user", "%q: the part that faces the network must not run as root", c.FaceUser)
	}
	return nil
}

func (d document) checkPrefixes(c Config) error {
	if len(c.Allow.Prefixes) == 0 {
		return d.at("allow.prefixes", "empty; name at least one prefix, such as 10.77.0.0/16")
	}
	for i, p := range c.Allow.Prefixes {
		if p.Bits() < 8 {
			return d.at(fmt.Sprintf("allow.prefixes[%d]", i),
				"%s is wider than a /8; an agent that may route so much could cut the machine off", p)
		}
	}
	return nil
}

func (d document) checkPaths(c Config) error {
	path := kinds()["path"]
	for tool, at := range c.Binaries {
		if !slices.Contains(Tools(), tool) {
			return d.at("binaries."+tool, "not a tool that the agent starts; those are %s", strings.Join(Tools(), ", "))
		}
		if !path.takes(at) {
			return d.at("binaries."+tool, "%q %s", at, path.words)
		}
	}
	// sockaddr_un holds 108 bytes with the closing zero (unix(7)). A routing
	// daemon's socket has the longest path.
	if n := len(filepath.Join(c.HostDir(), "daemons", "babeld.sock")); n > 107 {
		return d.at("state_dir", "%q is too long: a socket's path below it would have %d of at most 107 bytes",
			c.StateDir, n)
	}
	return nil
}
