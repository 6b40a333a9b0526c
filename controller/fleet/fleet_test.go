package fleet_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func issue(t *testing.T, dir, name, address string, o fleet.IssueOptions) string {
	t.Helper()
	bundle, err := fleet.Issue(dir, name, address, o)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestKeysAreMadeIssuedAndRevoked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	controller, err := fleet.Init(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fleet.Init(dir); err == nil {
		t.Error("a fleet is written over")
	}
	bundle := issue(t, dir, "car", "192.168.50.11:7443", fleet.IssueOptions{Unit: "laptop-1",
		Labels: map[string]string{"colour": "red"}})
	issue(t, dir, "roadside", "node.example:7443", fleet.IssueOptions{})
	f, err := fleet.Load(filepath.Join(dir, fleet.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if names := strings.Join(f.Names(), " "); names != "car roadside" {
		t.Errorf("nodes %s", names)
	}
	node, err := keys.LoadIdentity(bundle)
	if err != nil {
		t.Fatal(err)
	}
	entry := f.Nodes["car"]
	if entry.Name != "car" || entry.Pin != node.Pin || entry.Address != "192.168.50.11:7443" ||
		entry.Unit != "laptop-1" || entry.Labels["colour"] != "red" {
		t.Errorf("the entry is %+v, the node's pin %s", entry, node.Pin)
	}
	if own, err := f.Identity(); err != nil || own.Pin != controller.Pin {
		t.Errorf("identity %s, %v; want %s", own.Pin, err, controller.Pin)
	}
	list, err := keys.LoadAuthorized(filepath.Join(bundle, "authorized.json"))
	if err != nil {
		t.Fatal(err)
	}
	if peers := list.Peers(); len(peers) != 1 || peers[0] != (keys.Peer{Name: "controller", Role: wire.RoleController,
		Pin: controller.Pin}) {
		t.Errorf("the node lets in %+v", peers)
	}
	if err := fleet.Revoke(dir, "car"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bundle); !os.IsNotExist(err) {
		t.Errorf("the bundle is still there: %v", err)
	}
	if f, err = fleet.Load(f.Path); err != nil || f.Nodes["car"].Pin != "" || f.Nodes["roadside"].Pin == "" {
		t.Errorf("after revoking: %+v, %v", f, err)
	}
	if err := fleet.Revoke(dir, "car"); err == nil {
		t.Error("a node is revoked twice")
	}
	again, err := keys.LoadIdentity(issue(t, dir, "car", "192.168.50.11:7443", fleet.IssueOptions{}))
	if err != nil || again.Pin == node.Pin {
		t.Errorf("issued again with pin %s, %v", again.Pin, err)
	}
}

func TestNotesInTheFleetFileAreKept(t *testing.T) {
	dir := t.TempDir()
	if _, err := fleet.Init(dir); err != nil {
		t.Fatal(err)
	}
	issue(t, dir, "car", "10.0.0.1:7443", fleet.IssueOptions{})
	path := filepath.Join(dir, fleet.FileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	noted := strings.Replace(string(text), "  car:", "  # the white one\n  car:", 1)
	if noted == string(text) {
		t.Fatalf("no place for a note in\n%s", text)
	}
	if err := os.WriteFile(path, []byte(noted), 0o644); err != nil {
		t.Fatal(err)
	}
	issue(t, dir, "roadside", "10.0.0.2:7443", fleet.IssueOptions{})
	if text, err = os.ReadFile(path); err != nil || !strings.Contains(string(text), "# the white one") {
		t.Errorf("the note is lost:\n%s%v", text, err)
	}
	if err := fleet.Revoke(dir, "car"); err != nil {
		t.Fatal(err)
	}
	if _, err := fleet.Load(path); err != nil {
		t.Error(err)
	}
}

func TestIssueRefuses(t *testing.T) {
	empty := t.TempDir()
	if _, err := fleet.Issue(empty, "car", "10.0.0.1:7443", fleet.IssueOptions{}); err == nil ||
		!strings.Contains(err.Error(), "fieldmesh keys init --dir "+empty) {
		t.Errorf("without a controller: %v", err)
	}
	dir := t.TempDir()
	if _, err := fleet.Init(dir); err != nil {
		t.Fatal(err)
	}
	issue(t, dir, "car", "10.0.0.1:7443", fleet.IssueOptions{})
	cases := []struct {
		name, address string
		o             fleet.IssueOptions
		want          string
	}{
		{"car", "10.0.0.2:7443", fleet.IssueOptions{}, "keys revoke car"},
		{"../x", "10.0.0.2:7443", fleet.IssueOptions{}, "check name"},
		{"b", "10.0.0.2", fleet.IssueOptions{}, "not host:port"},
		{"b", ":7443", fleet.IssueOptions{}, "not host:port"},
		{"b", "10.0.0.2:0", fleet.IssueOptions{}, "port of 1 to 65535"},
		{"b", "10.0.0.1:7443", fleet.IssueOptions{}, "is also that of"},
		{"b", "10.0.0.2:7443", fleet.IssueOptions{Netns: "../../etc/passwd"}, "netns"},
		{"b", "node.example:7443", fleet.IssueOptions{Netns: "n1"}, "numeric address"},
	}
	for _, c := range cases {
		if _, err := fleet.Issue(dir, c.name, c.address, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("issue %q at %q: %v, want it to say %q", c.name, c.address, err, c.want)
		}
	}
	f, err := fleet.Load(filepath.Join(dir, fleet.FileName))
	if err != nil || len(f.Nodes) != 1 {
		t.Errorf("a refused node is in the fleet: %+v, %v", f, err)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "nodes")); err != nil || len(entries) != 1 {
		t.Errorf("a refused node has a bundle: %v, %v", entries, err)
	}
}

func TestFleetFileIsReadStrictly(t *testing.T) {
	pin := strings.Repeat("a", 64)
	head := "version: 1\nkeys: .\nnodes:\n"
	cases := map[string]struct{ text, want string }{
		"empty":      {"", "empty"},
		"not YAML":   {"nodes: [", "fleet.yaml:1:8: "},
		"no version": {"keys: .\nnodes: {}\n", "version: 0 is not 1"},
		"no keys":    {"version: 1\nnodes: {}\n", "keys: missing"},
		"unknown key": {head + "  car: {address: '10.0.0.1:1', pin: " + pin + ", port: 3}\n",
			`unknown key "port"; allowed: version, keys, nodes, apps at the top, address, pin, unit, netns, labels in a node`},
		"double node": {head + "  car: {address: '10.0.0.1:1', pin: " + pin + "}\n  car: {address: " +
			"'10.0.0.2:1', pin: " + pin + "}\n", "car"},
		"bad name": {head + "  Car: {address: '10.0.0.1:1', pin: " + pin + "}\n", `"Car"`},
		"bad pin": {head + "  car: {address: '10.0.0.1:1', pin: abc}\n", "fleet.yaml:4:37: nodes.car.pin: " +
			"check pin \"abc\""},
		"no address": {head + "  car: {pin: " + pin + "}\n", "address"},
		"pin twice": {head + "  a: {address: '10.0.0.1:1', pin: " + pin + "}\n  b: {address: '10.0.0.2:1', pin: " +
			pin + "}\n", "fleet.yaml:5:35: nodes.b.pin: "},
		"address twice": {head + "  a: {address: '10.0.0.1:1', pin: " + pin + "}\n  b: {address: '10.0.0.1:1', pin: " +
			strings.Repeat("b", 64) + "}\n", "fleet.yaml:5:16: nodes.b.address: "},
	}
	for name, c := range cases {
		path := filepath.Join(t.TempDir(), "fleet.yaml")
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := fleet.Load(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want it to say %q", name, err, c.want)
		}
	}
	if _, err := fleet.Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil ||
		!strings.Contains(err.Error(), "keys init") {
		t.Errorf("no file: %v", err)
	}
	good := filepath.Join(t.TempDir(), "fleet.yaml")
	// One address in two namespaces is two nodes; and keys may be elsewhere.
	text := strings.Replace(head, "keys: .", "keys: ../elsewhere", 1) + "  a: {address: '10.0.0.1:1', netns: " +
		"n1, pin: " + pin + "}\n  b: {address: '10.0.0.1:1', netns: n2, pin: " + strings.Repeat("b", 64) + "}\n"
	if err := os.WriteFile(good, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := fleet.Load(good)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(filepath.Dir(good)), "elsewhere"); f.Keys != want {
		t.Errorf("keys in %s, want %s", f.Keys, want)
	}
	if _, err := f.Client(keys.Identity{}, "c"); err == nil || !strings.Contains(err.Error(), "it has a, b") {
		t.Errorf("an unknown node: %v", err)
	}
	_, err = (&fleet.Fleet{}).Client(keys.Identity{}, "c")
	if err == nil || !strings.Contains(err.Error(), "it has no node; `fieldmesh keys pair c` adds it") {
		t.Errorf("a node of an empty fleet: %v", err)
	}
}

//attack:local a fleet file that everybody can write, by which another node takes a node's place | it is not read
//attack:file a fleet file that is a pipe, or has no end | only a file of some megabytes is read
func TestAFleetFileOfEverybodyIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(path string) error
		want  string
	}{
		"that everybody can write": {func(path string) error { return os.Chmod(path, 0o646) }, "chmod o-w"},
		"a pipe": {func(path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600))
		}, "is not a file"},
		"without an end": {func(path string) error { return os.Truncate(path, 1<<40) }, "and may have"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), fleet.FileName)
			err := os.WriteFile(path, []byte("version: 1\nkeys: .\nnodes: {}\n"), 0o644)
			if err == nil {
				_, err = fleet.Load(path)
			}
			if err == nil {
				err = c.spoil(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fleet.Load(path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

//attack:file a fleet file whose aliases unfold to thousands of millions of values, or lie in themselves | anchors and
//attack:and aliases are not part of the format
func TestAliasesDoNotUnfold(t *testing.T) {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 9; i++ {
		tenfold := strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10)
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(tenfold, ","))
	}
	for name, text := range map[string]string{
		"keys of its own":      text + "version: 1\nkeys: .\nnodes: {}\n",
		"as a node":            text + "version: 1\nkeys: .\nnodes: {car: *a8}\n",
		"a node in itself":     "version: 1\nkeys: .\nnodes: &n\n  car: *n\n",
		"labels in themselves": "version: 1\nkeys: .\nnodes: {car: {labels: &l {a: *l}}}\n",
		"as labels":            text + "version: 1\nkeys: .\nnodes: {car: {labels: *a8}}\n",
	} {
		path := filepath.Join(t.TempDir(), "fleet.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := fleet.Load(path); err == nil || !strings.Contains(err.Error(), "write the value out") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzLoad: any text is read or refused, and what is read is well formed.
func FuzzLoad(f *testing.F) {
	f.Add("version: 1\nkeys: .\nnodes:\n  car: {address: '10.0.0.1:1', pin: " + strings.Repeat("a", 64) +
		", labels: {a: b}}\n")
	f.Add("version: 1\nkeys: .\nnodes: &a\n  car: *a\n")
	f.Add("a: [[[[{{{{")
	fuzz.Run(f, func(t *testing.T, text string) {
		dir, remove := fuzz.Folder(t)
		defer remove()
		path := filepath.Join(dir, "fleet.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := fleet.Load(path)
		if err != nil {
			return
		}
		for name, n := range loaded.Nodes {
			if keys.CheckName(name) != nil || keys.CheckPin(n.Pin) != nil || n.Name != name {
				t.Errorf("%q is read as %q: %+v", text, name, n)
			}
		}
	})
}

// What one process adds is not lost, and what another revokes does not come back, when they do so at the same time.
func TestChangesAtTheSameTimeAllCount(t *testing.T) {
	dir := t.TempDir()
	if _, err := fleet.Init(dir); err != nil {
		t.Fatal(err)
	}
	for round := range 10 {
		stolen := fmt.Sprintf("stolen%d", round)
		if _, err := fleet.AdmitApp(dir, stolen, fleet.App{Pin: testnet.Identity(t, stolen).Pin}); err != nil {
			t.Fatal(err)
		}
		var group errgroup.Group
		for i := range 3 {
			node := fleet.Node{Name: fmt.Sprintf("n%d-%d", round, i)}
			node.Address = fmt.Sprintf("10.0.%d.%d:7443", round, i+1)
			node.Pin = testnet.Identity(t, node.Name).Pin
			group.Go(func() error { _, err := fleet.AdmitNode(dir, node); return err })
		}
		group.Go(func() error { return fleet.Revoke(dir, stolen) })
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		f, err := fleet.Load(filepath.Join(dir, fleet.FileName))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Nodes) != 3*(round+1) || len(f.Apps) != 0 {
			t.Fatalf("round %d: %d nodes of %d, apps %v", round, len(f.Nodes), 3*(round+1), f.Apps)
		}
	}
}
