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
	c := parsed(t, withTCP("{variant: reno, classic: on, sack: off, delayed_ack: off, fixed_rto: on, window_bytes: 65536}"))
	trial := c.trials[0]
	p := trial.TCP
	if p.Variant != "reno" || !p.Classic || p.SACK == nil || *p.SACK || p.DelayedACK == nil || *p.DelayedACK || !p.FixedRTO {
		t.Errorf("the profile is read as %+v", p)
	}
	if w := trial.Traffic[0].WindowBytes; w == nil || *w != 65536 {
		t.Errorf("the flow's window is %v", w)
	}
	c = parsed(t, withTCP("{variant: newreno, sack: true, fixed_rto: false}"))
	if p := c.trials[0].TCP; p.Classic || p.SACK == nil || !*p.SACK || p.DelayedACK != nil || p.FixedRTO {
		t.Errorf("the profile is read as %+v", p)
	}
}

func TestTransportProfileAtFault(t *testing.T) {
	for tcp, want := range map[string]string{
		"{variant: compound}":                       "compound",
		"{variant: reno, sack: maybe}":              "on or off",
		"{variant: reno, delayed_ack: 2}":           "on or off",
		"{variant: fack, sack: off}":                "needs SACK",
		"{variant: sack, sack: false}":              "needs SACK",
		"{variant: reference}":                      "for rehearsals only",
		"{variant: reno, window_bytes: 12}":         "1024",
		"{variant: reno, fixed_rt: on}":             `did you mean "fixed_rto"`,
		"{classic: on}":                             "variant",
		"{variant: reno, window_bytes: 1000000000}": "67108864",
	} {
		_, err := Parse("c.yaml", withTCP(tcp))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", tcp, err, want)
		}
	}
}
