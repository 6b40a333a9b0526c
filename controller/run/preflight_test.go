package run

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestAWallClockThatIsOffIsRefused(t *testing.T) {
	for _, off := range []time.Duration{0, wallLimit, -wallLimit} {
		if p := wallNeeds(wire.Clock{WallOffsetNs: off.Nanoseconds()}); p != nil {
			t.Errorf("%s off: %v", off, p)
		}
	}
	for off, want := range map[time.Duration]string{
		wallLimit + time.Second:       "its wall clock is 1m1s off the controller's, the limit is 1m0s",
		-wallLimit - time.Second:      "its wall clock is -1m1s off the controller's, the limit is 1m0s",
		-56 * 365 * 24 * time.Hour:    "its wall clock is -490560h0m0s off the controller's, the limit is 1m0s", // a clock that begins in 1970
		3*time.Hour + time.Nanosecond: "its wall clock is 3h0m0s off the controller's, the limit is 1m0s",
	} {
		p := wallNeeds(wire.Clock{WallOffsetNs: off.Nanoseconds()})
		if len(p) != 1 || p[0].Need != "clock" || p[0].Found != want || !strings.Contains(p[0].Cure, "set the clock") {
			t.Errorf("%s off: %v", off, p)
		}
	}
}

func TestWhatWaitingCannotHelpIsRefusedAtOnce(t *testing.T) {
	unmet := func(needs ...string) (out []Unmet) {
		for _, n := range needs {
			out = append(out, Unmet{"car", wire.Problem{Need: n}})
		}
		return out
	}
	for _, needs := range [][]string{{"gps"}, {"reach", "radio"}, {"host", "gps"}} {
		if !mayPass(unmet(needs...)) {
			t.Errorf("%v is not waited for", needs)
		}
	}
	for _, needs := range [][]string{{"key"}, {"iperf3"}, {"disk"}, {"clock"}, {"tcp"}, {"gps", "key"}} {
		if mayPass(unmet(needs...)) {
			t.Errorf("%v is waited for", needs)
		}
	}
}

// A stranger is no node that is out of reach, and a cure is given once.
func TestWhyANodeDidNotAnswer(t *testing.T) {
	stranger := &fleet.NodeError{Node: "car", Address: "a:1", Doing: "ask status", Err: errors.New("it has another key"), Cure: "see to it", Stranger: true}
	if p := unreached(fmt.Errorf("once more: %w", stranger)); p != (wire.Problem{Need: "key", Found: "ask status at a:1: it has another key", Cure: "see to it"}) {
		t.Errorf("a stranger: %+v", p)
	}
	silent := &fleet.NodeError{Node: "car", Address: "a:1", Doing: "ask status", Err: errors.New("nothing")}
	if p := unreached(silent); p.Need != "reach" || !strings.Contains(p.Cure, "start the agent") {
		t.Errorf("a silent one: %+v", p)
	}
	all := (&UnmetError{[]Unmet{{"car", wire.Problem{Need: "gps", Found: "no fix", Cure: "wait"}}, {"roadside", unreached(silent)}}}).Error()
	want := "the fleet cannot run this plan:\n  node car: gps: no fix; wait\n  node roadside: reach: ask status at a:1: nothing; start the agent, check the control link and the address in the fleet file"
	if all != want {
		t.Errorf("told as\n%s\nwant\n%s", all, want)
	}
}
