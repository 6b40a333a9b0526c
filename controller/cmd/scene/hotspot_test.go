package scene

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// phones is velocity-phones.yaml with changes.
func phones(t *testing.T, changes ...string) *plan.Campaign {
	t.Helper()
	return changed(t, "velocity-phones.yaml", changes...)
}

// changed is a campaign that ships, with changes: what stands there and what shall, in turn.
func changed(t *testing.T, name string, changes ...string) *plan.Campaign {
	t.Helper()
	path := filepath.Join("..", "..", "..", "campaigns", name)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(changes...).Replace(string(raw))
	for i := 1; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("the campaign is not what this test changes: %q", changes)
		}
	}
	c, err := plan.ParseAt(path, []byte(text), plan.FullScale)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Of a phone's hotspot the kernel's own radios have an access point and its station, on the
// hotspot's channel and under its name, and what that is not is said.
func TestAHotspotIsRehearsedAsAnAccessPoint(t *testing.T) {
	for channel, want := range map[string]struct {
		radio wire.Radio
		says  string
	}{
		"6":   {wire.Radio{Standard: "802.11g", Channel: 6}, "802.11g on channel 6 at 20 dBm, without encryption"},
		"149": {wire.Radio{Standard: "802.11a", Channel: 149}, "802.11a on channel 149 at 20 dBm"},
	} {
		c := phones(t, "channel: 6,", "channel: "+channel+",")
		p, err := c.RunPlan("r", make([]byte, 32))
		if err != nil {
			t.Fatal(err)
		}
		if err := Rehearsed(&p, c); err != nil {
			t.Fatal(err)
		}
		deviations, err := Radios(c, p.Trials, archive.RadioMAC80211)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(deviations, "\n")
		for _, says := range []string{want.says, "an access point and stations of Linux", "Android's own hotspot",
			"power save", "Linux with root", "a laptop cannot"} {
			if !strings.Contains(all, says) {
				t.Errorf("channel %s: it does not say %q:\n%s", channel, says, all)
			}
		}
		for i := range p.Nodes {
			p.Nodes[i].GoPort = wire.DefaultGoPort
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		for _, trial := range p.Trials {
			r := trial.Radio
			if r.Mode != wire.ModeInfrastructure || r.AccessPoint != "bravo" || r.SSID != "fieldmesh" ||
				r.Standard != want.radio.Standard || r.Channel != want.radio.Channel || r.TxPowerDbm == nil ||
				*r.TxPowerDbm != 20 || r.RateMbps != nil {
				t.Errorf("trial %d: %+v", trial.Number, r)
			}
		}
	}
}

// What the kernel's own radios cannot be of it, and the emulated radio not at all, is refused
// with what to do.
func TestAHotspotThatIsNotRehearsedIsRefused(t *testing.T) {
	c := phones(t)
	trials, err := c.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Radios(c, trials, ""); err == nil ||
		!strings.Contains(err.Error(), "add --clock virtual --radio mac80211") || trials[0].Radio.Mode != "hotspot" {
		t.Errorf("%v, and the mode is %s", err, trials[0].Radio.Mode)
	}
	for _, v := range []struct{ from, to, want string }{
		{"channel: 6,", "channel: 13,", "radio.channel 13: the kernel's radios may use 1 to 11"},
		{"channel: 6,", "channel: 52,", "36 to 48 and 149 to 165"},
		{"nmea_hz: 1 ", "rate_control: minstrel ", "the kernel's rate control chooses"},
	} {
		if r := Rehearsal(phones(t, v.from, v.to)); r.Refused == nil || !strings.Contains(r.Refused.Error(), v.want) {
			t.Errorf("%s: %v", v.to, r.Refused)
		}
	}
}

// A network with an access point is none that the emulated radio can be.
func TestAnAccessPointIsNotEmulated(t *testing.T) {
	c, err := plan.Load(filepath.Join("..", "..", "..", "campaigns", "velocity.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[string]bool{"adhoc": false, "mesh": false, "none": false,
		wire.ModeInfrastructure: true, wire.ModeHotspot: true} {
		trials, err := c.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		trials[1].Radio.Mode = mode
		_, err = Radios(c, trials, "")
		if (err != nil) != refused || refused && (!strings.Contains(err.Error(), "trial 2: its radio's mode is "+
			mode) || !strings.Contains(err.Error(), "a copy with `radio: {mode: adhoc") ||
			!strings.Contains(err.Error(), "add --clock virtual --radio mac80211")) {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// Another campaign is rehearsed with its own radios.
func TestOtherRadiosStayAsPlanned(t *testing.T) {
	c, err := plan.Load(filepath.Join("..", "..", "..", "campaigns", "velocity.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	trials, err := c.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	for _, radio := range []string{"", archive.RadioMAC80211} {
		deviations, err := Radios(c, trials, radio)
		if err != nil || len(deviations) > 0 || trials[0].Radio.Mode != "adhoc" {
			t.Errorf("radio %q: %v, %q, mode %s", radio, err, deviations, trials[0].Radio.Mode)
		}
	}
	if r := Rehearsal(c); r.Refused != nil || r.Flags != "" || len(r.Deviations) > 0 {
		t.Errorf("%+v", r)
	}
}
