package report

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/report/evidence"
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
