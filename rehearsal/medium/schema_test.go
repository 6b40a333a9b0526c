package medium

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/test/schemas"
)

// What the campaigns' JSON Schema gives as defaults is what a medium takes.
func TestCampaignSchemaGivesTheDefaults(t *testing.T) {
	given, err := schemas.FieldDefaults(filepath.Join("..", "..", "campaigns", "campaign.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"queue_frames": float64(defaultQueueFrames),
		"carrier_sense_dbm": defaultCarrierSenseDbm, "rate_control": rateControlMinstrel} {
		if got := given[key]; got != want {
			t.Errorf("%s is %v where the campaign does not say, and the schema gives %v", key, want, got)
		}
	}
}

// A campaign may name every radio that there is, and no other.
func TestCampaignSchemaNamesTheRadios(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "campaigns", "campaign.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Field struct {
				Properties struct{ Radio struct{ Enum []string } }
			}
		}
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, r := range phy.KnownRadios()[1:] {
		known = append(known, r.Name)
	}
	if named := schema.Properties.Field.Properties.Radio.Enum; !slices.Equal(named, known) {
		t.Errorf("a campaign may name the radios %q, there are %q", named, known)
	}
}
