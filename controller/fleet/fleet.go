// Package fleet knows the nodes: the fleet file with their addresses and
// pinned keys, the making and revoking of those keys, and one client per node
// with a typed call for every call of the agent's API. It decides nothing
// about a run.
package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"

	"fieldmesh.dev/fieldmesh/internal/keys"
)

// FileName is the fleet file's name in the folder that Init makes.
const FileName = "fleet.yaml"

// fileVersion is the version of the fleet file that this package reads.
const fileVersion = 1

// Fleet is a fleet file.
type Fleet struct {
	Path  string          // the file that it was read from
	Keys  string          // folder of the controller's identity
	Nodes map[string]Node // by name
	Apps  map[string]App  // by name
}

// App is a phone's app that the nodes let in.
type App struct {
	// Pin of the app's key
	Pin string `yaml:"pin" kind:"pin" required:"true"`
	// Whether whoever has the phone may have campaigns driven, by `fieldmesh serve`
	Experimenter bool `yaml:"experimenter,omitempty"`
}

// Node is one node's entry.
type Node struct {
	Name string `yaml:"-"`
	// Where the agent's API is reached, host:port
	Address string `yaml:"address" kind:"address" required:"true"`
	// Pin of the agent's key
	Pin string `yaml:"pin" kind:"pin" required:"true"`
	// The hardware that carries the node
	Unit string `yaml:"unit,omitempty"`
	// Rehearsals only: the network namespace from which the address is reached
	Netns string `yaml:"netns,omitempty" kind:"netns"`
	// Whatever a person wants to note of the node
	Labels map[string]string `yaml:"labels,omitempty"`
}

// file is the fleet file as it is written. The comments and tags here are what
// its JSON Schema is written from.
//
//go:generate go test -run TestSchemaIsCurrent -update .
type file struct {
	// Version of the format
	Version int `yaml:"version" kind:"version" required:"true"`
	// Folder of the controller's key; a relative one lies beside this file
	Keys string `yaml:"keys" required:"true"`
	// The nodes, by name
	Nodes map[string]Node `yaml:"nodes"`
	// Phones whose app the nodes let in, by name
	Apps map[string]App `yaml:"apps,omitempty"`
}

// Load reads and checks a fleet file.
func Load(path string) (*Fleet, error) {
	f, _, err := readFile(path)
	if err != nil {
		return nil, err
	}
	dir := f.Keys
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(path), dir)
	}
	return &Fleet{Path: path, Keys: dir, Nodes: f.Nodes, Apps: f.Apps}, nil
}

// readFile reads a fleet file and the comments in it, so that it can be
// written again without losing what a person noted there.
func readFile(path string) (file, yaml.CommentMap, error) {
	data, err := readOwn(path)
	if errors.Is(err, os.ErrNotExist) {
		return file{}, nil, noFleet{path}
	}
	if err != nil {
		return file{}, nil, fmt.Errorf("load fleet: %w", err)
	}
	f, comments, err := parse(data)
	if err != nil {
		return file{}, nil, locate(path, data, err)
	}
	return f, comments, nil
}

// noFleet is the error of a fleet file that is not there.
type noFleet struct{ path string }

func (e noFleet) Error() string {
	return fmt.Sprintf("load fleet %q: there is no such file; `fieldmesh keys init` makes one, or name "+
		"another", e.path)
}

// Is reports whether target is os.ErrNotExist.
func (noFleet) Is(target error) bool { return target == os.ErrNotExist }

// fleetMost bounds the file: 200 nodes are some ten kilobytes.
const fleetMost = 4 << 20

// readOwn reads a fleet file that not everybody can write: whoever does puts a node of his own
// in the place of a node, and is told the run's key.
func readOwn(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder; name the file in it, %s", path, filepath.Join(path, FileName))
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&0o002 != 0:
		return nil, fmt.Errorf("everybody can write %s (mode %04o), and so say which nodes are the fleet's; "+
			"compare it with what `fieldmesh keys` printed, and chmod o-w %s", path, info.Mode().Perm(), path)
	case info.Size() > fleetMost:
		return nil, fmt.Errorf("%s has %d bytes, and may have %d", path, info.Size(), fleetMost)
	}
	return os.ReadFile(path)
}

// parse reads the text of a fleet file, strictly.
func parse(data []byte) (file, yaml.CommentMap, error) {
	var f file
	comments := yaml.CommentMap{}
	for _, t := range lexer.Tokenize(string(data)) { // what is unfolded may be endless, and in itself
		if t.Type == token.AnchorType || t.Type == token.AliasType {
			return file{}, nil, &yaml.SyntaxError{Token: t,
				Message: "anchors and aliases are not part of the format; write the value out"}
		}
	}
	err := yaml.NewDecoder(strings.NewReader(string(data)), yaml.Strict(), yaml.CommentToMap(comments)).Decode(&f)
	if errors.Is(err, io.EOF) {
		return file{}, nil, errors.New("the file is empty; `fieldmesh keys init` makes a good one")
	}
	if err != nil {
		return file{}, nil, err
	}
	if f.Version != fileVersion {
		return file{}, nil, under(fmt.Errorf("%d is not %d, the one that this program reads", f.Version, fileVersion),
			"version")
	}
	if f.Keys == "" {
		return file{}, nil, under(errors.New("missing; name the folder of the controller's key, . for this one"),
			"keys")
	}
	for _, name := range slices.Sorted(maps.Keys(f.Nodes)) {
		n := f.Nodes[name]
		n.Name = name
		f.Nodes[name] = n
		if err := n.check(); err != nil {
			return file{}, nil, under(err, "nodes", name)
		}
	}
	return f, comments, f.unique()
}

// unique refuses two nodes at one address, two of one key, and an app of a
// node's name.
func (f file) unique() error {
	if err := uniqueNodes(f.Nodes); err != nil {
		return err
	}
	owner := map[string]string{}
	for name, n := range f.Nodes {
		owner[n.Pin] = name
	}
	for _, name := range slices.Sorted(maps.Keys(f.Apps)) {
		pin := f.Apps[name].Pin
		if err := keys.CheckName(name); err != nil {
			return under(err, "apps", name)
		}
		if err := keys.CheckPin(pin); err != nil {
			return under(err, "apps", name, "pin")
		}
		if _, taken := f.Nodes[name]; taken || name == controllerName {
			return under(errors.New("is the name of another"), "apps", name)
		}
		if other, taken := owner[pin]; taken {
			return under(fmt.Errorf("%s is also that of %s", pin, other), "apps", name, "pin")
		}
		owner[pin] = name
	}
	return nil
}

func uniqueNodes(nodes map[string]Node) error {
	owner := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		for _, mark := range []string{"address " + n.Address + " " + n.Netns, "pin " + n.Pin} {
			if other, taken := owner[mark]; taken {
				key, _, _ := strings.Cut(mark, " ")
				return under(fmt.Errorf("%s is also that of %s", strings.TrimSpace(strings.TrimPrefix(mark, key)),
					other), "nodes", name, key)
			}
			owner[mark] = name
		}
	}
	return nil
}

// netnsForm keeps a namespace's name inside /run/netns.
var netnsForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

func (n Node) check() error {
	if err := keys.CheckName(n.Name); err != nil {
		return err
	}
	if err := keys.CheckPin(n.Pin); err != nil {
		return under(fmt.Errorf("%w; `fieldmesh keys issue NODE` writes it", err), "pin")
	}
	host, port, err := net.SplitHostPort(n.Address)
	if err != nil {
		return under(fmt.Errorf("%q is not host:port, as 192.168.1.20:7443", n.Address), "address")
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 || host == "" {
		return under(fmt.Errorf("%q is not host:port with a port of 1 to 65535", n.Address), "address")
	}
	if n.Netns == "" {
		return nil
	}
	if !netnsForm.MatchString(n.Netns) {
		return under(fmt.Errorf("%q is not the name of a namespace", n.Netns), "netns")
	}
	// A name would be looked up by threads outside the namespace.
	if _, err := netip.ParseAddr(host); err != nil {
		return under(fmt.Errorf("%q: with netns it must be a numeric address", n.Address), "address")
	}
	return nil
}

// Names lists the nodes in alphabetical order.
func (f *Fleet) Names() []string { return slices.Sorted(maps.Keys(f.Nodes)) }

// Identity loads the controller's identity.
func (f *Fleet) Identity() (keys.Identity, error) {
	identity, err := keys.LoadIdentity(f.Keys)
	if errors.Is(err, keys.ErrNoIdentity) {
		return keys.Identity{}, fmt.Errorf("load the controller's key of fleet %q: there is no controller.key in %q; "+
			"copy it back, or make a fleet in another folder (`fieldmesh keys init --dir DIR`) and pair its nodes "+
			"again",
			f.Path, f.Keys)
	}
	if err != nil {
		return keys.Identity{}, fmt.Errorf("load the controller's key of fleet %q: %w", f.Path, err)
	}
	return identity, nil
}

// Client makes a client of one node. Close it after use.
func (f *Fleet) Client(identity keys.Identity, name string) (*Client, error) {
	node, ok := f.Nodes[name]
	if !ok {
		return nil, fmt.Errorf("find node %q in fleet %q: it has %s; `fieldmesh keys pair %s` adds it", name, f.Path,
			cmp.Or(strings.Join(f.Names(), ", "), "no node"), name)
	}
	return NewClient(identity, node), nil
}
