package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/config"
)

func TestWriteFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etc", "agent.yaml")
	if _, err := writeFirst(path, config.First("alpha", "wlx0")); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path)
	if err != nil || cfg.Node != "alpha" || cfg.Interface != "wlx0" {
		t.Errorf("read back %q, %q, %v", cfg.Node, cfg.Interface, err)
	}
	before, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(before), "# phy_of:") {
		t.Errorf("written %q, %v, want a comment with phy_of", before, err)
	}
	if _, err := writeFirst(path, config.First("bravo", "wlx1")); err == nil ||
		!strings.Contains(err.Error(), "is left as it is") {
		t.Errorf("a second time: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file became %q, %v", after, err)
	}
	if _, err := writeFirst(path+"2", config.First("Not A Name", "wlan0")); err == nil {
		t.Error("a name that no node may have is written")
	}
}

// Without root, everything lies beside the file, and is whoever's that is.
func TestFirstConfigurationWithoutRoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine", "agent.yaml")
	c := InitCommand()
	c.SetArgs([]string{"--config", path, "--node", "alpha", "--interface", "wlx0", "--privileges", "none"})
	var said strings.Builder
	c.SetOut(&said)
	if err := c.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path)
	if dir := filepath.Dir(path); err != nil || !cfg.Unprivileged() || cfg.StateDir != filepath.Join(dir, "state") ||
		cfg.KeysDir != filepath.Join(dir, "keys") {
		t.Errorf("read back %+v, %v", cfg, err)
	}
	if !strings.Contains(said.String(), "`fieldmesh-agent pair --config "+path+"`") {
		t.Errorf("it says %q", &said)
	}
}

// A node's name is that of its key, too: none is longer than a key's may be.
func TestNamesOfNodesAreThoseOfKeys(t *testing.T) {
	long := strings.Repeat("a", 40)
	if name := nameOf(long + ".example.org"); keys.CheckName(name) != nil {
		t.Errorf("a machine's name becomes %q", name)
	}
	for host, want := range map[string]string{"Lap Top.local": "lap-top-local", "": "node-1", "--": "node-1"} {
		if name := nameOf(host); name != want {
			t.Errorf("%q becomes %q", host, name)
		}
	}
	path := filepath.Join(t.TempDir(), "agent.yaml")
	_, err := writeFirst(path, config.First(long, "wlan0"))
	if err == nil || !strings.Contains(err.Error(), "1 to 32") {
		t.Errorf("a name that no key can have is written: %v", err)
	}
}

func TestBestInterfaceIsThatOfARadioThatCanBeANode(t *testing.T) {
	station := radioOf{Interface: "wlan0", Modes: []string{"managed"}, Channels: []int{1}}
	node := radioOf{Interface: "wlan1", Modes: []string{"adhoc"}, Channels: []int{1}}
	if got := bestInterface([]radioOf{station, node}); got != "wlan1" {
		t.Errorf("got %s", got)
	}
	if got := bestInterface([]radioOf{station}); got != "wlan0" {
		t.Errorf("without one: %s", got)
	}
}

func TestOwnNameIsANodesName(t *testing.T) {
	if _, err := config.Parse("agent.yaml", []byte(config.First(ownName(), "wlan0"))); err != nil {
		t.Error(err)
	}
}
