//go:build e2e

package virtual

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// With the kernel's own radios the agents join an ad hoc cell by nl80211, as on the
// road, and what they record of it is what the kernel says. At one fixed rate as much
// gets through as between interfaces of Ethernet, for the air is the same.
func TestE2EKernelsOwnRadios(t *testing.T) {
	d := newDesk(t, "[8.3]")
	const rate = "rate_mbps: 24"
	text := strings.Replace(string(campaign(t, "[8.3]")), "tx_power_dbm: 20", "tx_power_dbm: 20\n    "+rate, 1)
	if !strings.Contains(text, rate) {
		t.Fatalf("the campaign is not what this test changes:\n%s", text)
	}
	d.write(t, "velocity.yaml", []byte(text))
	got := mean(d.transferred(t, "velocity.yaml", "kernel", archive.RadioMAC80211))
	want := mean(d.transferred(t, "velocity.yaml", "ethernet", ""))
	t.Logf("through the kernel's own radios %.2f MB, through Ethernet %.2f MB", got, want)
	if !(math.Abs(got/want-1) < 0.05) {
		t.Errorf("the kernel's own radios carried %.2f MB and interfaces of Ethernet %.2f MB, want them within 5 %%",
			got, want)
	}
	d.joined(t, d.read(t, "kernel"))
}

// Two nodes with the kernel's own radios join a mesh of 802.11s, and what they carry goes
// through its paths. The sections have channels of their own, so that each trial joins, and
// leaves what it joined.
func TestE2EAMeshOfTheKernelsRadios(t *testing.T) {
	d := newDesk(t, "[8.3]")
	d.asMuchAsEthernet(t, "mesh", 6, 11, "standard: 802.11g\n    rate_mbps: 24", "mode: adhoc", "mode: mesh",
		"    bssid: \"02:0a:5e:00:00:06\"\n", "")
}

// A station of the kernel's own radios associates with an access point, which
// wpa_supplicant has another be.
func TestE2EAnAccessPointOfTheKernelsRadios(t *testing.T) {
	d := newDesk(t, "[8.3]")
	needsSupplicant(t, "infrastructure")
	d.asMuchAsEthernet(t, "infrastructure", 36, 44, "standard: 802.11a\n    rate_mbps: 24",
		"mode: adhoc", "mode: infrastructure\n    access_point: bravo", "    bssid: \"02:0a:5e:00:00:06\"\n", "")
}

// needsSupplicant skips a test of radios with an access point where nothing can be one.
func needsSupplicant(t *testing.T, radio string) {
	t.Helper()
	_, err := os.Stat(config.DefaultBinaries()["wpa_supplicant"])
	if err != nil && strings.Contains(radio, wire.ModeInfrastructure) {
		t.Skipf("an access point needs wpa_supplicant (apt-get install wpasupplicant): %v", err)
	}
}

// asMuchAsEthernet: with the radio that the changes make of velocity.yaml's, the kernel's own
// radios carry what interfaces of Ethernet do in an ad hoc cell at the same rate, with the slot
// of what the radios are in. Section A has one channel, B the other.
func (d *desk) asMuchAsEthernet(t *testing.T, run string, channelA, channelB int, rate string, changes ...string) {
	t.Helper()
	ethernet := strings.NewReplacer("standard: 802.11g", rate, "channel: 6", fmt.Sprintf("channel: %d", channelA),
		"B: {", fmt.Sprintf("B: {radio: {channel: %d}, ", channelB)).Replace(string(campaign(t, "[8.3]")))
	cell := ethernet
	if channelA <= 14 { // at 5 GHz there is one slot
		cell = strings.Replace(cell, "nmea_hz: 10", "nmea_hz: 10\n  long_slot: false", 1)
	}
	d.write(t, "ethernet.yaml", []byte(cell))
	d.write(t, run+".yaml", []byte(strings.NewReplacer(changes...).Replace(ethernet)))
	got := d.transferred(t, run+".yaml", run, archive.RadioMAC80211)
	want := d.transferred(t, "ethernet.yaml", "ethernet", "")
	for trial := range want {
		t.Logf("trial %d: through the kernel's own radios %.2f MB, through Ethernet %.2f MB", trial, got[trial],
			want[trial])
	}
	if !(math.Abs(mean(got)/mean(want)-1) < 0.05) {
		t.Errorf("the kernel's own radios carried %.2f MB and interfaces of Ethernet %.2f MB, want them within 5 %%",
			mean(got), mean(want))
	}
	a := d.read(t, run)
	d.joined(t, a)
	d.left(t, a)
}

// left: each node joined by nl80211 for each trial, and took that back after it.
func (d *desk) left(t *testing.T, a *archive.Archive) {
	t.Helper()
	for _, v := range a.Decisions() {
		trial, _ := a.Trial(v.Trial)
		of := map[string][]string{}
		for r, err := range a.Records(v.Trial, v.Attempt) {
			if err != nil {
				t.Fatal(err)
			}
			if c, is := r.Body.(*wire.HostChange); is && c.Scope == "trial" && strings.HasPrefix(c.What, "radio ") {
				of[r.Header.Node] = append(of[r.Header.Node], c.Action+" "+c.What)
			}
		}
		for _, node := range []string{"alpha", "bravo"} {
			what := fmt.Sprintf("radio wlan0 %s \"fieldmesh\" %s channel %d rate 24 Mbit/s power 20 dBm",
				trial.Radio.ModeAt(node), trial.Radio.Standard, trial.Radio.Channel)
			if want := []string{"applied " + what, "undone " + what}; !slices.Equal(of[node], want) {
				t.Errorf("%s in trial %d: %q, want %q", node, v.Trial, of[node], want)
			}
		}
	}
}

// transferred is what each trial of a rehearsal carried, in MB. All are accepted at
// once, and the radio was late in none.
func (d *desk) transferred(t *testing.T, file, run, radio string, more ...string) map[int]float64 {
	t.Helper()
	args := append([]string{file, "--clock", "virtual", "--name", run}, more...)
	if radio != "" {
		args = append(args, "--radio", radio)
	}
	if out, err := d.rehearse(args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d.whole(t, run)
	a := d.read(t, run)
	if got := a.Info().Radio; got != radio {
		t.Errorf("run %s had the radio %q, want %q", run, got, radio)
	}
	trials := len(a.Info().Plan.Trials)
	acceptedAtOnce(t, a, trials)
	rows, err := metrics.Table(a)
	if err != nil {
		t.Fatal(err)
	}
	mb := map[int]float64{}
	for _, r := range rows {
		switch r.Name {
		case "transferred_mb":
			mb[r.Trial] = r.Value
		case metrics.LatenessShare:
			if r.Value > 0 {
				t.Errorf("run %s, trial %d: the radio was late for %g of the window, want 0", run, r.Trial, r.Value)
			}
		}
	}
	if len(mb) != trials {
		t.Fatalf("run %s has %d throughputs, want %d", run, len(mb), trials)
	}
	return mb
}

func mean(of map[int]float64) (sum float64) {
	for _, v := range of {
		sum += v / float64(len(of))
	}
	return sum
}

// joined: both nodes were in the plan's network by the kernel's word, heard each other by it,
// and nobody made a survey up. The kernel does not tell a mesh's name. An access point has the
// rates that the air takes for granted.
func (d *desk) joined(t *testing.T, a *archive.Archive) {
	t.Helper()
	type found struct{ in, stations, atRate int }
	for _, v := range a.Decisions() {
		of := map[string]*found{"alpha": {}, "bravo": {}}
		trial, _ := a.Trial(v.Trial)
		want := trial.Radio
		for r, err := range a.Records(v.Trial, v.Attempt) {
			if err != nil {
				t.Fatal(err)
			}
			node := r.Header.Node
			switch b := r.Body.(type) {
			case *wire.Provenance:
				c := b.Radio
				if c == nil || c.Driver != "nl80211" || c.Mode != want.ModeAt(node) || c.Channel != want.Channel ||
					c.SSID != want.SSID && want.Mode != "mesh" || want.BSSID != "" && c.BSSID != want.BSSID ||
					c.Width != "20 MHz (no HT)" || c.TxPowerDbm == nil || *c.TxPowerDbm != 20 ||
					c.Mode == "managed" && !slices.Equal(c.BasicRatesMbps, []float64{6, 12, 24}) {
					t.Errorf("%s in trial %d: the radio in force is %+v", node, v.Trial, c)
				}
				of[node].in++
			case *wire.Station:
				if b.SignalDbm == nil { // of a station that has sent nothing yet
					continue
				}
				if *b.SignalDbm >= 0 {
					t.Errorf("%s in trial %d: a signal of %g dBm", node, v.Trial, *b.SignalDbm)
				}
				of[node].stations++
				if b.TxBitrateMbps != nil && *b.TxBitrateMbps == 24 {
					of[node].atRate++
				}
			case *wire.Survey:
				if b.NoiseDbm != nil || b.BusyMs != nil {
					t.Errorf("%s in trial %d: a survey that no radio made: %+v", node, v.Trial, b)
				}
			}
		}
		for node, n := range of {
			if n.in == 0 || n.stations == 0 || n.atRate == 0 {
				t.Errorf("%s in trial %d: %d provenances and %d stations, %d of them at 24 Mbit/s", node, v.Trial, n.in,
					n.stations, n.atRate)
			}
		}
	}
}
