package needs

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A power that is not the plan's is told, however it came about.
func TestAPowerThatIsNotThePlansIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		want, told *float64
		noted      bool
	}{
		"as planned":   {new(20.0), new(20.0), false},
		"rounded":      {new(20.62), new(20.0), false},
		"less":         {new(20.0), new(14.0), true},
		"more":         {new(10.0), new(30.0), true},
		"none planned": {nil, new(14.0), false},
		"none told":    {new(20.0), nil, false},
		"none known":   {new(20.0), new(0.0), false},
	} {
		note := powerNote("wlan0", wire.Radio{TxPowerDbm: c.want}, &wire.Caps{TxPowerDbm: c.told})
		noted := strings.Contains(note, "wlan0 tells a transmit power of")
		if noted != c.noted || !noted && note != "" {
			t.Errorf("%s: %q", name, note)
		}
	}
}
