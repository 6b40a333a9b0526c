//go:build e2e

package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// startAsUnit starts a host process with the capabilities of the package's unit.
func (f field) startAsUnit(t *testing.T) (*Client, *exec.Cmd) {
	t.Helper()
	text, err := os.ReadFile("../../packaging/debian/fieldmesh-host.service")
	if err != nil {
		t.Fatal(err)
	}
	set := regexp.MustCompile(`(?m)^CapabilityBoundingSet=(.+)$`).FindSubmatch(text)
	if set == nil {
		t.Fatal("the unit has no CapabilityBoundingSet")
	}
	names := strings.ToLower(strings.NewReplacer("CAP_", "+", " ", ",").Replace(string(set[1])))
	cmd := f.command(t, "host")
	cmd.Args = slices.Insert(cmd.Args, len(cmd.Args)-1, "setpriv", "--bounding-set=-all,"+names, "--inh-caps=-all",
		"--no-new-privs")
	return f.begin(t, cmd, true)
}

// The package's unit may not look into a process with more capabilities than its own, as what somebody runs as root
// has: its routing daemon is seen all the same, and no second one started beside it.
func TestE2ESomebodysDaemonIsSeenByTheUnit(t *testing.T) {
	testnet.Need(t, "setpriv", "sleep", babeld)
	f, _ := newField(t)
	before := f.snapshot(t)
	c, host := f.startAsUnit(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(testnet.Folder(t), babeld)
	if err := os.WriteFile(theirs, program, 0o755); err != nil {
		t.Fatal(err)
	}
	daemon := []change.Change{routingDaemon()}
	cmd := f.ns.Command(t.Context(), theirs, "600")
	r := testnet.Start(t, cmd)
	testnet.Await(t, time.Minute, "it runs", func() bool { return f.running(t, theirs) == cmd.Process.Pid })
	_, err = c.Apply(t.Context(), ScopeTrial, daemon)
	var refused *change.Refused
	if want := fmt.Sprintf("a babeld that is not ours runs already, as process %d", cmd.Process.Pid); !errors.As(err,
		&refused) || refused.Reason != want {
		t.Errorf("beside somebody's babeld: %v, want a refusal as %s", err, want)
	}
	_ = r.Stop(t, syscall.SIGKILL) // "signal: killed"
	apply(t, c, ScopeTrial, daemon)
	if f.running(t, f.cfg.Binaries[babeld]) == 0 {
		t.Error("its own does not run")
	}
	restoreAll(t, c)
	terminate(t, host)
	mustEqual(t, "in the end", before, f.snapshot(t))
}
