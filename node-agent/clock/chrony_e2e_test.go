//go:build e2e

package clock

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A real chronyd in a namespace of its own, which never touches the machine's
// clock (-x): it is its own reference, and holds that its clock gains 5 ppm.
// Debian's package would begin to keep the clock of whoever runs the tests, so
// it is not installed for them.
func TestARealChronydIsUnderstood(t *testing.T) {
	testnet.Need(t, "ip", "chronyd", "chronyc")
	dir := testnet.Folder(t)
	ns := testnet.NewNS(t, "chrony")
	config := filepath.Join(dir, "chrony.conf")
	text := fmt.Sprintf("local stratum 8\nport 0\nbindcmdaddress 127.0.0.1\nbindcmdaddress %s/chronyd.sock\npidfile "+
		"%[1]s/chronyd.pid\ndriftfile %[1]s/drift\nuser root\n", dir)
	for path, contents := range map[string]string{config: text, filepath.Join(dir, "drift"): "5.0 0.1\n"} {
		if err := os.WriteFile(path, []byte(contents), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	chronyd, err := exec.LookPath("chronyd")
	if err != nil {
		t.Fatal(err)
	}
	daemon := ns.Command(t.Context(), chronyd, "-d", "-x", "-f", config)
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Wait() }) // the test's end has ended it
	// Asked from within the namespace, as the agent there asks.
	chronyc, err := exec.LookPath("chronyc")
	if err != nil {
		t.Fatal(err)
	}
	wrapper := filepath.Join(dir, "chronyc")
	if err := os.WriteFile(wrapper, fmt.Appendf(nil, "#!/bin/sh\nexec ip netns exec %s %s -h 127.0.0.1 \"$@\"\n",
		ns.Name, chronyc), 0o755); err != nil {
		t.Fatal(err)
	}
	c := NewChrony(wrapper)
	var got Tracking
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if got, err = c.ask(t.Context()); err == nil && got.Synchronised {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("chronyd tells %+v, %v", got, err)
		}
	}
	t.Logf("%+v", got)
	if got.DriftPpm != 5 || got.Source == "" || got.Offset.Abs() > time.Second || got.Uncertainty > time.Second {
		t.Errorf("%+v", got)
	}
}
