//go:build e2e

package cuts

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// nodes are those of every run here; the car's comes first.
var nodes = []string{"fox", "owl"}

// stage is where a run is driven.
type stage interface {
	begin() []string            // arguments that begin a run
	resume(run string) []string // arguments that continue it
	netns(node string) string   // "" while the node is not there
	control() string            // namespace of the control network
	port(node string) string    // the node's port of the control network
	owner() int                 // process that owns an emulated field; 0 without one
	spools() map[string]string  // node → folder of its spool
	passing() bool              // namespaces come and go with the controller
	judge(*campaign, *witness)  // holds the complete run, and what is left of the stage, against what was promised
}

// cutRuns cuts runs until so many cuts are made, at most ten in each.
func cutRuns(t *testing.T, total int, random *rand.Rand, kinds []string,
	build func(t *testing.T, dir, run string) stage) {
	database := newDatabases(t)
	for made, round := 0, 1; made < total; round++ {
		run := fmt.Sprintf("run%d", round)
		t.Run(run, func(t *testing.T) {
			dir := testnet.Folder(t)
			before := machine(t)
			s := build(t, dir, run)
			c := newCampaign(t, s, database, dir, run)
			w := watch(t, filepath.Join(dir, "witness"), s.spools())
			c.start()
			made += c.drive(draw(random, min(10, total-made), kinds))
			if t.Failed() {
				return
			}
			s.judge(c, w)
			same(t, "the machine", before, machine(t))
		})
		if t.Failed() {
			return
		}
	}
}

// controller is one life of it.
type controller struct {
	*testnet.Running
	cut string // why it may end before the run does
}

func (c *controller) kill(s syscall.Signal) {
	c.cut = "it got " + s.String()
	_ = c.Cmd.Process.Signal(s) // it may have ended by itself
}

// campaign is one run from its first controller to its last.
type campaign struct {
	t          *testing.T
	stage      stage
	database   *testnet.Influxd
	dir        string // holds runs
	name       string
	controller *controller
	lives      int
	sessions   map[int]bool // of the controllers: whatever they started is in them
	mayEnd     string       // why the present controller may end, for a reason outside it
	journal    []byte       // as it was after the life before
	healing    sync.WaitGroup
}

func (c *campaign) runs() string   { return filepath.Join(c.dir, "runs") }
func (c *campaign) runDir() string { return filepath.Join(c.runs(), c.name) }

// newDatabases is a server with the two databases that runs are compared in.
func newDatabases(t *testing.T) *testnet.Influxd {
	t.Helper()
	d := testnet.NewInfluxd(t)
	for _, name := range []string{"live", "afterwards"} {
		d.Query("", fmt.Sprintf("CREATE DATABASE %q", name))
	}
	return d
}

// to are the flags with which a controller writes to one of the databases.
func (c *campaign) to(database string) []string {
	return []string{"--influx", c.database.URL, "--database", database, "--user", testnet.InfluxAdmin,
		"--password-file", c.database.PasswordFile}
}

// points is how many points of this run a measurement has.
func (c *campaign) points(database, measurement string) int {
	c.t.Helper()
	rows := c.database.Query(database, fmt.Sprintf(`SELECT count(seq) FROM %q WHERE run = '%s'`, measurement, c.name))
	if len(rows) == 0 {
		return 0
	}
	n, err := strconv.Atoi(fmt.Sprint(rows[0]["count"]))
	if err != nil {
		c.t.Fatalf("count points of %s: %v", measurement, err)
	}
	return n
}

func newCampaign(t *testing.T, s stage, database *testnet.Influxd, dir, run string) *campaign {
	t.Helper()
	c := &campaign{t: t, stage: s, database: database, dir: dir, name: run, sessions: map[int]bool{}}
	t.Cleanup(c.healing.Wait)
	return c
}

// endsWithin bounds a whole run after its last cut, and the end of a
// controller whose field is gone.
const endsWithin = 4 * time.Minute

// drive drives the run to its end, from a controller that was started, making
// cuts on the way. It returns how many were made: the run may end before the last.
func (c *campaign) drive(cuts []cut) (made int) {
	for i := 0; ; {
		wait := endsWithin
		if i < len(cuts) {
			wait = cuts[i].after
		}
		select {
		case <-c.controller.Ended():
			if c.over() {
				c.healing.Wait()
				return made
			}
			c.start()
			continue
		case <-time.After(wait):
		}
		if i == len(cuts) {
			c.giveUp()
			return made
		}
		if c.tryCut(cuts[i]) {
			made++
			i++
		}
	}
}

// tryCut makes one cut, as soon as there is something to be cut; not when the
// controller ends first.
func (c *campaign) tryCut(x cut) bool {
	if x.kind == influxdKilled || x.kind == influxdStopped || x.kind == linkCut {
		c.healing.Wait() // one thing is not cut twice at once
	}
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if c.controller.Over() {
			return false
		}
		if c.inflict(x) {
			c.t.Logf("%s life %d: %s", time.Now().Format("15:04:05.000"), c.lives, x)
			return true
		}
	}
	c.t.Errorf("nothing to be cut for a minute: %s", x)
	c.controller.kill(syscall.SIGKILL)
	return true
}

// start begins the run, or resumes it once its folder has been made.
func (c *campaign) start() {
	c.t.Helper()
	args := append(c.stage.begin(), "--name", c.name)
	if _, err := os.Stat(filepath.Join(c.runDir(), "run.json")); err == nil {
		args = c.stage.resume(c.name)
	}
	args = append(append(args, "--runs", c.runs()), c.to("live")...)
	c.lives++
	cmd := fieldmesh(args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	l := &controller{Running: testnet.Start(c.t, cmd)}
	c.sessions[cmd.Process.Pid] = true
	c.controller, c.mayEnd = l, ""
}

// over looks at a controller that has ended: true when the run is complete. One
// that nobody has cut has no business to end before.
func (c *campaign) over() bool {
	c.t.Helper()
	c.keepJournal()
	l := c.controller
	switch err := l.Wait(c.t, time.Minute); {
	case err == nil:
		return true
	case l.cut == "" && c.mayEnd == "":
		c.t.Errorf("the controller ended by itself in life %d: %v", c.lives, err)
		if c.lives > 100 {
			c.t.Fatal("that is enough")
		}
	}
	return false
}

// keepJournal sees to it that no decision is lost or changed from one life of
// the controller to the next.
func (c *campaign) keepJournal() {
	c.t.Helper()
	now, err := os.ReadFile(filepath.Join(c.runDir(), "journal.ndjson"))
	if err != nil && !os.IsNotExist(err) {
		c.t.Error(err)
	}
	if !bytes.HasPrefix(now, c.journal) {
		c.t.Errorf("after life %d the journal does not begin as it did before:\n%s\nwas\n%s", c.lives, now, c.journal)
	}
	c.journal = now[:bytes.LastIndexByte(now, '\n')+1] // a torn line was not yet a decision
}

// giveUp ends a run that does not end, and shows where it hangs.
func (c *campaign) giveUp() {
	c.t.Helper()
	c.t.Errorf("the run has not come to its end %s after the last cut", endsWithin)
	_ = c.controller.Stop(c.t, syscall.SIGQUIT) // prints the goroutines
	c.healing.Wait()
}
