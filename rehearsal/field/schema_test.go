package field

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/test/schemas"
)

// What the campaigns' JSON Schema gives as the defaults of section field is what
// a field takes; those of the medium are held there.
func TestCampaignSchemaGivesTheDefaults(t *testing.T) {
	given, err := schemas.FieldDefaults(filepath.Join("..", "..", "campaigns", "campaign.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Settings{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(taken, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) < 10 {
		t.Errorf("a field takes only %v", want)
	}
	for key, value := range want {
		if got := given[key]; got != value {
			t.Errorf("%s is %v where the campaign does not say, and the schema gives %v", key, value, got)
		}
	}
}
