//go:build e2e

package refusals

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestE2ETwoControllers: while a run is driven, nobody else drives it, and no
// other run takes its nodes away.
//
//attack:controller a stale lease, or that of another run
func TestE2ETwoControllers(t *testing.T) {
	d := newDesk(t)
	d.up(t, "alpha", "")
	d.up(t, "bravo", "")
	long := strings.NewReplacer("duration_s: 1", "duration_s: 5", "repetitions: 1", "repetitions: 3").Replace(patient)
	c := d.inside("alpha", "fieldmesh", d.runArgs(t, long, "--name", "one")...)
	out := &testnet.Output{}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	others := func(t *testing.T, phase string) {
		says := regexp.MustCompile(phase)
		testnet.Await(t, time.Minute, phase, func() bool { return says.MatchString(out.String()) })
		d.run(t, patient, "--name", "two").refused(t,
			": take lease: node ", " is steered by controller (run one) for another ", // whichever node answers first
			"(lease_held): stop the other controller, or wait until its lease has ended\n")
		d.resume("one", t).refused(t, `open run "`+d.path("runs", "one")+
			`": the run is being written by another process; wait for its end, or stop the fieldmesh that drives it`+
			"\n")
		if _, err := os.Stat(d.path("runs", "two")); err == nil {
			t.Error("the refused run left its folder behind")
		}
	}
	t.Run("in a trial", func(t *testing.T) { others(t, "trial 1: running") })
	t.Run("again", func(t *testing.T) { others(t, "trial 1( attempt .)?: accepted, ") }) // the machine may be late
	_ = c.Wait()
	if got := c.ProcessState.ExitCode(); got != 0 || !strings.Contains(out.String(), "3 of 3 trials accepted") {
		t.Errorf("the run that was there first: status %d\n%s", got, out.String())
	}

	for _, want := range []string{"run one in " + d.path("runs", "one") + ": 3 trials, ",
		"watch: fieldmesh live " + d.path("runs", "one") + "\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the run does not say %q", want)
		}
	}

	t.Run("a name that is taken", func(t *testing.T) {
		key, err := os.ReadFile(d.path("runs", ".keys", "one.key"))
		if err != nil {
			t.Fatal(err)
		}
		d.run(t, patient, "--name", "one").refused(t,
			`create run "one": the folder holds a run already; continue it by --resume one, or give the new run another --name`+"\n")
		if after, err := os.ReadFile(d.path("runs", ".keys", "one.key")); err != nil || !bytes.Equal(after, key) {
			t.Errorf("the run's key was touched: %v", err)
		}
	})
	t.Run("the next run on the same nodes", func(t *testing.T) {
		if o := d.run(t, patient, "--name", "two"); o.status != 0 ||
			!strings.Contains(o.stdout, "1 of 1 trials accepted") {
			t.Errorf("status %d\n%s%s", o.status, o.stdout, o.stderr)
		}
	})
	t.Run("a name that was deleted", func(t *testing.T) {
		// The nodes' disks still hold the deleted run's records.
		if err := os.RemoveAll(d.path("runs", "one")); err != nil {
			t.Fatal(err)
		}
		if o := d.run(t, patient, "--name", "one"); o.status != 0 ||
			!strings.Contains(o.stdout, "1 of 1 trials accepted") {
			t.Errorf("status %d\n%s%s", o.status, o.stdout, o.stderr)
		}
		out, err := program("fieldmesh", "verify", "one", "--runs", d.path("runs")).CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func (d *desk) resume(name string, t *testing.T) outcome {
	t.Helper()
	return finish(t, d.inside("alpha", "fieldmesh", "run", "--resume", name, "--runs", d.path("runs"), "--fleet",
		d.path("fleet", "fleet.yaml"), "--patience", "1s"))
}

// TestE2ENoInfluxDB: the run does not depend on its database.
func TestE2ENoInfluxDB(t *testing.T) {
	d := newDesk(t)
	d.up(t, "alpha", "")
	d.up(t, "bravo", "")
	const nobody = "http://127.0.0.1:9" // discard; nothing listens in the namespace
	t.Run("not there", func(t *testing.T) {
		o := d.run(t, patient, "--name", "offline", "--influx", nobody)
		t.Logf("%s%s", o.stdout, o.stderr)
		if o.status != 0 || !strings.Contains(o.stdout, "1 of 1 trials accepted") {
			t.Errorf("status %d: the run was lost with its database", o.status)
		}
		for _, want := range []string{"influxdb is away; records wait on disk", "reach " + nobody + ": ",
			"connection refused", "influxdb does not have everything; `fieldmesh publish` brings the rest"} {
			if !strings.Contains(o.stderr, want) {
				t.Errorf("it does not say %q", want)
			}
		}
		mustRun(t, program("fieldmesh", "verify", "offline", "--runs", d.path("runs")))
	})
	t.Run("publish", func(t *testing.T) {
		finish(t, d.inside("alpha", "fieldmesh", "publish", "offline", "--runs", d.path("runs"), "--influx", nobody,
			"--patience", "1s")).
			refused(t, `write to database "fieldmesh" at `+nobody+": ", "connection refused")
	})
	t.Run("no URL", func(t *testing.T) {
		d.run(t, patient, "--influx", "desk:8086", "--name", "bad").refused(t,
			`influx url "desk:8086": expected http://HOST:PORT or https://HOST:PORT`)
	})
}
