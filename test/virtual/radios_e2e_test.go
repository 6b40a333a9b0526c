//go:build e2e

package virtual

import (
	"math"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/metrics"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// With the kernel's own radios the agents join an ad hoc cell by nl80211, as on the
// road, and what they record of it is what the kernel says. At one fixed rate as much
// gets through as between interfaces of Ethernet, for the air is the same.
func TestE2EKernelsOwnRadios(t *testing.T) {
	d := newDesk(t, "[8.3]")
	const rate = "rate_mbps: 24"
	text := strings.NewReplacer("tx_power_dbm: 20", "tx_power_dbm: 20\n    "+rate,
		"nmea_hz: 10", "nmea_hz: 10\n  long_slot: true").Replace(string(campaign(t, "[8.3]")))
	if !strings.Contains(text, rate) || !strings.Contains(text, "long_slot") {
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

// transferred is what each trial of a rehearsal carried, in MB. All are accepted at
// once, and the radio was late in none.
func (d *desk) transferred(t *testing.T, file, run, radio string) map[int]float64 {
	t.Helper()
	args := []string{file, "--clock", "virtual", "--name", run}
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

// joined: both nodes were in the plan's cell by the kernel's word, heard each other by it,
// and nobody made a survey up.
func (d *desk) joined(t *testing.T, a *archive.Archive) {
	t.Helper()
	type found struct{ in, stations, atRate int }
	for _, v := range a.Decisions() {
		of := map[string]*found{"alpha": {}, "bravo": {}}
		for r, err := range a.Records(v.Trial, v.Attempt) {
			if err != nil {
				t.Fatal(err)
			}
			node := r.Header.Node
			switch b := r.Body.(type) {
			case *wire.Provenance:
				if c := b.Radio; c == nil || c.Driver != "nl80211" || c.Mode != "adhoc" || c.Channel != 6 ||
					c.SSID != "fieldmesh" || c.BSSID != "02:0a:5e:00:00:06" || c.Width != "20 MHz (no HT)" ||
					c.TxPowerDbm == nil || *c.TxPowerDbm != 20 {
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
