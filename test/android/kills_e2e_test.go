//go:build e2e

package android

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestE2ESoakKillsOfTwoPhones drives velocity campaigns by two phones, one with Termux's service and Magisk, the
// other with the module and KernelSU. All the while something is killed at a random moment: an agent's process, what
// started it, a whole phone, or the controller. Every trial is accepted nevertheless, and nothing is left changed.
func TestE2ESoakKillsOfTwoPhones(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "long; the tests of this package that kill something at one moment are short")
	k := newKilled(t)
	k.kill(t, soakKills)
	_ = k.gps.Stop(t, syscall.SIGTERM)
	k.alpha.stopPhone(t)
	k.bravo.off(t)
	for f, was := range k.was {
		f.asHome(t, was)
	}
}

// killed are two rooted phones and the controller, of which something is killed.
type killed struct {
	*kills
	alpha, bravo *field
	was          map[*field]androidWiFi
	gps          *testnet.Running
}

// soakKills is how much a soak kills.
const soakKills = 100

// kills are campaigns, one after the other, in which things are killed.
type kills struct {
	desk    *field // whose controller drives them
	run     *testnet.Running
	trials  int // of a campaign
	runs    int
	victims []victim
}

// kill kills one after the other at random moments: each in turn, in a random order. Then it waits for the last
// campaign's end.
func (k *kills) kill(t *testing.T, times int) {
	t.Helper()
	const seed = 20261128
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var left []int
	for n := range times {
		k.goOn(t)
		time.Sleep(time.Duration(r.IntN(15_000)) * time.Millisecond)
		if len(left) == 0 {
			left = r.Perm(len(k.victims))
		}
		what := k.victims[left[0]]
		left = left[1:]
		t.Logf("kill %d, in run %d: %s", n+1, k.runs, what.name)
		what.kill(t)
	}
	for !k.over(t) {
	}
}

type victim struct {
	name string
	kill func(*testing.T) // it returns when what was killed is back
}

func newKilled(t *testing.T) *killed {
	t.Helper()
	k := &killed{}
	k.alpha, k.bravo = twoPhones(t, soakCampaign(t))
	k.kills = &kills{desk: k.alpha, trials: soakTrials}
	k.was = map[*field]androidWiFi{k.alpha: k.alpha.phone.wifi(t), k.bravo: k.bravo.phone.wifi(t)}
	k.alpha.gpsd = "127.0.0.1:2947"
	k.gps = testnet.Start(t, k.alpha.phone.ns.Command(t.Context(), programs+"/fieldmesh-agent", "simulate-gps",
		"--speeds-mps", "2.8,5.6"))
	k.gps.Says(t, "simulated GPS at")
	k.alpha.startPhone(t)
	k.bravo.installModule(t)
	k.bravo.namePhone(t)
	k.bravo.boot(t, kernelSU)
	k.bravo.logs(t, "node is ready")
	one := func(f *field, words string) func(*testing.T) {
		return func(t *testing.T) { f.killOne(t, words) }
	}
	k.victims = []victim{
		{"alpha's client of su", one(k.alpha, "su -c")},
		{"alpha's shell of the service", one(k.alpha, "sh ./run")},
		{"alpha's agent", one(k.alpha, "fieldmesh-agent up")},
		{"alpha's host process", one(k.alpha, "fieldmesh-agent host")},
		{"alpha's face", one(k.alpha, "fieldmesh-agent face")},
		{"bravo's agent", one(k.bravo, "fieldmesh-agent up")},
		{"bravo's host process", one(k.bravo, "fieldmesh-agent host")},
		{"bravo's face", one(k.bravo, "fieldmesh-agent face")},
		{"runit's supervisor on alpha", k.supervisor},
		{"the module's shell on bravo", k.shell},
		{"alpha, whole", k.alphaWhole},
		{"bravo, whole", k.bravoWhole},
		{"the controller", k.controller},
	}
	return k
}

// soakTrials are those of soakCampaign: two speeds, two sections, two repetitions.
const soakTrials = 8

// soakCampaign is the velocity campaign of two phones with two speeds and brief trials, with changes.
func soakCampaign(t *testing.T, changes ...string) string {
	t.Helper()
	path := testnet.Campaign(t, "../../campaigns/velocity-phones.yaml", "soak", append(changes,
		"levels: [2.8, 5.6, 8.3, 11.1, 13.9, 16.7]", "levels: [2.8, 5.6]", "duration_s: 10", "duration_s: 3",
		"attempts_max: 3", "attempts_max: 20")...)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goOn has a run under way.
func (k *kills) goOn(t *testing.T) {
	t.Helper()
	if k.run != nil && !k.over(t) {
		return
	}
	k.runs++
	k.run = k.desk.begin(t, k.name())
}

func (k *kills) name() string {
	return "run-" + string(rune('a'+k.runs%26)) + string(rune('a'+k.runs/26))
}

var givenUp = regexp.MustCompile(`given up after 20 interruptions, which say nothing of the trial: trials (\d+)`)

// over reports whether the run has come to its end, at which all of its trials are accepted.
func (k *kills) over(t *testing.T) bool {
	t.Helper()
	select {
	case <-k.run.Ended():
	case <-time.After(100 * time.Millisecond):
		return false
	}
	err, said := k.run.Wait(t, time.Minute), k.run.Said()
	switch {
	case err == nil && strings.Contains(said, fmt.Sprintf("%d of %[1]d trials accepted", k.trials)):
		return true
	case givenUp.MatchString(said): // so many kills may meet one trial
		k.resume(t, "--retry", givenUp.FindStringSubmatch(said)[1])
		return false
	}
	t.Fatalf("run %s ended with %v:\n%s", k.name(), err, said)
	return true
}

// killOne kills one process of the phone's agent, or what waits for it, and waits until the agent is whole again.
func (f *field) killOne(t *testing.T, words string) {
	t.Helper()
	found := f.processes(words)
	if len(found) == 0 {
		t.Fatalf("%s has no process %q", f.name, words)
	}
	pid := found[0]
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testnet.Await(t, 2*time.Minute, "the agent of "+f.name+" is whole again", func() bool {
		now := f.agents()
		return len(now) == len(ofAgent) && !slices.Contains(now, pid)
	})
}

func (k *killed) runit(t *testing.T) {
	t.Helper()
	k.alpha.service = testnet.Start(t, k.alpha.phone.command(termuxs, termux+"/bin/runsv",
		termux+"/var/service/fieldmesh"))
	k.alpha.service.Says(t, "node is ready")
}

func (k *killed) supervisor(t *testing.T) {
	if err := k.alpha.service.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testnet.Await(t, 2*time.Minute, "the end of alpha's agent", func() bool { return len(k.alpha.agents()) == 0 })
	k.runit(t)
}

func (k *killed) shell(t *testing.T) {
	if err := syscall.Kill(slices.Min(k.bravo.processes("sh "+module)), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	k.bravo.ended(t, "bravo's agent, whose shell was killed")
	k.bravo.boot(t, kernelSU)
	k.bravo.logs(t, "node is ready")
}

func (k *killed) alphaWhole(t *testing.T) {
	k.alpha.killAll(t, "runsv ", "su -c", "sh ./run", ofAgent[0], ofAgent[1], ofAgent[2])
	k.runit(t)
}

func (k *killed) bravoWhole(t *testing.T) {
	k.bravo.killAll(t, "sh "+module, ofAgent[0], ofAgent[1], ofAgent[2])
	k.bravo.boot(t, kernelSU)
	k.bravo.logs(t, "node is ready")
}

func (k *kills) controller(t *testing.T) {
	_ = k.run.Stop(t, syscall.SIGKILL)
	k.resume(t)
}

func (k *kills) resume(t *testing.T, more ...string) {
	t.Helper()
	k.run = testnet.Start(t, k.desk.controller(append([]string{"run", "--resume", k.desk.path("runs/" + k.name()),
		"--fleet", k.desk.path("fleet/fleet.yaml"), "--patience", "30s"}, more...)...))
}
