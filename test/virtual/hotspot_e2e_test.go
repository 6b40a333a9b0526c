//go:build e2e

package virtual

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan/choice"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// The campaign of two phones is rehearsed as it ships, at its highest speed and thus over its
// longest drives: the phone that keeps the hotspot is an access point of the kernel's own
// radios, and the other one its station. The run and its report say in what that is not Android.
func TestE2EAPhonesHotspotIsRehearsed(t *testing.T) {
	d := newDesk(t, "[8.3]")
	needsSupplicant(t, wire.ModeInfrastructure)
	const shipped = "../../campaigns/velocity-phones.yaml"
	raw, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	text, scale, _, err := choice.Of(shipped, raw, choice.Choice{SpeedsMps: []float64{16.7}, Repetitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, "velocity-phones.yaml", text)
	out, err := d.rehearse("velocity-phones.yaml", "--scale", scale, "--clock", "virtual").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "add --clock virtual --radio mac80211") {
		t.Fatalf("with interfaces of Ethernet: %v\n%s", err, out)
	}
	for trial, mb := range d.transferred(t, "velocity-phones.yaml", "phones", archive.RadioMAC80211, "--scale", scale) {
		t.Logf("trial %d: %.2f MB", trial, mb)
		if !(mb > 0) {
			t.Errorf("trial %d carried nothing", trial)
		}
	}
	a := d.read(t, "phones")
	d.stationAndAccessPoint(t, a)
	if !bytes.Equal(a.Info().CampaignRaw, text) {
		t.Error("the run's campaign is not the file that was rehearsed")
	}
	said := strings.Join(a.Info().Deviations, " ")
	report, err := os.ReadFile(d.path("runs/phones/report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"run.json": said, "the report": string(report)} {
		if !strings.Contains(text, "rehearsed as an access point and stations of Linux") {
			t.Errorf("%s does not say how the hotspot was rehearsed", where)
		}
	}
}

// stationAndAccessPoint: in every attempt each node's kernel was asked what is in force, as on
// the road, and heard the other node.
func (d *desk) stationAndAccessPoint(t *testing.T, a *archive.Archive) {
	t.Helper()
	for _, v := range a.Decisions() {
		trial, _ := a.Trial(v.Trial)
		if trial.Radio.Mode != wire.ModeInfrastructure || trial.Radio.AccessPoint != "bravo" {
			t.Errorf("trial %d has the radio %+v", v.Trial, trial.Radio)
		}
		asked, heard := map[string]int{}, map[string]int{}
		for r, err := range a.Records(v.Trial, v.Attempt) {
			if err != nil {
				t.Fatal(err)
			}
			node := r.Header.Node
			switch b := r.Body.(type) {
			case *wire.Provenance:
				c := b.Radio
				if c == nil || c.Driver != "nl80211" || c.Mode != trial.Radio.ModeAt(node) || c.Channel != 6 ||
					c.SSID != "fieldmesh" || c.TxPowerDbm == nil || *c.TxPowerDbm != 20 ||
					c.Mode == "managed" && !slices.Equal(c.BasicRatesMbps, []float64{1, 2, 5.5, 11}) {
					t.Errorf("%s in trial %d: the radio in force is %+v", node, v.Trial, c)
				}
				asked[node]++
			case *wire.Station:
				if b.SignalDbm != nil && *b.SignalDbm < 0 {
					heard[node]++
				}
			}
		}
		for _, node := range []string{"alpha", "bravo"} {
			if asked[node] == 0 || heard[node] == 0 {
				t.Errorf("%s in trial %d: asked %d times, heard the other one %d times", node, v.Trial, asked[node],
					heard[node])
			}
		}
	}
}
