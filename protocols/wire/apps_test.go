package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestAppsAreChecked(t *testing.T) {
	pin, other := strings.Repeat("a", 64), strings.Repeat("b", 64)
	good := wire.Apps{Apps: []wire.App{{Name: "phone", Pin: pin}, {Name: "tablet", Pin: other}}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	many := wire.Apps{}
	for i := range wire.MaxApps + 1 {
		many.Apps = append(many.Apps, wire.App{Name: fmt.Sprintf("phone-%d", i), Pin: fmt.Sprintf("%064x", i)})
	}
	for name, bad := range map[string]wire.Apps{
		"too many": many, "a path": {Apps: []wire.App{{Name: "../phone", Pin: pin}}},
		"no name": {Apps: []wire.App{{Pin: pin}}}, "no pin": {Apps: []wire.App{{Name: "phone"}}},
		"one name twice": {Apps: []wire.App{{Name: "phone", Pin: pin}, {Name: "phone", Pin: other}}},
		"one key twice":  {Apps: []wire.App{{Name: "phone", Pin: pin}, {Name: "tablet", Pin: pin}}},
	} {
		if err := bad.Validate(); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
