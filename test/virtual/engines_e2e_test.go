//go:build e2e

package virtual

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// shards is how many a campaign of as many trials is cut into.
func shards() int {
	if os.Getenv("FIELDMESH_SOAK") != "" {
		return 100
	}
	return 6
}

const guide = "../../field-guides/long-campaigns.md"

// fromTheGuide returns the indented block below the line that begins with these
// words, with this desk's campaign, program, kernel and number of shards.
func (d *desk) fromTheGuide(t *testing.T, words string) string {
	t.Helper()
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(page), "\n"+words)
	if !found {
		t.Fatalf("%s has no line that begins with %q", guide, words)
	}
	var block []string
	for line := range strings.Lines(after[strings.Index(after, "\n    ")+1:]) {
		code, indented := strings.CutPrefix(line, "    ")
		if !indented {
			break
		}
		block = append(block, code)
	}
	text := strings.Join(block, "")
	for was, is := range map[string]string{
		`\bfieldmesh rehearse\b`:             filepath.Join(programs, "fieldmesh") + " rehearse --kernel " + d.path("linux"),
		`campaigns/[a-z-]+\.yaml`:            "velocity.yaml",
		`(1-|/|seq )90\b`:                    fmt.Sprintf("${1}%d", shards()),
		`--jobs 4\b`:                         "--jobs 2",
		`(?m)^#SBATCH --mem=.*\n`:            "", // by default Slurm gives a job all of the machine's
		`(?m)^#SBATCH --job-name=chain\n`:    "$0#SBATCH --open-mode=append\n",
		`(?m)^cd "\$SLURM_SUBMIT_DIR".*exit`: "$0\nexport PATH=/usr/bin:/bin:/usr/sbin",
	} {
		text = regexp.MustCompile(was).ReplaceAllString(text, is)
	}
	return text
}

// newShards is a desk whose campaign has a trial a shard.
func newShards(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t, "[16.7]")
	d.write(t, "velocity.yaml", bytes.ReplaceAll(bytes.ReplaceAll(campaign(t, "[16.7]"),
		[]byte("repetitions: 1"), fmt.Appendf(nil, "repetitions: %d", shards()/2)),
		[]byte("duration_s: 10"), []byte("duration_s: 2")))
	if err := os.Chmod(d.dir, 0o777); err != nil { // an engine writes its log where a job is submitted
		t.Fatal(err)
	}
	return d
}

// kill ends a third of the shards once each, in one of three ways, some time after
// each has begun, until stop is closed. It returns what was done, by shard.
func (d *desk) kill(t *testing.T, stop <-chan struct{}) <-chan map[int]string {
	t.Helper()
	dice := rand.New(rand.NewPCG(testnet.Seed(t, rand.Uint64(), "the kills"), 0))
	after := map[int]time.Duration{}
	for _, n := range dice.Perm(shards())[:shards()/3] {
		after[n+1] = time.Duration(dice.Int64N(int64(1500 * time.Millisecond))) // a shard takes some 2 s
	}
	done := make(chan map[int]string, 1)
	go func() {
		killed, began := map[int]string{}, map[int]time.Time{}
		defer func() { done <- killed }()
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			for launcher, shard := range d.launchers() {
				wait, chosen := after[shard]
				if !chosen || killed[shard] != "" {
					continue
				}
				if began[shard].IsZero() {
					began[shard] = time.Now()
				}
				if time.Since(began[shard]) >= wait {
					killed[shard] = d.killOne(launcher, len(killed)%3) + fmt.Sprintf(" after %.1f s", wait.Seconds())
				}
			}
		}
	}()
	return done
}

// killOne ends a launcher, or the kernel that it started, and names the way.
func (d *desk) killOne(launcher, way int) string {
	switch way {
	case 0:
		_ = syscall.Kill(launcher, syscall.SIGKILL) // it may just have ended, here and below
		return "launcher killed"
	case 1:
		_ = syscall.Kill(launcher, syscall.SIGTERM)
		return "launcher terminated"
	}
	for pid, args := range commandLines() {
		if args[0] == d.path("linux") && parentOf(pid) == launcher {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			return "kernel killed"
		}
	}
	_ = syscall.Kill(launcher, syscall.SIGKILL)
	return "launcher killed, which had no kernel yet"
}

// launchers are the processes of this desk that drive a shard, and its number.
func (d *desk) launchers() map[int]int {
	out := map[int]int{}
	for pid, args := range commandLines() {
		if args[0] != filepath.Join(programs, "fieldmesh") {
			continue
		}
		for _, arg := range args {
			var shard, of int
			if n, _ := fmt.Sscanf(arg, "%d/%d", &shard, &of); n == 2 && of == shards() {
				out[pid] = shard
			}
		}
	}
	return out
}

func commandLines() map[int][]string {
	out := map[int][]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is well-formed
	for _, path := range paths {
		var pid int
		text, err := os.ReadFile(path)
		if _, bad := fmt.Sscanf(path, "/proc/%d/", &pid); err == nil && bad == nil && len(text) > 0 {
			out[pid] = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
		}
	}
	return out
}

// parentOf returns a process's parent, 0 when it has ended.
func parentOf(pid int) (parent int) {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	_, _ = fmt.Sscanf(after, "%1s %d", new(string), &parent)
	return parent
}

// merged puts the shards together, and finds every trial accepted once.
func (d *desk) merged(t *testing.T, killed map[int]string) {
	t.Helper()
	for shard, how := range killed {
		t.Logf("shard %d: %s", shard, how)
	}
	if len(killed) < shards()/3 {
		t.Errorf("%d of %d shards were killed", len(killed), shards()/3)
	}
	args := []string{"merge", "--runs", "runs"}
	for n := range shards() {
		args = append(args, fmt.Sprintf("chain-shard-%d-of-%d", n+1, shards()))
	}
	cmd := d.asNobody(append([]string{filepath.Join(programs, "fieldmesh")}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("merge: %v\n%s", err, out)
	}
	d.whole(t, "chain")
	accepted, want := map[int]int{}, map[int]int{}
	for _, v := range d.read(t, "chain").Decisions() {
		if v.Outcome == wire.Accepted {
			accepted[v.Trial]++
		}
	}
	for n := range shards() {
		want[n+1] = 1
	}
	if !maps.Equal(accepted, want) {
		t.Errorf("accepted so often, by trial: %v, want each of %d once", accepted, shards())
	}
}

// TestE2ESoakShardsOnParallel has GNU parallel drive the shards by the guide's
// command while a third of them is killed.
func TestE2ESoakShardsOnParallel(t *testing.T) {
	testnet.Need(t, "parallel")
	d := newShards(t)
	stop := make(chan struct{})
	killed := d.kill(t, stop)
	cmd := d.asNobody("sh", "-c", d.fromTheGuide(t, "GNU parallel,"))
	cmd.Env = append(os.Environ(), "HOME="+d.dir, "PARALLEL_HOME="+d.dir)
	out, err := cmd.CombinedOutput()
	close(stop)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	d.merged(t, <-killed)
}

// TestE2ESoakShardsOnSlurm has a Slurm of one machine drive them by the guide's
// script.
func TestE2ESoakShardsOnSlurm(t *testing.T) {
	testnet.Need(t, "slurmctld", "slurmd", "sbatch", "squeue")
	d := newShards(t)
	d.startSlurm(t)
	d.write(t, "chain.sh", []byte(d.fromTheGuide(t, "Slurm,")))
	stop := make(chan struct{})
	killed := d.kill(t, stop)
	if out, err := d.slurm("sbatch", fmt.Sprintf("--uid=%d", testnet.Nobody), fmt.Sprintf("--gid=%d", testnet.Nobody),
		"chain.sh").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for until := time.Now().Add(3 * time.Hour); ; time.Sleep(time.Second) {
		out, err := d.slurm("squeue", "--noheader").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(bytes.TrimSpace(out)) == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("jobs are left:\n%s", out)
		}
	}
	close(stop)
	d.merged(t, <-killed)
}

func (d *desk) slurm(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "SLURM_CONF="+d.path("slurm.conf"))
	return cmd
}

// startSlurm starts a controller and a node on this machine, on ports of their own.
func (d *desk) startSlurm(t *testing.T) {
	t.Helper()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	for _, dir := range []string{"state", "spool"} {
		if err := os.Mkdir(d.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.write(t, "slurm.conf", fmt.Appendf(nil, `ClusterName=test
SlurmctldHost=%[1]s(127.0.0.1)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
SlurmctldPort=%[2]d
SlurmdPort=%[3]d
StateSaveLocation=%[4]s/state
SlurmdSpoolDir=%[4]s/spool
SlurmctldPidFile=%[4]s/slurmctld.pid
SlurmdPidFile=%[4]s/slurmd.pid
NodeName=%[1]s NodeAddr=127.0.0.1 CPUs=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`, host, testnet.FreePort(t), testnet.FreePort(t), d.dir))
	for _, daemon := range []string{"slurmctld", "slurmd"} {
		running := testnet.Start(t, d.slurm(daemon, "-D"))
		t.Cleanup(func() {
			if err := running.Stop(t, syscall.SIGTERM); err != nil && !errors.As(err, new(*exec.ExitError)) {
				t.Error(err)
			}
		})
	}
	testnet.Await(t, time.Minute, "a node that is idle", func() bool {
		out, err := d.slurm("sinfo", "--noheader", "--format=%T").Output()
		return err == nil && strings.TrimSpace(string(out)) == "idle"
	})
}
