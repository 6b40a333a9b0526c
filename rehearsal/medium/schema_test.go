package medium

import (
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/test/schemas"
)

// What the campaigns' JSON Schema gives as defaults is what a medium takes.
func TestCampaignSchemaGivesTheDefaults(t *testing.T) {
	given, err := schemas.FieldDefaults(filepath.Join("..", "..", "campaigns", "campaign.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"queue_frames": float64(defaultQueueFrames),
		"carrier_sense_dbm": defaultCarrierSenseDbm,
		"short_retry_limit": float64(shortRetryLimit), "long_retry_limit": float64(longRetryLimit),
		"rate_control": rateControlSNR} {
		if got := given[key]; got != want {
			t.Errorf("%s is %v where the campaign does not say, and the schema gives %v", key, want, got)
		}
	}
}
