package change

import (
	"net/netip"
	"strings"
	"testing"
)

//attack:face programs of BPF that are not the trial's own | a list of programs, each with its settings
func TestPolicyOfPrograms(t *testing.T) {
	p := Policy{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16")}}
	for name, c := range map[string]struct {
		change  Change
		refusal string // part of the reason; empty: allowed
	}{
		"a variant":             {BPFCongestion{Program: "tahoe"}, ""},
		"no variant":            {BPFCongestion{Program: "compound"}, "not a variant"},
		"a path":                {BPFCongestion{Program: "../../etc/passwd"}, "not a variant"},
		"reference on the road": {BPFCongestion{Program: "reference"}, "emulated radio"},
		"a timer":               {HeldRTO{Peers: netip.MustParsePrefix("10.77.0.0/24")}, ""},
		"a timer for all":       {HeldRTO{Peers: netip.MustParsePrefix("0.0.0.0/0")}, "outside the allowed"},
		"a timer for nobody":    {HeldRTO{}, "not an IPv4"},
		"a window":              {WindowClamp{Peers: netip.MustParsePrefix("10.77.0.0/24"), Segments: 8}, ""},
		"no window":             {WindowClamp{Peers: netip.MustParsePrefix("10.77.0.0/24")}, "outside 1 to"},
		"a window for all": {WindowClamp{Peers: netip.MustParsePrefix("0.0.0.0/0"), Segments: 8},
			"outside the allowed"},
	} {
		refused := p.Check(c.change)
		if (refused != nil) != (c.refusal != "") || refused != nil && !strings.Contains(refused.Reason, c.refusal) {
			t.Errorf("%s: %v, want %q", name, refused, c.refusal)
		}
	}
	p.Feedback = "/run/radio.sock"
	if refused := p.Check(BPFCongestion{Program: "reference"}); refused != nil {
		t.Errorf("the reference TCP is refused in a rehearsal: %v", refused)
	}
}

func TestPortsOf(t *testing.T) {
	if from, to, err := portsOf("10.77.0.1:20001>10.77.0.2:5000/tcp"); err != nil || from != 20001 || to != 5000 {
		t.Errorf("ports %d and %d, %v", from, to, err)
	}
	for _, flow := range []string{"", "10.77.0.1:1>10.77.0.2:2/udp", "10.77.0.1>10.77.0.2/tcp", "10.77.0.1:1/tcp",
		"x:1>y:2/tcp"} {
		if _, _, err := portsOf(flow); err == nil {
			t.Errorf("%q is read as a flow of TCP", flow)
		}
	}
}
