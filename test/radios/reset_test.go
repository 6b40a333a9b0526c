//go:build guest

package radios

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/power"
)

// aPhone puts programs in the place of Android's `cmd` and `getprop`, for its Wi-Fi:
// whether it is on outlives a reboot. It stands for all nodes of the guest.
func aPhone(t *testing.T, state string) {
	t.Helper()
	script := "#!/bin/sh\ncase $2 in\nstatus) read s <" + state + "; echo \"Wifi is $s\" ;;\nset-wifi-enabled) " +
		"echo $3 >" + state + ".new; /bin/sync " + state + ".new; /bin/mv " + state + ".new " + state + "; /bin/sync " +
		filepath.Dir(state) + " ;;\nesac\n"
	err := os.MkdirAll("/system/bin", 0o755)
	if err == nil {
		err = os.WriteFile("/system/bin/cmd", []byte(script), 0o755)
	}
	if err == nil {
		err = os.WriteFile("/system/bin/getprop", []byte("#!/bin/sh\necho wlan0\n"), 0o755)
	}
	if _, absent := os.Stat(state); err == nil && absent != nil {
		err = os.WriteFile(state, []byte("enabled\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// others are lines of a snapshot that are about the network for control, whose
// addresses are drawn at every boot.
var others = regexp.MustCompile(`(?m)^.*ctl0.*\n`)

// The whole machine loses its power at a step of a trial and boots again on
// the same disk. The agents, which start at boot, put back what outlives a
// reboot, know that the rest is gone, and touch nothing that this boot has set
// up. In the end the machine is as it was before the first trial.
func TestResetInATrial(t *testing.T) {
	disk := power.Disk(t)
	boot := power.Boot(t)
	wifi := filepath.Join(disk, "wifi")
	aPhone(t, wifi)
	dir := filepath.Join(disk, "rig")
	if err := os.MkdirAll(dir, 0o755); err != nil { // the agents' unprivileged half enters it
		t.Fatal(err)
	}
	r := newRigIn(t, dir, "fox", "owl")
	// Of eight changes the third joins the network; all are there when a trial is armed.
	steps := []int{3, 8}
	if os.Getenv("FIELDMESH_SOAK") != "" {
		steps = []int{1, 2, 3, 4, 5, 6, 7, 8}
	}
	before := map[*node]string{}
	for _, n := range r.nodes {
		before[n] = n.first(t, disk)
	}
	if boot == 1 {
		syscall.Sync() // what was installed is on disk long before a trial
	}
	if boot > 1 {
		r.comesBack(t, steps[boot-2], before, wifi)
	}
	if boot > len(steps) {
		return
	}
	for _, n := range r.nodes {
		n.start(t)
	}
	file := r.write(t, "road.yaml", fmt.Sprintf(campaign, 30.0, "{protocol: none}", "", ""))
	run := exec.Command(filepath.Join(programs, "fieldmesh"), "run", file, "--fleet", r.fleet(), "--place", "bench",
		"--runs", filepath.Join(r.dir, "runs"), "--name", fmt.Sprintf("reset-%d", boot), "--patience", "2m")
	var told bytes.Buffer
	run.Stdout, run.Stderr = &told, &told
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	testnet.Await(t, 3*time.Minute, fmt.Sprintf("change %d at owl", steps[boot-1]), func() bool {
		select {
		case err := <-ended:
			t.Fatalf("the run ended before that: %v\n%s", err, told.String())
		default:
		}
		return r.nodes[1].changes(t) >= steps[boot-1]
	})
	power.Cut(t)
}

// first is a node's state as the first boot had it, kept on the disk.
func (n *node) first(t *testing.T, disk string) string {
	t.Helper()
	path := filepath.Join(disk, n.name+".before")
	if text, err := os.ReadFile(path); err == nil {
		return string(text)
	}
	time.Sleep(3 * time.Second) // the kernel's own addresses of IPv6 come later
	text := others.ReplaceAllString(n.snapshot(t), "")
	f, err := os.Create(path)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Sync(), f.Close()) // the power will be cut
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// comesBack starts the agents as a boot does.
func (r *rig) comesBack(t *testing.T, step int, before map[*node]string, wifi string) {
	t.Helper()
	state := func() string {
		text, err := os.ReadFile(wifi)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	pending := 0
	for _, n := range r.nodes {
		pending += n.changes(t)
	}
	t.Logf("power was lost at change %d: %d changes are in the journals, Wi-Fi is %s", step, pending, state())
	// A change is on disk before it is begun, and may be seen in the journal before
	// that: the last one may be lost, and then was not begun. The first change turns
	// the Wi-Fi off: cut in it, that is done or not.
	if pending < step-1 || step > 1 && state() != "disabled" {
		t.Errorf("the reset lost what was on disk: %d changes, Wi-Fi is %s", pending, state())
	}
	for _, n := range r.nodes {
		n.start(t)
	}
	for _, n := range r.nodes {
		testnet.Await(t, 2*time.Minute, "the next life of "+n.name, func() bool { return n.changes(t) == 0 })
		n.staysAs(t, fmt.Sprintf("after a reset at change %d", step), before[n])
	}
	if state() != "enabled" {
		t.Errorf("after a reset at change %d Android's Wi-Fi is %s", step, state())
	}
	for _, n := range r.nodes {
		n.stop()
		n.staysAs(t, "after the agent's end", before[n])
	}
}

// staysAs is becomes without the network for control.
func (n *node) staysAs(t *testing.T, when, before string) {
	t.Helper()
	n.compare(t, when, before, func() string { return others.ReplaceAllString(n.snapshot(t), "") })
}
