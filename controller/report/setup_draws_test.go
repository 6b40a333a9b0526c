package report

import (
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
	"fieldmesh.dev/fieldmesh/controller/report/threats"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A rehearsal's report tells if its intervals hold for one draw of the channel or for
// many; a road's has nothing to say of it.
func TestReportSaysWhatWasDrawn(t *testing.T) {
	for _, v := range []struct {
		info archive.RunInfo
		says string
	}{
		{archive.RunInfo{Place: archive.PlaceRehearsal, ChannelDraws: environment.DrawsPerRepetition},
			"channels of this kind"},
		{archive.RunInfo{Place: archive.PlaceRehearsal, ChannelDraws: environment.DrawsPerCampaign}, "this draw only"},
		{archive.RunInfo{Place: archive.PlaceRehearsal}, "this draw only"}, // of a run from before there was a choice
		{archive.RunInfo{Place: archive.PlaceRoad}, ""},
	} {
		said := ""
		for _, p := range runPairs(&evidence.Run{Info: v.info}) {
			if p.Name == "channel" {
				said = p.Value
			}
		}
		if (said == "") != (v.says == "") || !strings.Contains(said, v.says) {
			t.Errorf("%s, draws %q: the report says %q, want %q", v.info.Place, v.info.ChannelDraws, said, v.says)
		}
	}
}

// Where a rehearsal's network is not the campaign's, the report says so.
func TestReportSaysInWhatARehearsalIsNotAsTheRoad(t *testing.T) {
	const deviation = "The hotspot is rehearsed as an access point."
	for _, deviations := range [][]string{nil, {deviation}} {
		d := &evidence.Run{Info: archive.RunInfo{Place: archive.PlaceRehearsal, Deviations: deviations}}
		told := slices.Contains(runPairs(d), pair{"not as on the road", deviation})
		threat, _ := threats.Emulated(d)
		if want := deviations != nil; told != want || strings.Contains(threat.Text, deviation) != want {
			t.Errorf("of %q the setup tells it: %t; the threat is %q", deviations, told, threat.Text)
		}
	}
}

// Of a flow at a constant bit rate the setup says how large its datagrams are, and between whom.
func TestReportSaysWhatAConstantBitRateSends(t *testing.T) {
	got := trafficText(wire.Trial{Traffic: []wire.Flow{{Name: "cbr", Kind: wire.KindCBR, From: "a", To: "b", Streams: 1,
		Port: 6000, PayloadBytes: new(512), BitrateBps: new(5e3), Background: true}}})
	if want := "cbr: cbr, 512 bytes a datagram from a to b, port 6000, 5 kbit/s, background"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
