//go:build e2e

package model

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tools is TLC, the model checker of TLA+, as scripts/setup provides it.
const tools = "../../.tools/tlc/tla2tools.jar"

// bounds are those of the model's constants: they say how much goes wrong.
type bounds struct {
	trialOf                                     string
	crashes, exits, cuts, exchanges, challenges int
	// walks is the number of random behaviours that are tried, where all are too many; 0 tries all.
	walks int
}

var (
	// oneAttempt has everything go wrong with one attempt.
	oneAttempt = bounds{"OneAttempt", 1, 1, 0, 2, 1, 0}
	// once and gone are small: what happens in the end takes long to check.
	once = bounds{"OneAttempt", 1, 0, 0, 1, 1, 0}
	gone = bounds{"OneAttempt", 0, 1, 0, 1, 1, 0}
	// walks has two attempts at a trial, and further two trials, with everything going wrong at
	// random: all behaviours of two attempts are too many.
	walks   = bounds{"OneTrialTwice", 1, 1, 1, 3, 2, 50_000}
	further = bounds{"TwoTrials", 1, 1, 1, 3, 2, 50_000}
)

const invariants = `OneAttemptAtATime ArmedByRight WindowsOpenByGo OpenedOnce ChallengesCountOnce AcceptedOnce
  AcceptedWasMeasured DecidedBeforeTold TrialIsUndone UndoIsOnDisk`

const steps = "StepsAreOfTheTable OnlyRises MeasuredIsJudged EndedStaysEnded"

const inTheEnd = "Restored AttemptsEnd"

// check has TLC try every behaviour of a model within bounds. It returns the property
// that is violated, "" for none, and what TLC says.
func check(t *testing.T, spec string, b bounds, properties string) (violated, told string) {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf("SPECIFICATION Spec\nCONSTANTS\n  TrialOf <- %s\n  Crashes = %d\n  Exits = %d\n  Cuts = %d\n"+
		"  Exchanges = %d\n  Challenges = %d\nINVARIANTS\n  %s\nPROPERTIES\n  %s\n", b.trialOf, b.crashes, b.exits,
		b.cuts, b.exchanges, b.challenges, invariants, properties)
	for name, text := range map[string]string{"Protocol.tla": spec, "Protocol.cfg": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	jar, err := filepath.Abs(tools)
	if err != nil {
		t.Fatal(err)
	}
	how, done := []string{"-workers", "2"}, "Model checking completed. No error has been found."
	if b.walks > 0 {
		how, done = []string{"-simulate", fmt.Sprintf("num=%d", b.walks), "-depth", "300", "-seed", "1"}, "Finished in"
	}
	cmd := exec.CommandContext(t.Context(), "java", append(append([]string{"-XX:+UseParallelGC",
		"-Djava.io.tmpdir=" + dir, "-cp", jar, "tlc2.TLC", "-deadlock", "-metadir", filepath.Join(dir, "states")},
		how...), "Protocol.tla")...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	told = string(out)
	if m := violation.FindStringSubmatch(told); m != nil {
		return m[1] + m[2], told
	}
	if err != nil || !strings.Contains(told, done) {
		t.Fatalf("TLC did not come to its end: %v\n%s", err, told)
	}
	return "", told
}

var violation = regexp.MustCompile(
	`Error: (?:Invariant|Action property) (\w+) is violated|Error: (Temporal properties were violated)`)

// never is what TLC says of a property about what happens in the end; which it was, it does not.
const never = "Temporal properties were violated"

func needTLC(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(tools); errors.Is(err, os.ErrNotExist) {
		t.Skip("TLC is not there: scripts/setup all provides it")
	}
}

// Whatever is lost, doubled, late or heard and sent again, and whoever ends at any moment:
// the promises of the protocol hold, within the bounds.
func TestE2ETheProtocolKeepsItsPromises(t *testing.T) {
	needTLC(t)
	for _, c := range []struct {
		bounds
		properties string
	}{
		{oneAttempt, steps},
		{once, inTheEnd},
		{gone, inTheEnd},
		{walks, steps},
		{further, steps},
	} {
		t.Run(c.trialOf, func(t *testing.T) {
			violated, told := check(t, protocol, c.bounds, c.properties)
			if violated != "" {
				t.Fatalf("%s is violated:\n%s", violated, told)
			}
			t.Log(states.FindString(told))
		})
	}
}

var states = regexp.MustCompile(`\d+ states generated, \d+ distinct states found|\d+ states checked\.\s+Finished`)

// mutant is a deviation of the model, and the property that it violates.
type mutant struct {
	name     string
	old, new string
	bounds
	violates string
}

// mutants has none that breaks AcceptedOnce: it would take two attempts that are both
// measured, which neither 50,000 random behaviours nor half an hour of all with less that
// goes wrong come to. Schedules of the engine (controller/run/engine) do, and find theirs.
var mutants = []mutant{
	{"arm: a call without a lease counts", "  /\\ lease[n]\n  /\\ Admit(", "  /\\ Admit(", walks, "ArmedByRight"},
	{"arm: at two attempts at a time", "Admit(n, k, by) ==\n  /\\ Idle(n)\n",
		"Admit(n, k, by) ==\n  /\\ at[n][k] = \"none\"\n", walks,
		"OneAttemptAtATime"},
	{"arm: again after its end", "  /\\ verdict[n][k] = \"none\"\n", "", oneAttempt, "StepsAreOfTheTable"},
	{"arm: the undo comes after the change", "![n] = {\"run\", \"trial\"}", "![n] = @", oneAttempt, "UndoIsOnDisk"},
	{"alone: while somebody has the lease", "  /\\ ~lease[n]\n  /\\ Left", "  /\\ Left", walks, "ArmedByRight"},
	{"GO: whoever it is for", "  /\\ g.to = n\n", "", oneAttempt, "WindowsOpenByGo"},
	{"GO: to arm is to open", " /\\ g.kind = \"go\" THEN Obey", " THEN Obey", oneAttempt, "WindowsOpenByGo"},
	{"GO: nobody is asked whether it is new", "  /\\ IsNew(g)\n  /\\ Admit", "  /\\ Admit", oneAttempt, "ArmedByRight"},
	{"GO: a challenge is good for ever",
		"Spend(g) ==\n  /\\ challenge' = 0", "Spend(g) ==\n  /\\ challenge' = challenge",
		walks, "ChallengesCountOnce"},
	{"GO: of a run that has ended", "IF life[n] = \"ended\" THEN AnswerOnly(g, FALSE)\n     ELSE IF at", "IF at",
		oneAttempt, "EndedStaysEnded"},
	{"GO: of a window that is over", "IF at[n][g.key] \\in {\"armed\", \"running\"} /\\ g.kind",
		"IF at[n][g.key] \\in {\"armed\", \"running\", \"restoring\"} /\\ g.kind", oneAttempt, "StepsAreOfTheTable"},
	{"answer: to another exchange", "  /\\ m.of = exchange.kind\n  /\\ m.x = exchange.x\n", "", oneAttempt,
		"WindowsOpenByGo"},
	{"window: before anybody answered", "exchange.kind = \"go\" /\\ exchange.acked\n", "exchange.kind = \"go\"\n",
		oneAttempt, "WindowsOpenByGo"},
	{"keep: the trial's changes stay", "  /\\ changes' = [changes EXCEPT ![n] = @ \\ {\"trial\"}]\n  /\\ Prov",
		"  /\\ UNCHANGED changes\n  /\\ Prov", oneAttempt, "TrialIsUndone"},
	{"keep: in place of the controller's word", "IF k \\in final[n] THEN verdict ELSE [verdict", "[verdict", walks,
		"DecidedBeforeTold"},
	{"start: what was under way is forgotten", "IF @[k] \\in Busy THEN \"kept\" ELSE @[k]]]\n  /\\ verdict'",
		"IF @[k] \\in Busy THEN \"none\" ELSE @[k]]]\n  /\\ verdict'", oneAttempt, "StepsAreOfTheTable"},
	{"decide: whatever was measured", "o = \"accepted\" => Measured(key)", "TRUE", oneAttempt, "AcceptedWasMeasured"},
	{"decide: what was called off counts for nothing", "calledOff /\\ ~Measured(key)", "calledOff", oneAttempt,
		"MeasuredIsJudged"},
	{"decide: told and not written", "  /\\ decided' = [decided EXCEPT ![key] = o]\n", "  /\\ UNCHANGED decided\n",
		oneAttempt, "DecidedBeforeTold"},
	{"resume: the journal is not read",
		"  /\\ controller' = \"on\"\n  /\\ UNCHANGED <<node, air, calls, key, calledOff, decided,",
		"  /\\ controller' = \"on\"\n  /\\ decided' = [k \\in Keys |-> \"none\"]\n" +
			"  /\\ UNCHANGED <<node, air, calls, key, calledOff,", oneAttempt, "OnlyRises"},
	{"in the end: no dead man's timer", " /\\ WF_vars(DeadMan(n))", "", gone, never},
	{"in the end: who waits for GO waits for ever", " /\\ WF_vars(GiveUp(n, k))", "", gone, never},
	{"in the end: a lease without an end", " /\\ WF_vars(LeaseEnds(n))", "", gone, never},
}

// Each deviation from the protocol is found, by the promise that it breaks.
func TestE2EDeviationsFromTheProtocolAreFound(t *testing.T) {
	needTLC(t)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			if n := strings.Count(protocol, m.old); n != 1 {
				t.Fatalf("the model has what is to be changed %d times", n)
			}
			properties := steps
			if m.violates == never {
				properties = inTheEnd
			}
			violated, told := check(t, strings.Replace(protocol, m.old, m.new, 1), m.bounds, properties)
			if violated != m.violates {
				t.Errorf("%q is violated, and %q should be:\n%s", violated, m.violates, told)
			}
		})
	}
}
