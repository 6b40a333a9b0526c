package cmd

import (
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	offers "fieldmesh.dev/fieldmesh/controller/pairing"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Only an experimenter's phone is told where campaigns are driven, and only it is written down
// as one.
func TestAnExperimentersPhoneIsToldOfTheController(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	if _, err := fleet.Init(dir); err != nil {
		t.Fatal(err)
	}
	for name, drives := range map[string]bool{"phone": true, "onlooker": false} {
		reply, _, err := admit(dir, offers.Newcomer{Name: name, Role: wire.RoleApp, Pin: testnet.Identity(t, name).Pin},
			pairOptions{app: true, drives: drives, serve: campaigns.Port})
		if err != nil {
			t.Fatal(err)
		}
		if told := reply.Controller != nil && reply.Controller.Port == campaigns.Port; told != drives {
			t.Errorf("%s is told %+v", name, reply.Controller)
		}
		f, err := fleet.Load(filepath.Join(dir, fleet.FileName))
		if err != nil || f.Apps[name].Experimenter != drives {
			t.Errorf("%s: the fleet has %+v, %v", name, f.Apps[name], err)
		}
	}
}
