package field

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What the campaigns' JSON Schema gives as the defaults of section field is what
// a field takes; those of the medium are held there.
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
	c, err := Settings{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := errors.Join(json.Unmarshal(text, &schema), json.Unmarshal(taken, &want)); err != nil {
		t.Fatal(err)
	}
	if len(want) < 10 {
		t.Errorf("a field takes only %v", want)
	}
	for key, value := range want {
		if got := schema.Properties.Field.Properties[key].Default; got != value {
			t.Errorf("%s is %v where the campaign does not say, and the schema gives %v", key, value, got)
		}
	}
}
