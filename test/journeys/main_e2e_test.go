//go:build e2e

package journeys

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// programs is the folder of the built programs. An ordinary user can enter it:
// agents start their unprivileged half from there.
var programs string

func TestMain(m *testing.M) { os.Exit(testnet.WithPrograms(m.Run, &programs)) }

// fieldmesh runs a command to its end, as a user types it, and returns what it
// printed.
func fieldmesh(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(programs, "fieldmesh"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("fieldmesh %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// begin starts a command that runs beside the test.
func begin(t *testing.T, args ...string) *testnet.Running {
	t.Helper()
	return testnet.Start(t, exec.Command(filepath.Join(programs, "fieldmesh"), args...))
}

// nameOf is the name of a campaign's file, and of its run.
func nameOf(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }

// rehearsal is one that runs beside the test.
type rehearsal struct {
	*testnet.Running
	runs, fields string // folders
	name         string // of the run: the campaign's
}

// rehearse begins the rehearsal of a campaign.
func rehearse(t *testing.T, file string, args ...string) *rehearsal {
	t.Helper()
	dir := testnet.Folder(t)
	r := &rehearsal{runs: filepath.Join(dir, "runs"), fields: filepath.Join(dir, "fields"),
		name: nameOf(file)}
	r.Running = begin(t, append([]string{"rehearse", file, "--runs", r.runs, "--name", r.name, "--field-dir", r.fields},
		args...)...)
	return r
}

func (r *rehearsal) runDir() string { return filepath.Join(r.runs, r.name) }

// await waits until the rehearsal has made a file.
func (r *rehearsal) await(t *testing.T, path string) {
	t.Helper()
	testnet.Await(t, time.Minute, path+" is there", func() bool {
		if r.Over() {
			t.Fatal("the rehearsal ended")
		}
		_, err := os.Stat(path)
		return err == nil
	})
}

// fleet waits until the field is there.
func (r *rehearsal) fleet(t *testing.T) *fleet.Fleet {
	t.Helper()
	path := filepath.Join(field.Folder(r.fields, r.name), "field0", "fleet.yaml")
	r.await(t, path)
	fl, err := fleet.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return fl
}

// follow tells the steps of attempts, as alpha sees them, until the rehearsal is over.
func (r *rehearsal) follow(t *testing.T, fl *fleet.Fleet, within time.Duration, tell func(string, wire.TrialKey)) {
	t.Helper()
	f := &follower{client: clientOf(t, fl, "alpha"), run: r.name}
	for until := time.Now().Add(within); !r.Over(); {
		if time.Now().After(until) {
			t.Fatal("the rehearsal does not end")
		}
		if step, k, changed := f.next(t.Context()); changed {
			tell(step, k)
		}
	}
}

// clientOf talks to a node of a fleet.
func clientOf(t *testing.T, fl *fleet.Fleet, node string) *fleet.Client {
	t.Helper()
	identity, err := fl.Identity()
	if err != nil {
		t.Fatal(err)
	}
	c, err := fl.Client(identity, node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// finish waits for the rehearsal's end, which has to be a good one.
func (r *rehearsal) finish(t *testing.T) kept {
	t.Helper()
	if err := r.Wait(t, 20*time.Minute); err != nil {
		t.Fatalf("fieldmesh rehearse: %v", err)
	}
	return openRun(t, r.runDir())
}
