//go:build e2e

package journeys

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const edgesWindow = 3.0 // stationary-check's, in seconds

// stall is a node's face that stands still for some time over the window's close.
type stall struct {
	node    string
	seconds float64
}

// stalls by "speed section". In section A alpha sends to bravo, in B the other way.
var stalls = map[string]stall{
	"5.6 A": {"bravo", 0.25}, "5.6 B": {"bravo", 1}, "8.3 A": {"bravo", 2.5}, "8.3 B": {"alpha", 0.5},
}

// over stops the face shortly before the window's close, and lets it go on.
func (s stall) over(t *testing.T, d *desk) {
	t.Helper()
	pid := d.face(t, s.node)
	inWindow(edgesWindow - min(s.seconds/2, 0.15))
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	time.Sleep(time.Duration(s.seconds * float64(time.Second)))
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Error(err)
	}
}

// strangersCell is the cell in which somebody else comes to the flow's server first.
const strangersCell = "11.1 A"

// stranger asks bravo's iperf3 for a test from an address that is not the plan's.
func (d *desk) stranger(t *testing.T) {
	t.Helper()
	d.nodes["alpha"].Run(t, "ip", "addr", "add", "10.77.0.66/32", "dev", "wlan0")
	defer d.nodes["alpha"].Run(t, "ip", "addr", "del", "10.77.0.66/32", "dev", "wlan0")
	out, err := d.nodes["alpha"].Command(t.Context(), "timeout", "1", "iperf3", "-c", "10.77.0.2", "-B", "10.77.0.66",
		"-p", "5000", "-t", "9").CombinedOutput()
	if err == nil {
		t.Errorf("a stranger got his test:\n%s", out)
	}
}

// face is the unprivileged half of a node's agent.
func (d *desk) face(t *testing.T, node string) int {
	t.Helper()
	for _, pid := range testnet.Pids(d.nodes[node].Name) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), "\x00face\x00") {
			return pid
		}
	}
	t.Fatalf("there is no face on %s", node)
	return 0
}

func cellOf(trial wire.Trial) string { return trial.Factors["speed"] + " " + trial.Factors["section"] }

// What a receiver had at the window's close nobody knows when its agent stood
// still then, whatever older samples say: the attempt fails for it, tells no
// throughput, and is repeated. So it is where the sender's stood still.
func TestAnAgentThatStandsStillAtTheCloseFailsTheAttempt(t *testing.T) {
	d := newDesk(t, "")
	file := stationary(t, "stalls", "[5.6, 8.3, 11.1]")
	c := d.start(t, file)
	c.steps = func(step string, k wire.TrialKey) {
		if cellOf(c.trials[k.Trial]) == strangersCell && step == "armed" {
			d.stranger(t)
		}
		if s, hit := stalls[cellOf(c.trials[k.Trial])]; hit && step == "measuring" && k.Attempt == 1 {
			s.over(t, d)
		}
	}
	k := c.finish(t, 10*time.Minute)
	for _, at := range k.attempts {
		if at.Verdict == nil {
			continue
		}
		trial := c.trials[at.Trial]
		s, hit := stalls[cellOf(trial)]
		hit = hit && at.Attempt == 1
		mb, told := k.metric(t, at.TrialKey, "transferred_mb")
		lateMs, _ := k.metric(t, at.TrialKey, "edge_late_max_ms")
		t.Logf("trial %d attempt %d, %s, stalled %v: %s %q; %.2f MB (told: %v), at most %.1f ms late", at.Trial,
			at.Attempt, cellOf(trial), hit, at.Verdict.Outcome, at.Verdict.Reason, mb, told, lateMs)
		if hit && (at.Verdict.Outcome != "failed" || !strings.HasPrefix(at.Verdict.Reason.String(), "edge: "+s.node)) {
			t.Errorf("trial %d: %s's agent stood still for %g s at the close: %s %q", at.Trial, s.node, s.seconds,
				at.Verdict.Outcome, at.Verdict.Reason)
		}
		if hit && told && trial.Receiver == s.node {
			t.Errorf("trial %d: %g MB are reported of a receiver that stood still at the close", at.Trial, mb)
		}
		if cellOf(trial) == strangersCell {
			refused := uint64(0)
			for _, r := range k.records(t, at.TrialKey) {
				if e, is := r.Body.(*wire.Edge); is && r.Node == "bravo" && e.Refused != nil {
					refused = *e.Refused
				}
			}
			t.Logf("trial %d: %d packets of the stranger were refused", at.Trial, refused)
			if refused == 0 {
				t.Errorf("trial %d: nothing of the stranger was refused", at.Trial)
			}
		}
		if !hit && !late(at) && (!told || mb < 1) {
			t.Errorf("trial %d attempt %d, in which nothing was wrong: %g MB (told: %v)", at.Trial, at.Attempt, mb,
				told)
		}
	}
	d.stopAgents(t)
	d.restored(t)
}

// The cable is away when a trial ends, so that its connections are not closed
// in order. None of them is heard of again once the next attempt is armed.
func TestATrialsConnectionsEndWithIt(t *testing.T) {
	d := newDesk(t, "")
	file := stationary(t, "silence", "[5.6, 8.3]")
	heard := d.listen(t, "bravo")
	c := d.start(t, file)
	c.steps = func(step string, k wire.TrialKey) {
		switch step {
		case "measuring":
			inWindow(edgesWindow / 2)
			d.cable(t, false)
		case "kept":
			d.cable(t, true)
		}
	}
	k := c.finish(t, 10*time.Minute)
	packets := heard(t)
	if len(packets) < 1000 {
		t.Fatalf("%d packets were heard: this test shows nothing", len(packets))
	}
	for i, at := range k.attempts {
		destroyed := 0
		for _, r := range k.records(t, at.TrialKey) {
			if e, is := r.Body.(*wire.Edge); is && e.Edge == "end" {
				destroyed += e.Sockets
				if e.Error != "" || e.Refused == nil {
					t.Errorf("trial %d on %s: %+v", at.Trial, r.Node, e)
				}
			}
		}
		t.Logf("trial %d attempt %d: %d sockets destroyed", at.Trial, at.Attempt, destroyed)
		if destroyed == 0 && !late(at) {
			t.Errorf("trial %d left no socket: this test shows nothing", at.Trial)
		}
		if i == 0 {
			continue
		}
		armed, next := k.armedNs(t, at.TrialKey), int64(math.MaxInt64)
		if i+1 < len(k.attempts) {
			next = k.armedNs(t, k.attempts[i+1].TrialKey)
		}
		before := map[string]bool{}
		for _, p := range packets {
			if p.bootNs > next {
				break
			}
			if p.bootNs < armed {
				before[p.connection] = true
			} else if before[p.connection] {
				t.Errorf("trial %d attempt %d: %.2f s after it was armed there is a packet of a former attempt: %s",
					at.Trial, at.Attempt, float64(p.bootNs-armed)/1e9, p.line)
				break
			}
		}
	}
	d.stopAgents(t)
	d.restored(t)
}

// armedNs is when the first node was armed for an attempt; the nodes of a desk
// have one boot clock.
func (k kept) armedNs(t *testing.T, key wire.TrialKey) int64 {
	t.Helper()
	for _, r := range k.records(t, key) {
		if s, is := r.Body.(*wire.TrialState); is && s.State == "armed" {
			return r.TBootNs
		}
	}
	t.Fatalf("trial %d attempt %d was never armed", key.Trial, key.Attempt)
	return 0
}

// overheard is a packet of TCP, and the connection that it belongs to.
type overheard struct {
	bootNs     int64
	connection string // its two ends, that with port 5000 last
	line       string // as tcpdump words it
}

// listen has tcpdump write down what passes a node's interface under test.
func (d *desk) listen(t *testing.T, node string) (heard func(*testing.T) []overheard) {
	t.Helper()
	path := filepath.Join(d.dir, node+".heard")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	// The interface comes and goes with the cable; tcpdump stays on it.
	s := exec.Command("ip", "netns", "exec", d.nodes[node].Name, "sh", "-c",
		"while :; do tcpdump -l -nn -tt -s 96 -i wlan0 tcp port 5000 2>/dev/null; sleep 0.02; done")
	s.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.Stdout = out
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() { _ = syscall.Kill(-s.Process.Pid, syscall.SIGTERM); _ = s.Wait() }
	t.Cleanup(end)
	return func(t *testing.T) []overheard {
		t.Helper()
		end()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return overhear(t, string(text))
	}
}

var dumped = regexp.MustCompile(`(?m)^(\d+)\.(\d{6}) IP (\S+) > (\S+):.*$`)

func overhear(t *testing.T, text string) []overheard {
	t.Helper()
	ahead := time.Now().UnixNano() - testnet.BootNs()
	var out []overheard
	for _, m := range dumped.FindAllStringSubmatch(text, -1) {
		s, err1 := strconv.ParseInt(m[1], 10, 64)
		us, err2 := strconv.ParseInt(m[2], 10, 64)
		if err1 != nil || err2 != nil {
			t.Fatalf("tcpdump wrote %q", m[0])
		}
		ends := [2]string{m[3], m[4]}
		if strings.HasSuffix(ends[0], ".5000") {
			ends[0], ends[1] = ends[1], ends[0]
		}
		out = append(out, overheard{s*1e9 + us*1e3 - ahead, ends[0] + " " + ends[1], m[0]})
	}
	return out
}
