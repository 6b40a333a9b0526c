//go:build e2e

package cuts

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The kinds of cuts.
const (
	controllerKilled      = "controller killed"
	controllerInterrupted = "controller interrupted" // as by Ctrl-C
	fieldKilled           = "field killed"
	faceKilled            = "face killed"
	hostKilled            = "host process killed"
	upKilled              = "agent killed whole"
	linkCut               = "control link cut"
	influxdKilled         = "influxd killed"
	influxdStopped        = "influxd stopped"
)

// cut is one thing that goes wrong, drawn before the run begins.
type cut struct {
	kind  string
	node  string        // of which it is; "" for both, or for what is not a node's
	after time.Duration // since the cut before, or the controller's start
	lasts time.Duration // of what ends by itself
}

func (c cut) String() string {
	text := c.kind
	if c.node != "" {
		text += " at " + c.node
	}
	if c.lasts > 0 {
		text += fmt.Sprintf(" for %.1f s", c.lasts.Seconds())
	}
	return text
}

// draw deals cuts from packs of all kinds, so that few cuts have every kind,
// and leaves the moments to chance: some fall into the start of a controller,
// some into what the cut before has left.
func draw(random *rand.Rand, n int, kinds []string) []cut {
	var out []cut
	var pack []string
	for len(out) < n {
		if len(pack) == 0 {
			pack = append(pack, kinds...)
			random.Shuffle(len(pack), func(i, j int) { pack[i], pack[j] = pack[j], pack[i] })
		}
		c := cut{kind: pack[0], after: between(random, 0, 4*time.Second)}
		pack = pack[1:]
		switch c.kind {
		case faceKilled, hostKilled, upKilled:
			c.node = nodes[random.IntN(len(nodes))]
		case linkCut:
			c.node = append([]string{""}, nodes...)[random.IntN(len(nodes)+1)]
			c.lasts = between(random, 200*time.Millisecond, 5*time.Second)
		case influxdKilled, influxdStopped:
			c.lasts = between(random, 200*time.Millisecond, 3*time.Second)
		}
		out = append(out, c)
	}
	return out
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

// half finds one of a node's processes, up, host or face; 0 when it does not run.
func half(ns, part string) int {
	for _, pid := range testnet.Pids(ns) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		args := strings.Split(string(line), "\x00")
		if err == nil && len(args) > 1 && filepath.Base(args[0]) == "fieldmesh-agent" && args[1] == part {
			return pid
		}
	}
	return 0
}

// inflict makes the cut. It tells false when there is nothing to be cut at
// present: the field may just be built.
func (c *campaign) inflict(x cut) bool {
	switch x.kind {
	case controllerKilled:
		c.controller.kill(syscall.SIGKILL)
		return true
	case controllerInterrupted:
		c.controller.kill(syscall.SIGINT)
		return true
	case fieldKilled:
		if pid := c.stage.owner(); pid != 0 {
			c.mayEnd = "the field was killed"
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	case faceKilled, hostKilled, upKilled:
		part := map[string]string{faceKilled: "face", hostKilled: "host", upKilled: "up"}[x.kind]
		if pid := half(c.stage.netns(x.node), part); pid != 0 {
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	case linkCut:
		return c.cutLink(x)
	case influxdKilled:
		c.database.Kill()
		c.later(x.lasts, func() error { c.database.Start(); return nil })
		return true
	case influxdStopped:
		if c.database.Pause() == nil {
			c.later(x.lasts, c.database.Resume)
			return true
		}
	}
	return false
}

func (c *campaign) cutLink(x cut) bool {
	ns := c.stage.control()
	var ports []string
	for _, n := range nodes {
		if x.node == "" || x.node == n {
			ports = append(ports, c.stage.port(n))
		}
	}
	made := false
	for _, port := range ports {
		made = setLink(ns, port, "down") == nil || made
	}
	if !made {
		return false
	}
	c.later(x.lasts, func() error {
		for _, port := range ports {
			if err := setLink(ns, port, "up"); err != nil && !c.stage.passing() {
				return err // a field that has ended since took its links along
			}
		}
		return nil
	})
	return true
}

// later makes a cut good again after a while, at most once at a time per kind
// of thing: the next cut waits for it where they would meet.
func (c *campaign) later(d time.Duration, heal func() error) {
	c.healing.Go(func() {
		time.Sleep(d)
		if err := heal(); err != nil {
			c.t.Errorf("make a cut good again: %v", err)
		}
	})
}
