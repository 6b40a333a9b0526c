//go:build e2e

package truth

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// kind is one way in which a trial can go wrong.
type kind struct {
	what string // which process or thing
	how  string // what happens to it
	role string // whose it is: sender, receiver, car, roadside; "" for what is not a node's
	// allowed are the codes of the reasons that the fault explains. An attempt
	// that it hit may always be accepted, if its figure is true, unless voids.
	allowed []string
	voids   bool // within the window it leaves nothing to be accepted
}

func (k kind) String() string {
	text := k.what + " " + k.how
	if k.role != "" {
		text += " at " + k.role
	}
	return text
}

const (
	killed    = "killed"
	stopped   = "stopped"
	frozen    = "frozen" // by its control group
	overOpen  = "stopped over the open"
	overLoad  = "stopped over the load's start"
	overClose = "stopped over the close"
)

// Codes that the end of a part of ours explains.
var (
	faceGone = []string{"agent_restarted", "agent_stopped", "arm_failed", "no_window", "no_go", "go_unanswered"}
	hostGone = []string{"host_restarted", "host_restored", "restore_failed", "arm_failed", "routing_daemon"}
	// A face that stands still samples nothing, hears no GO and reads no fix.
	faceStands = []string{"edge", "stalled", "no_go", "go_unanswered", "no_window", "gps", "clock", "arm_failed"}
)

// kinds are the faults of a trial without a routing daemon.
var kinds = slices.Concat(
	[]kind{
		{what: "iperf3 client", how: killed, role: "sender", allowed: []string{"generator"}, voids: true},
		{what: "iperf3 server", how: killed, role: "receiver", allowed: []string{"generator"}, voids: true},
		{what: "iperf3 client", how: stopped, role: "sender", allowed: []string{"generator"}, voids: true},
		{what: "iperf3 server", how: stopped, role: "receiver", allowed: []string{"generator"}, voids: true},
		{what: "iperf3 client", how: frozen, role: "sender", allowed: []string{"generator"}, voids: true},
		{what: "iperf3 server", how: frozen, role: "receiver", allowed: []string{"generator"}, voids: true},
		{what: "controller", how: killed, allowed: []string{"field_gone", "controller_restarted", "agent_restarted",
			"agent_stopped", "arm_failed"}},
		{what: "controller", how: stopped, allowed: []string{"clock", "field_gone"}},
		{what: "disk", how: "full", allowed: []string{"disk_full", "unrecorded",
			"arm_failed"}}, // a node that is full cannot be armed, and says that no space is left
		{what: "stranger", how: "at the port", allowed: []string{"stranger", "generator"}},
		{what: "stranger", how: "beside", allowed: []string{"stranger"}},
		{what: "tmp", how: "read-only", role: "sender", allowed: []string{"generator"}},
		{what: "face", how: overOpen, role: "receiver", allowed: faceStands},
		{what: "face", how: overClose, role: "receiver", allowed: faceStands},
		{what: "face", how: overLoad, role: "sender", allowed: faceStands, voids: true},
	},
	both(kind{what: "generator", how: frozen, allowed: append([]string{"generator"}, faceStands...), voids: true},
		"sender", "receiver"),
	both(kind{what: "face", how: killed, allowed: faceGone, voids: true}, "sender", "receiver"),
	both(kind{what: "face", how: stopped, allowed: faceStands}, "sender", "receiver"),
	both(kind{what: "host", how: killed, allowed: hostGone}, "sender", "receiver"),
	both(kind{what: "host", how: stopped, allowed: []string{"arm_failed", "restore_failed"}}, "sender", "receiver"),
	both(kind{what: "up", how: killed, allowed: slices.Concat(faceGone, hostGone), voids: true}, "sender", "receiver"),
	both(kind{what: "up", how: stopped}, "sender", "receiver"),
	both(kind{what: "gpsd", how: killed, allowed: []string{"gps"}}, "car", "roadside"),
	both(kind{what: "gpsd", how: stopped, allowed: []string{"gps"}}, "car", "roadside"),
)

// daemonKinds are those that a routing daemon brings.
var daemonKinds = slices.Concat(
	both(kind{what: "daemon", how: killed, allowed: []string{"routing_daemon", "arm_failed"}}, "sender", "receiver"),
	both(kind{what: "daemon", how: stopped, allowed: []string{"routing_daemon", "arm_failed"}}, "sender", "receiver"),
)

func both(k kind, roles ...string) (out []kind) {
	for _, r := range roles {
		k.role = r
		out = append(out, k)
	}
	return out
}

// fault is one thing that goes wrong, drawn before the run begins.
type fault struct {
	kind
	after time.Duration // since the receiver's server listens; of a client, since it runs
	lasts time.Duration // of what ends by itself
	tries int
	// fromNs and toNs are between which moments a process stood still, by the boot
	// clock: it had to be found before, which a busy machine may take long for.
	fromNs, toNs int64
}

// last lets the fault last.
func (f *fault) last() {
	f.fromNs = bootNs()
	time.Sleep(f.lasts)
	f.toNs = bootNs()
}

// draw deals the faults in a random order, each at a moment of its own from
// before the window to its end.
func draw(random *rand.Rand, of []kind) []*fault {
	var out []*fault
	for _, k := range of {
		f := &fault{kind: k, after: between(random, 0, leadTime+windowTime)}
		f.lasts = between(random, 200*time.Millisecond, 3*time.Second)
		switch {
		case k.how == frozen: // within the window
			f.after = between(random, 0, windowTime-time.Second)
			f.lasts = between(random, stillTime+100*time.Millisecond, 2*time.Second)
			if k.what != "iperf3 client" {
				f.after += leadTime + 100*time.Millisecond
			}
		case k.what == "iperf3 client":
			f.after = between(random, 0, windowTime)
		case k.what == "gpsd": // long enough to be seen, in most cases
			f.after, f.lasts = between(random, 0, 2*time.Second), between(random, 1500*time.Millisecond, 3*time.Second)
		case k.what == "stranger":
			f.after, f.lasts = between(random, 0, 2*leadTime), between(random, 2*time.Second, 4*time.Second)
		case k.what == "disk":
			f.lasts = between(random, 2*time.Second, 4*time.Second)
		case k.what == "tmp":
			f.after, f.lasts = 0, 2*time.Second
		case k.how == overOpen:
			f.after = between(random, 0, leadTime)
			f.lasts = leadTime - f.after + between(random, 100*time.Millisecond, 1500*time.Millisecond)
		case k.how == overLoad:
			f.after = leadTime + between(random, loadStart/2, loadStart-100*time.Millisecond)
			f.lasts = leadTime + loadStart - f.after + between(random, 300*time.Millisecond, 800*time.Millisecond)
		case k.how == overClose:
			f.after = windowTime + between(random, 0, leadTime-100*time.Millisecond)
			f.lasts = windowTime + leadTime - f.after + between(random, 100*time.Millisecond, 1500*time.Millisecond)
		}
		out = append(out, f)
	}
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}

// isFlows reports whether it is an iperf3 of the measured flow, and neither the
// load's nor one that preflight tries over loopback.
func isFlows(name string, args []string) bool {
	return name == "iperf3" && !slices.Contains(args, "127.0.0.1") && slices.Contains(args, measuredPort)
}

// isOf tells the process that a fault means from its arguments.
func (k kind) isOf(name string, args []string) bool {
	switch k.what {
	case "iperf3 client":
		return isFlows(name, args) && slices.Contains(args, "-c")
	case "iperf3 server":
		return isFlows(name, args) && slices.Contains(args, "-s")
	case "face", "host", "up":
		return len(args) > 1 && filepath.Base(args[0]) == "fieldmesh-agent" && args[1] == k.what
	case "daemon":
		return name == "babeld" || len(args) > 1 && filepath.Base(args[0]) == "fieldmesh-agent" && args[1] == "route"
	}
	return name == k.what
}

// process finds the one of a namespace that is meant; 0 when it does not run.
func process(ns string, is func(name string, args []string) bool) int {
	space, err := os.Stat(filepath.Join(testnet.Dir, ns))
	if ns == "" || err != nil {
		return 0
	}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range folders {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(line) == 0 {
			continue // it has ended, or is the kernel's
		}
		name, _ := os.ReadFile(filepath.Join(dir, "comm"))
		if !is(string(bytes.TrimSpace(name)), strings.Split(string(line), "\x00")) {
			continue
		}
		if own, err := os.Stat(filepath.Join(dir, "ns", "net")); err == nil && os.SameFile(own, space) {
			pid, _ := strconv.Atoi(filepath.Base(dir)) // its pattern has digits only
			return pid
		}
	}
	return 0
}

// hurt kills a process, or stops it for a while.
func (f *fault) hurt(pid int) error {
	switch f.how {
	case killed:
		return syscall.Kill(pid, syscall.SIGKILL)
	case frozen:
		return freeze(pid, f.last)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	f.last()
	_ = syscall.Kill(pid, syscall.SIGCONT) // somebody may have killed it since
	return nil
}

// inflict has the fault happen to the attempt under way, and returns when it is
// over. An error says why it could not.
func (r *run) inflict(f *fault, at attempt) error {
	switch f.what {
	case "controller":
		r.controller.cut = f.how == killed
		return f.hurt(r.controller.Cmd.Process.Pid)
	case "disk":
		return r.fillDisk(f.lasts)
	case "stranger":
		return r.stranger(f, at)
	case "tmp":
		return r.sealTmp(f, at)
	case "generator":
		return r.freezeNode(f, at)
	}
	pid := 0
	for until := time.Now().Add(4 * time.Second); pid == 0; time.Sleep(10 * time.Millisecond) {
		pid = process(r.netns(at.node(f.role)), f.isOf)
		if time.Now().After(until) || r.controller.Over() {
			return fmt.Errorf("there is no %s at %s", f.what, f.role)
		}
	}
	if f.what == "iperf3 client" {
		time.Sleep(f.after)
	}
	return f.hurt(pid)
}

// sealTmp has a node's programs find a /tmp for a while that takes no file.
func (r *run) sealTmp(f *fault, at attempt) error {
	pid := process(r.netns(at.node(f.role)), kind{what: "face"}.isOf)
	inside := func(args ...string) error {
		all := append([]string{fmt.Sprintf("--mount=/proc/%d/ns/mnt", pid)}, args...)
		if out, err := exec.Command("nsenter", all...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
		return nil
	}
	if err := inside("mount", "-t", "tmpfs", "-o", "ro", "none", "/tmp"); err != nil {
		return err
	}
	time.Sleep(f.lasts)
	return inside("umount", "-l", "/tmp")
}
