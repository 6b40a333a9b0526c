package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A machine that a former life left changed is put back, whatever else is wrong.
func TestAFaultElsewhereKeepsNoChangeInForce(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root, who alone puts back")
	}
	dir := t.TempDir()
	path, journal := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "state", "host", "journal")
	if err := os.MkdirAll(filepath.Dir(journal), 0o755); err != nil {
		t.Fatal(err)
	}
	// Of another boot, so that nothing is set.
	entry := `{"id":1,"state":"prepared","scope":"run","change":{"sysctl":{"key":"net.ipv4.ip_forward","value":"1"}},` +
		`"undo":{"world":{"boot":"4f2a9f0e-0b7e-4a7c-9d55-0c1de0b6a001","netns":1,"cookie":1},"sysctls":[]}}`
	entry = fmt.Sprintf("%08x %s\n", crc32.Checksum([]byte(entry), crc32.MakeTable(crc32.Castagnoli)), entry)
	for fault, text := range map[string]string{
		"find face_user \"no-such-user\"": "face_user: no-such-user\nstate_dir: " + dir + "/state # here\n",
		"unknown key \"goport\"":          "goport: 7000\nstate_dir: '" + dir + "/state'\n",
		"`privileges: none`":              "privileges: none\nstate_dir: " + dir + "/state\n",
		"agent.yaml:4:":                   "state_dir: " + dir + "/state\n\tgo_port: [\n",
	} {
		for _, command := range []string{"host", "restore", "up"} {
			if command == "restore" && strings.HasPrefix(fault, "find face_user") {
				continue // it is not asked for that
			}
			t.Run(command+" "+fault, func(t *testing.T) {
				text := "node: car\ninterface: wlan0\n" + text
				for name, text := range map[string]string{path: text, journal: entry} {
					if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				root := Root()
				var out bytes.Buffer
				root.SetOut(&out)
				root.SetErr(&out)
				root.SetArgs([]string{command, "--config", path})
				err := root.ExecuteContext(t.Context())
				if fine := command == "restore" && strings.HasPrefix(fault, "`privileges"); fine != (err == nil) ||
					err != nil && !strings.Contains(err.Error(), fault) {
					t.Errorf("the fault is told as %v\n%s", err, &out)
				}
				if left, err := os.ReadFile(journal); err != nil || len(left) > 0 {
					t.Errorf("left in force is %q, %v", left, err)
				}
			})
		}
	}
}

// Where a node is to have no privileged half, root starts none, and what a former one left is put back by root only.
func TestANodeWithoutRootHasNoPrivilegedHalf(t *testing.T) {
	dir := t.TempDir()
	text := "node: car\ninterface: wlan0\nprivileges: none\nstate_dir: " + dir + "\n"
	cfg, err := config.Parse("agent.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := restoreDespite(cfg, errNoHost); !errors.Is(err, errNoHost) {
		t.Errorf("without a journal: %v", err)
	}
	if hasJournal(cfg) {
		t.Error("there is a journal already")
	}
	if err := makeDirs(cfg, identity{os.Getuid(), os.Getgid()}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(cfg.HostDir(), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cfg.JournalDir(), "journal"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !hasJournal(cfg) || !strings.Contains(leftByRoot(cfg).Error(), "sudo fieldmesh-agent restore") {
		t.Error("a journal that root left is not told")
	}
}

// A face's folder that others may enter, or that lies elsewhere, is not taken.
func TestAFolderOfOthersIsNotTaken(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		make func(path string) error
		fine bool
	}{
		"own": {func(path string) error { return os.Mkdir(path, 0o700) }, true},
		"open to others": {func(path string) error {
			return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777))
		}, false},
		"link": {func(path string) error { return os.Symlink(dir, path) }, false},
		"file": {func(path string) error { return os.WriteFile(path, nil, 0o600) }, false},
	} {
		path := filepath.Join(dir, name)
		if err := c.make(path); err != nil {
			t.Fatal(err)
		}
		if err := ownFolder(path); (err == nil) != c.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of what no restore can undo, none says that the next one tries.
func TestARestoreSaysWhatTriesAgain(t *testing.T) {
	for _, c := range []struct {
		report wire.RestoreReport
		says   string
	}{
		{wire.RestoreReport{Undone: []string{"a"}}, ""},
		{wire.RestoreReport{Failed: []string{"a", "b"}}, "2 not undone; the next restore"},
		{wire.RestoreReport{Failed: []string{"a"}, Damaged: 1}, "1 of a damaged journal not undone, and no " +
			"restore can"},
		{wire.RestoreReport{Failed: []string{"a", "b"}, Damaged: 1}, "1 not undone; the next restore, or start of " +
			"the agent, tries again\n1 of a damaged journal"},
	} {
		err := writeRestored(io.Discard, c.report)
		if (err != nil) != (c.says != "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.report, err, c.says)
		}
	}
}
