package medium

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// What the campaigns' JSON Schema gives as defaults is what a medium takes.
func TestCampaignSchemaGivesTheDefaults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "campaigns", "campaign.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Field struct {
				Properties map[string]struct{ Default any }
			}
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"queue_frames": float64(defaultQueueFrames),
		"carrier_sense_dbm": defaultCarrierSenseDbm,
		"short_retry_limit": float64(shortRetryLimit), "long_retry_limit": float64(longRetryLimit),
		"rate_control": rateControlSNR} {
		if got := schema.Properties.Field.Properties[key].Default; got != want {
			t.Errorf("%s is %v where the campaign does not say, and the schema gives %v", key, want, got)
		}
	}
}
