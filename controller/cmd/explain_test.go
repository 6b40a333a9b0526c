package cmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func answered(t *testing.T, args ...string) (string, error) {
	t.Helper()
	c := Root()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(args)
	err := c.Execute()
	return out.String(), err
}

func TestExplain(t *testing.T) {
	for args, want := range map[string][]string{
		"explain":                   {"campaign ", "agent.yaml ", "exit status "},
		"explain hold_s":            {"campaign trial.gate.hold_s\n", "in s"},
		"explain dead_man_s":        {"agent.yaml dead_man_s\n", "10 to 86400", "default 1800"},
		"explain trial.gate":        {"In it:\n", "trial.gate.hold_s "},
		"explain campaign":          {"campaign acceptance\n", "campaign trial\n", "required"},
		"explain exit status 75":    {"can be resumed"},
		"explain transferred_mb":    {"metric transferred_mb", "unique payload bytes"},
		"explain gps.horiz_err_m":   {"record gps.horiz_err_m", "in m"},
		"explain trial.tcp.variant": {"reno", "cubic"},
	} {
		out, err := answered(t, strings.Fields(args)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s does not say %q:\n%s", args, w, out)
			}
		}
	}
	_, err := answered(t, "explain", "holds_s")
	if err == nil || !strings.Contains(err.Error(), `did you mean "hold_s"?`) {
		t.Errorf("a slip is answered by: %v", err)
	}
	out, err := answered(t, "explain", "hold_s", "--json")
	var keys []map[string]any
	if err != nil || json.Unmarshal([]byte(out), &keys) != nil || len(keys) != 1 ||
		keys[0]["key"] != "trial.gate.hold_s" {
		t.Errorf("%v: %s", err, out)
	}
}

// The help tells every exit status.
func TestTheHelpTellsTheExitStatuses(t *testing.T) {
	out, err := answered(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []string{"  0    it was done\n", "  2    the command line is wrong",
		"  75   a rehearsal in virtual", "  130  it was interrupted\n"} {
		if !strings.Contains(out, w) {
			t.Errorf("the help does not say %q:\n%s", w, out)
		}
	}
}
