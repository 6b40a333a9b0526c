package plan

import (
	"strings"
	"testing"
)

// withTCP is a minimal campaign with another transport profile.
func withTCP(tcp string) []byte {
	file := string(designFile("{}", "{repetitions: 1, order: as_listed}"))
	return []byte(strings.Replace(file, "tcp: {variant: reno}", "tcp: "+tcp, 1))
}

func TestTransportProfile(t *testing.T) {
	c := parsed(t, withTCP("{variant: reno, classic: on, sack: off, delayed_ack: off, fixed_rto: on, rto_min_ms: "+
		"600, window_bytes: 65536}"))
	trial := c.trials[0]
	p := trial.TCP
	if p.Variant != "reno" || !p.Classic || p.SACK == nil || *p.SACK || p.DelayedACK == nil || *p.DelayedACK ||
		!p.FixedRTO || p.RTOMinMs == nil || *p.RTOMinMs != 600 {
		t.Errorf("the profile is read as %+v", p)
	}
	if w := trial.Traffic[0].WindowBytes; w == nil || *w != 65536 {
		t.Errorf("the flow's window is %v", w)
	}
	rto := parsed(t, designFile("{rto: {key: tcp.rto_min_ms, levels: [200, 1000]}}", "{repetitions: 1, order: "+
		"as_listed}"))
	if a, b := rto.trials[0].TCP.RTOMinMs, rto.trials[1].TCP.RTOMinMs; a == nil || b == nil || *a != 200 ||
		*b != 1000 || len(rto.Warnings) != 0 {
		t.Errorf("the least RTO as a factor is %v and %v, warned %v", a, b, rto.Warnings)
	}
	c = parsed(t, withTCP("{variant: newreno, sack: true, fixed_rto: false}"))
	if p := c.trials[0].TCP; p.Classic || p.SACK == nil || !*p.SACK || p.DelayedACK != nil || p.FixedRTO {
		t.Errorf("the profile is read as %+v", p)
	}
}

func TestTransportProfileAtFault(t *testing.T) {
	for tcp, want := range map[string]string{
		"{variant: compound}":                                 "compound",
		"{variant: reno, sack: maybe}":                        "on or off",
		"{variant: reno, delayed_ack: 2}":                     "on or off",
		"{variant: fack, sack: off}":                          "needs SACK",
		"{variant: sack, sack: false}":                        "needs SACK",
		"{variant: reference}":                                "for rehearsals only",
		"{variant: reno, window_bytes: 12}":                   "1024",
		"{variant: reno, fixed_rt: on}":                       `did you mean "fixed_rto"`,
		"{variant: reno, fixed_rto: on, rto_min_ms: 499}":     "from 500 ms on",
		"{variant: reference, rto_min_ms: 200}":               "from 1000 ms on",
		"{variant: reno, rto_max_ms: 999}":                    "whole number from 1000 up to 120000 ms",
		"{variant: reno, rto_min_ms: 2000, rto_max_ms: 1500}": "below the least, 2000 ms",
		"{variant: reno, fixed_rto: on, rto_max_ms: 60000}":   "the RTO is fixed",
		"{variant: reno, rto_min_ms: 9}":                      "whole number from 10 up to 60000 ms",
		"{variant: reno, rto_min_ms: 200.5}":                  "whole number",
		"{classic: on}":                                       "variant",
		"{variant: reno, window_bytes: 1000000000}":           "67108864",
	} {
		_, err := Parse("c.yaml", withTCP(tcp))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", tcp, err, want)
		}
	}
}

// A timer by which the kernel would give a client up within the window is warned of: the rest of the window would have
// no data, and a level with another timer would have it. Of a run's campaign it is too late to say so.
func TestATimerThatEndsClientsWithinTheWindow(t *testing.T) {
	for _, c := range []struct{ windowS, tcp, want string }{
		{"128", "{variant: reno, rto_max_ms: 1000}", ""},
		{"300", "{variant: reno, rto_max_ms: 1000}", "with tcp.rto_max_ms 1000 a client that finds no way gives up " +
			"after 128 s, and its trial lasts 300 s; from 2358 ms on it asks to the end"},
		{"300", "{variant: reno, rto_max_ms: 2358}", ""},
		{"3600", "{variant: reno, rto_max_ms: 60000}", ""},
		{"255", "{variant: reno, fixed_rto: on}", ""},
		{"900", "{variant: reno, fixed_rto: on}", "with tcp.fixed_rto a client that finds no way gives up " +
			"after 255 s, and its trial lasts 900 s"},
		{"3600", "{variant: reno}", ""},
	} {
		file := []byte(strings.Replace(string(withTCP(c.tcp)), "duration_s: 10", "duration_s: "+c.windowS, 1))
		got := parsed(t, file).Warnings.Error()
		if c.want == "" && got != "" || !strings.HasSuffix(got, c.want) {
			t.Errorf("%s of %s s: warned %q, want %q", c.tcp, c.windowS, got, c.want)
		}
		if run, err := ParseArchived("c.yaml", file, FullScale); err != nil || len(run.Warnings) != 0 {
			t.Errorf("%s of %s s, of a run: %v, warned %v", c.tcp, c.windowS, err, run.Warnings)
		}
	}
}

// withVariants is a minimal campaign over transport profiles.
func withVariants(base, levels string) []byte {
	file := string(designFile("{tcp: {levels: "+levels+"}}", "{repetitions: 1, order: as_listed}")) +
		"field: {propagation: disc, range_m: 100}\n"
	return []byte(strings.Replace(file, "tcp: {variant: reno}", "tcp: "+base, 1))
}

// Levels that differ in more than they say are told, with the cure, which cures.
func TestLevelsThatDifferInMoreThanTheySay(t *testing.T) {
	least := "levels differ also in least RTO: "
	for name, c := range map[string]struct{ base, levels, want string }{
		"reference": {"{classic: on}", "{newreno: {tcp: {variant: newreno}}, reference: {tcp: {variant: reference}}}",
			least + "newreno the kernel's own (200 ms as Linux comes); reference 1000 ms; set tcp.rto_min_ms to make " +
				"them equal"},
		"fixed RTO": {"{variant: reno}", "{reno: {}, held: {tcp: {fixed_rto: on}}}", least + "reno the kernel's own " +
			"(200 ms as Linux comes); held 500 ms"},
		"two timers": {"{classic: on}", "{fixed: {tcp: {variant: reno, fixed_rto: on}}, reference: {tcp: {variant: " +
			"reference}}}",
			least + "fixed 500 ms; reference 1000 ms"},
		"made equal": {"{rto_min_ms: 1000}", "{newreno: {tcp: {variant: newreno}}, fixed: {tcp: {variant: reno, " +
			"fixed_rto: on}}, reference: {tcp: {variant: reference}}}", ""},
		"said": {"{variant: reno}", "{short: {tcp: {rto_min_ms: 200}}, long: {tcp: {rto_min_ms: 1000}}}", ""},
		"classic": {"{variant: reno}", "{kernel: {}, paper: {tcp: {classic: on}}}", "levels differ also in SACK: " +
			"kernel the kernel's own; paper off; set tcp.sack"},
		"by name": {"{classic: on}", "{reno: {tcp: {variant: reno}}, sack: {tcp: {variant: sack}}, fack: {tcp: " +
			"{variant: fack}}}", ""},
	} {
		got := parsed(t, withVariants(c.base, c.levels)).Warnings.Error()
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: warned %q, want %q", name, got, c.want)
		}
	}
}

// A campaign chooses whether a sender hears that there is no route, where a daemon of our own answers for it.
func TestHostUnreachable(t *testing.T) {
	with := func(protocol string) []byte {
		file := string(withTCP("{variant: reno}"))
		routing := "  routing: {protocol: " + protocol + ", host_unreachable: off}\n  tcp:"
		return []byte(strings.Replace(file, "  tcp:", routing, 1))
	}
	for _, protocol := range []string{"dsdv", "olsr", "aomdv", "aodv-ns2", "dsr", "dsr-ns2", "adv"} {
		if r := parsed(t, with(protocol)).trials[0].Routing; r.HostUnreachable == nil || *r.HostUnreachable {
			t.Errorf("%s: %v, want off", protocol, r.HostUnreachable)
		}
	}
	for _, protocol := range []string{"none", "static", "babeld", "olsrd", "batman-adv"} {
		want := "with protocol " + protocol + ", with which the kernel decides it"
		if _, err := Parse("c.yaml", with(protocol)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", protocol, err, want)
		}
	}
}

// A campaign chooses whether lost frames break routes, where the protocol leaves it open.
func TestLinkFeedback(t *testing.T) {
	with := func(routing string) []byte {
		file := string(withTCP("{variant: reno}"))
		return []byte(strings.Replace(file, "  tcp:", "  routing: "+routing+"\n  tcp:", 1))
	}
	for routing, want := range map[string]bool{
		"{protocol: dsdv}":                                 false,
		"{protocol: dsdv, link_feedback: on}":              true,
		"{protocol: olsr}":                                 false,
		"{protocol: olsr-etx}":                             false,
		"{protocol: olsr-full}":                            false,
		"{protocol: olsr, link_feedback: on}":              true,
		"{protocol: aodv}":                                 true,
		"{protocol: aodv, link_feedback: off}":             false,
		"{protocol: dsr}":                                  true,
		"{protocol: dsr-ns2}":                              true,
		"{protocol: aodv, hello_s: 2, link_feedback: off}": false,
		"{protocol: aodv, hello_s: 1}":                     true, // in force on a road, where no radio reports
		"{protocol: aomdv, link_feedback: true}":           true,
	} {
		if r := parsed(t, with(routing)).trials[0].Routing; r.BreaksByLostFrames() != want {
			t.Errorf("%s: lost frames break routes: %v, want %v", routing, !want, want)
		}
		if _, err := ParseArchived("c.yaml", with(routing), FullScale); err != nil {
			t.Errorf("%s: of a run: %v", routing, err)
		}
	}
	for routing, want := range map[string]string{
		"{protocol: dsr, link_feedback: off}":     "with protocol dsr, which does not leave the choice",
		"{protocol: dsr-ns2, link_feedback: on}":  "with protocol dsr-ns2, which does not leave the choice",
		"{protocol: dsr-ns2, hello_s: 1}":         "with protocol dsr-ns2, which sends no hellos",
		"{protocol: dsr, hello_s: 1}":             "with protocol dsr, which sends no hellos",
		"{protocol: aodv-ns2, hello_s: 1}":        "with protocol aodv-ns2, which sends no hellos",
		"{protocol: aodv-p3, hello_s: 1}":         "with protocol aodv-p3, which sends no hellos",
		"{protocol: babeld, link_feedback: on}":   "with protocol babeld",
		"{protocol: none, link_feedback: on}":     "with protocol none",
		"{protocol: dsdv, link_feedback: mostly}": "on or off",
	} {
		if _, err := Parse("c.yaml", with(routing)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", routing, err, want)
		}
	}
}

func TestTheFormerNameOfTheGenie(t *testing.T) {
	old := []byte(strings.Replace(string(withTCP("{variant: reno}")), "design: {",
		"field: {rate_control: snr}\ndesign: {", 1))
	_, err := Parse("f", old)
	if err == nil || !strings.Contains(err.Error(), `field.rate_control: "snr" is called "genie_snr" now`) {
		t.Errorf("got %v", err)
	}
	if c, err := ParseArchived("f", old, FullScale); err != nil || c.Field.RateControl != "genie_snr" {
		t.Errorf("of a run: %v", err)
	}
}

func TestTheFormerNameOfNS2sDSR(t *testing.T) {
	_, err := Parse("c.yaml", withTCP("{variant: reno}\n  routing: {protocol: dsr-p3}"))
	if err == nil || !strings.Contains(err.Error(), `trial.routing.protocol: "dsr-p3" is called "dsr-ns2" now`) {
		t.Errorf("got %v", err)
	}
}
