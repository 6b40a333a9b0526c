package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
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

var (
	nodeName      = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	interfaceName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`) // IFNAMSIZ leaves 15 characters
	userName      = regexp.MustCompile(`^([a-z_][a-z0-9_-]{0,31}|[0-9]{1,10}:[0-9]{1,10})$`)
)

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
	e := &Error{File: d.name, Message: located.GetMessage()}
	if token := located.GetToken(); token != nil {
		e.Line, e.Column = token.Position.Line, token.Position.Column
		if strings.HasPrefix(e.Message, "unknown field") {
			e.Message = fmt.Sprintf("unknown key %q; did you mean %q?", token.Value, nearest(token.Value, knownKeys()))
		}
	}
	return e
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

// nearest is the known word with the least edit distance.
func nearest(word string, known []string) string {
	best, bestDistance := "", len(word)+100
	for _, k := range known {
		if d := editDistance(word, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

func (d document) check(c Config) error {
	checks := []func(Config) error{d.checkNames, d.checkAddresses, d.checkPaths, d.checkAmounts}
	for _, check := range checks {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

func (d document) checkNames(c Config) error {
	if c.Node == "" {
		return &Error{File: d.name, Message: "node: missing; give this node a name"}
	}
	if !nodeName.MatchString(c.Node) {
		return d.at("node", "%q; allowed are 1 to 64 of a-z, 0-9 and -", c.Node)
	}
	if c.Interface == "" {
		return &Error{File: d.name, Message: "interface: missing; name the interface to measure on, such as wlan0"}
	}
	for key, name := range map[string]string{"interface": c.Interface, "beside": c.Beside, "control_interface": c.ControlInterface} {
		if name == "" && key != "interface" {
			continue
		}
		if !interfaceName.MatchString(name) || slices.Contains([]string{".", "..", "all", "default", "lo"}, name) {
			return d.at(key, "%q is not the name of an interface that can be tested", name)
		}
	}
	if c.ControlInterface == c.Interface {
		return d.at("control_interface", "%q is the interface under test; leave control_interface out when there is no other", c.ControlInterface)
	}
	if c.Beside == c.Interface {
		return d.at("beside", "%q is the interface under test; give `interface` a new name, such as mesh0, or leave beside out to use the interface itself", c.Beside)
	}
	if c.Beside != "" && c.FeedbackSocket != "" {
		return d.at("beside", "feedback_socket is given too, and what serves that sets the radio; leave one of the two out")
	}
	if !userName.MatchString(c.FaceUser) {
		return d.at("face_user", "%q is neither a user's name nor uid:gid", c.FaceUser)
	}
	if c.FaceUser == "root" || strings.HasPrefix(c.FaceUser, "0:") {
		return d.at("face_user", "%q: the part that faces the network must not run as root", c.FaceUser)
	}
	return nil
}

func (d document) checkAddresses(c Config) error {
	for key, address := range map[string]string{"listen": c.Listen, "gpsd": c.GPSD} {
		if key == "gpsd" && address == NoGPSD {
			continue
		}
		host, port, err := net.SplitHostPort(address)
		if n, perr := strconv.Atoi(port); err != nil || perr != nil || n < 1 || n > 65535 {
			return d.at(key, "%q is not host:port with a port of 1 to 65535", address)
		}
		if key == "gpsd" && host == "" {
			return d.at(key, "%q names no host", address)
		}
	}
	if c.GoPort < 1 || c.GoPort > 65535 {
		return d.at("go_port", "%d; allowed is 1 to 65535", c.GoPort)
	}
	if len(c.Allow.Prefixes) == 0 {
		return d.at("allow.prefixes", "empty; name at least one prefix, such as 10.77.0.0/16")
	}
	for i, p := range c.Allow.Prefixes {
		if p.Bits() < 8 {
			return d.at(fmt.Sprintf("allow.prefixes[%d]", i), "%s is wider than a /8; an agent that may route so much could cut the machine off", p)
		}
	}
	return nil
}

func (d document) checkPaths(c Config) error {
	paths := map[string]string{"state_dir": c.StateDir, "keys_dir": c.KeysDir, "sysfs_dir": c.SysfsDir}
	if c.ClockFile != "" {
		paths["clock_file"] = c.ClockFile
	}
	if c.FeedbackSocket != "" {
		paths["feedback_socket"] = c.FeedbackSocket
	}
	for tool, path := range c.Binaries {
		if !slices.Contains(Tools(), tool) {
			return d.at("binaries."+tool, "not a tool that the agent starts; those are %s", strings.Join(Tools(), ", "))
		}
		paths["binaries."+tool] = path
	}
	for key, path := range paths {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
			return d.at(key, "%q is not a clean absolute path", path)
		}
	}
	if c.RadioFeedback && c.FeedbackSocket != "" {
		return d.at("radio_feedback", "feedback_socket is given too; leave one of the two out")
	}
	// sockaddr_un holds 108 bytes with the closing zero (unix(7)).
	if n := len(c.HostSocket()); n > 107 {
		return d.at("state_dir", "%q is too long: the socket's path would have %d of at most 107 bytes", c.StateDir, n)
	}
	return nil
}

func (d document) checkAmounts(c Config) error {
	if c.QuotaBytes < 1e6 {
		return d.at("quota_bytes", "%d; allowed is 1000000 and more", c.QuotaBytes)
	}
	if c.QuotaFreeBytes < 0 {
		return d.at("quota_free_bytes", "%d; allowed is 0 and more", c.QuotaFreeBytes)
	}
	if !(c.DeadManS >= 10 && c.DeadManS <= 86400) {
		return d.at("dead_man_s", "%g; allowed is 10 to 86400 seconds", c.DeadManS)
	}
	if !(c.BatteryMinPercent >= 0 && c.BatteryMinPercent <= 100) {
		return d.at("battery_min_percent", "%g; allowed is 0 (no limit) to 100 %%", c.BatteryMinPercent)
	}
	if !(c.TemperatureMaxC >= 0 && c.TemperatureMaxC <= 150) {
		return d.at("temperature_max_c", "%g; allowed is 0 (no limit) to 150 °C", c.TemperatureMaxC)
	}
	return nil
}
