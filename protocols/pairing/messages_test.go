package pairing_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/pairing"
	"fieldmesh.dev/fieldmesh/protocols/wire"
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
		data, err := wire.Encode(sample)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := json.Indent(&text, data, "", "  "); err != nil {
			t.Fatal(err)
		}
		text.WriteByte('\n')
		path := filepath.Join("golden", name+".json")
		if *update {
			if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(text.Bytes(), want) {
			t.Errorf("%s: %v; the encoding is now\n%s", path, err, text.Bytes())
		}
		back := reflect.New(reflect.TypeOf(sample).Elem()).Interface()
		if err := json.Unmarshal(want, back); err != nil || !reflect.DeepEqual(back, sample) {
			t.Errorf("%s is read as %+v, %v", path, back, err)
		}
	}
}
