package pairing_test

import (
	"flag"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/pairing"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/contract"
)

// The golden files are the messages in the shape in which other languages' tests read them.
var update = flag.Bool("update", false, "write the golden files again")

func TestGoldenMessages(t *testing.T) {
	a, b, proof := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("0f", 32)
	for name, sample := range map[string]any{
		"request_node": &pairing.Request{Version: pairing.Version, Name: "car", Role: wire.RoleNode, Listen: ":7443",
			Proof: proof},
		"request_app": &pairing.Request{Version: pairing.Version, Role: wire.RoleApp, Proof: proof},
		"reply_node": &pairing.Reply{Proof: proof, Name: "car", Role: wire.RoleNode,
			Authorized: []keys.Peer{{Name: "controller", Role: wire.RoleController, Pin: a}}},
		"reply_app": &pairing.Reply{Proof: proof, Name: "phone", Role: wire.RoleApp,
			Nodes: []pairing.Node{{Name: "car", Address: "192.168.8.2:7443", Pin: b}}},
		"reply_experimenter": &pairing.Reply{Proof: proof, Name: "phone", Role: wire.RoleApp,
			Nodes:      []pairing.Node{{Name: "car", Address: "192.168.8.2:7443", Pin: b}},
			Controller: &pairing.Controller{Port: 7448}},
	} {
		contract.Held(t, name, sample, *update)
	}
}
