//go:build e2e

package truth

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
	"golang.org/x/sys/unix"
)

// windowTime is the campaign's: long enough that the edges' lateness on a busy
// machine is well below the one per cent that is looked for.
const windowTime = 3 * time.Second

// leadTime is about how long before the window the receiver's server listens.
const leadTime = 500 * time.Millisecond

// loadStart is how long after the window's open the load in the background begins.
const loadStart = time.Second

// measuredPort is that of the measured flow.
const measuredPort = "5000"

// campaignText has a car and a roadside node that stand near each other, and a
// third radio, from which a stranger sends.
func campaignText(protocol string, repetitions int) string {
	return `fieldmesh: 1
name: truth
title: Short windows in which things go wrong
nodes:
  fox: {unit: one, mesh_address: 10.77.0.1/24}
  owl: {unit: two, mesh_address: 10.77.0.2/24}
  elk: {unit: three, mesh_address: 10.77.0.3/24}
` + testnet.Parked("truth", 3) + `  routing: {protocol: ` + protocol + `}
  tcp: {variant: reno}
  traffic:
    bulk: {kind: iperf3_tcp, from: sender, to: receiver, streams: 2, window_bytes: 32768, port: 5000}
    load: {kind: iperf3_udp, background: true, from: sender, to: receiver, payload_bytes: 250, bitrate_bps: 100000, start_s: 1, duration_s: 2, port: 5002}
` + testnet.Sections("car", "roadside", repetitions) + `acceptance: {fix_mode_min: 3, fix_age_ms_max: 1500, clock_error_ms_max: 100, lateness_share_max: 0.02, attempts_max: 20}
field:
  agents: participants
  mobility:
    model: placed
    area: {width_m: 1000, height_m: 1000}
    positions:
      fox: {x_m: 10, y_m: 0}
      owl: {x_m: 0, y_m: 0}
      elk: {x_m: 5, y_m: 10}
`
}

// nodes are those whose figures are compared.
var nodes = []string{"fox", "owl"}

// attempt is one that is under way.
type attempt struct {
	wire.TrialKey
	trial wire.Trial
}

// node is the node in a role of the trial.
func (a attempt) node(role string) string {
	return map[string]string{"sender": a.trial.Sender, "receiver": a.trial.Receiver, "car": "fox",
		"roadside": "owl"}[role]
}

// run is one rehearsal, from its first controller to its last.
type run struct {
	t          *testing.T
	dir        string
	controller *controller
	lives      int
	watches    map[string]*watch // the capture at work at each node
	seen       map[int]bool      // iperf3's servers that were noticed
	out        rehearsed
}

// controller is one life of it.
type controller struct {
	*testnet.Running
	cut bool // it was killed
}

// struck is a fault that happened, in time of the boot clock.
type struck struct {
	*fault
	beginNs, endNs int64
}

func (r *run) fields() string { return filepath.Join(r.dir, "fields") }
func (r *run) runDir() string { return filepath.Join(r.dir, "runs", "truth") }

// rehearse drives a campaign of so many trials with faults in its attempts, but
// every fourth, and reads what came of it.
func rehearse(t *testing.T, protocol string, trials int, faults []*fault) rehearsed {
	testnet.Need(t, "ip", "gpsd", "iperf3", "tcpdump", "babeld")
	r := &run{t: t, dir: testnet.Folder(t), watches: map[string]*watch{}, seen: map[int]bool{}}
	text := campaignText(protocol, trials/2)
	if err := os.WriteFile(filepath.Join(r.dir, "truth.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r.mountFields()
	t.Cleanup(r.endWatches)
	r.start()
	r.drive(faults)
	r.endWatches()
	return r.read()
}

// start begins the run, or resumes it once its folder has been made.
func (r *run) start() {
	args := []string{"rehearse", filepath.Join(r.dir, "truth.yaml"), "--name", "truth"}
	if _, err := os.Stat(filepath.Join(r.runDir(), "run.json")); err == nil {
		args = []string{"rehearse", "--resume", "truth"}
	}
	args = append(args, "--runs", filepath.Dir(r.runDir()), "--field-dir", r.fields())
	r.lives++
	cmd := exec.Command(filepath.Join(programs, "fieldmesh"), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r.controller = &controller{Running: testnet.Start(r.t, cmd)}
}

// drive drives the run to its end.
func (r *run) drive(faults []*fault) {
	last, attempts := time.Now(), 0
	for {
		if r.controller.Over() {
			err := r.controller.Wait(r.t, time.Minute)
			if err == nil {
				return
			}
			if !r.controller.cut && !r.noRoom() {
				r.t.Errorf("the controller ended by itself in life %d: %v", r.lives, err)
			}
			if r.lives > 30 {
				r.t.Fatal("that is enough")
			}
			r.start()
			last = time.Now()
		}
		if time.Since(last) > 2*time.Minute {
			r.t.Fatal("no attempt has begun for two minutes")
		}
		r.keepWatch()
		at, begun := r.begun()
		if !begun {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		last = time.Now()
		// A trial that has failed often is spared: the machine may be late as well.
		if attempts++; attempts%4 == 0 || at.Attempt > 4 || len(faults) == 0 {
			continue
		}
		f := faults[0]
		faults = faults[1:]
		if !r.strike(f, at) && f.tries < 3 {
			f.tries++
			faults = append(faults, f)
		}
	}
}

// noRoom reports whether the controller ended because a disk was full, as it was
// just made to be, and said how to go on.
func (r *run) noRoom() bool {
	n := len(r.out.struck)
	return n > 0 && r.out.struck[n-1].what == "disk" &&
		strings.Contains(r.controller.Said(), "(disk_full); then continue with --resume")
}

// strike makes a fault happen, and reports whether it did.
func (r *run) strike(f *fault, at attempt) bool {
	if f.what != "iperf3 client" {
		time.Sleep(f.after)
	}
	s := struck{fault: f, beginNs: bootNs()}
	err := r.inflict(f, at)
	s.endNs = bootNs()
	if err != nil {
		r.t.Logf("trial %d attempt %d: %s: %v", at.Trial, at.Attempt, f, err)
		return false
	}
	switch { // what came before was the wait for the process
	case f.how == killed:
		s.beginNs = s.endNs
	case f.toNs > s.beginNs:
		s.beginNs, s.endNs = f.fromNs, f.toNs
	}
	r.t.Logf("%s trial %d attempt %d: %s for %.1f s", time.Now().Format("15:04:05.000"),
		at.Trial, at.Attempt, f, float64(s.endNs-s.beginNs)/1e9)
	r.out.struck = append(r.out.struck, s)
	return true
}

// begun reports which attempt has begun: a server of iperf3 that was not there
// before.
func (r *run) begun() (attempt, bool) {
	for _, n := range nodes {
		pid := process(r.netns(n), kind{what: "iperf3 server"}.isOf)
		if pid == 0 || r.seen[pid] {
			continue
		}
		r.seen[pid] = true
		a, err := archive.Read(r.runDir())
		if err != nil {
			r.t.Error(err)
			return attempt{}, false
		}
		return next(a)
	}
	return attempt{}, false
}

// next is the attempt that comes after those that are decided: the first of the
// first trial that is not accepted.
func next(a *archive.Archive) (attempt, bool) {
	decided, accepted := map[int]int{}, map[int]bool{}
	for _, v := range a.Decisions() {
		decided[v.Trial] = max(decided[v.Trial], v.Attempt)
		accepted[v.Trial] = accepted[v.Trial] || v.Outcome == "accepted"
	}
	for _, t := range a.Info().Plan.Trials {
		if !accepted[t.Number] {
			return attempt{wire.TrialKey{Trial: t.Number, Attempt: decided[t.Number] + 1}, t}, true
		}
	}
	return attempt{}, false
}

// netns is the namespace of a node, as the field's ledger has it; "" without a field.
func (r *run) netns(node string) string {
	paths, _ := filepath.Glob("/run/fieldmesh/field-*.json")
	for _, p := range paths {
		var l struct {
			Dir        string   `json:"dir"`
			Namespaces []string `json:"namespaces"`
		}
		text, err := os.ReadFile(p)
		if err != nil || json.Unmarshal(text, &l) != nil || !strings.HasPrefix(l.Dir, r.fields()+"/") {
			continue
		}
		for _, ns := range l.Namespaces {
			if strings.HasSuffix(ns, "-"+node) {
				return ns
			}
		}
	}
	return ""
}

// mountFields has the nodes' disks on a file system of their own.
func (r *run) mountFields() {
	if err := os.Mkdir(r.fields(), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := unix.Mount("truth", r.fields(), "tmpfs", 0, roomy); err != nil {
		r.t.Fatalf("mount the nodes' disk: %v", err)
	}
	r.t.Cleanup(func() {
		if err := unix.Unmount(r.fields(), 0); err != nil {
			r.t.Errorf("unmount the nodes' disk: %v", err)
		}
	})
}

// roomy leaves the nodes more than what they keep free for others.
const roomy = "size=1g,mode=755"

// fillDisk takes away what is free on the nodes' disk for a while.
func (r *run) fillDisk(d time.Duration) error {
	var st unix.Statfs_t
	if err := unix.Statfs(r.fields(), &st); err != nil {
		return fmt.Errorf("fill disk: %w", err)
	}
	used := (st.Blocks - st.Bfree) * uint64(st.Bsize)
	err := unix.Mount("truth", r.fields(), "tmpfs", unix.MS_REMOUNT, fmt.Sprintf("size=%d", used))
	time.Sleep(d)
	if err := errors.Join(err, unix.Mount("truth", r.fields(), "tmpfs", unix.MS_REMOUNT, roomy)); err != nil {
		return fmt.Errorf("fill disk: %w", err)
	}
	return nil
}

// bootNs is the boot clock, which every process of the machine shares.
func bootNs() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err) // the clock is there since Linux 2.6.39
	}
	return ts.Nano()
}
