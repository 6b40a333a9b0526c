package change

import (
	"io"
	"strings"
	"testing"
)

//attack:face the machine's own Wi-Fi, beside which an interface may be made (`phy_of`) | it is none of those that
//attack:and may be changed: it may listen on a channel, be kept awake, and lend its radio to the one name
func TestVirtualsThatNoPolicyAllows(t *testing.T) {
	p := Policy{Interfaces: []string{"mesh0"}, Beside: "wlan0"}
	good := Virtual{Interface: "mesh0", Beside: "wlan0", Mode: "adhoc", Channel: 6}
	if refused := p.Check(good); refused != nil {
		t.Fatalf("a good one: %v", refused)
	}
	for want, spoil := range map[string]func(*Virtual){
		`"wlan0" is not among`:             func(v *Virtual) { v.Interface = "wlan0" },
		`beside wlan0, not beside "eth0"`:  func(v *Virtual) { v.Beside = "eth0" },
		`beside wlan0, not beside "../x"`:  func(v *Virtual) { v.Beside = "../x" },
		`mode "monitor" is none of adhoc,`: func(v *Virtual) { v.Mode = "monitor" },
		"channel 15 is none of":            func(v *Virtual) { v.Channel = 15 },
	} {
		v := good
		spoil(&v)
		if refused := p.Check(v); refused == nil || !strings.Contains(refused.Error(), want) {
			t.Errorf("%s: %v, want %q", v, refused, want)
		}
	}
	if refused := (Policy{Interfaces: []string{"mesh0"}}).Check(good); refused == nil ||
		!strings.Contains(refused.Cure, "as phy_of in agent.yaml") {
		t.Errorf("where none is named: %v", refused)
	}
	// The machine's own interface may be asked for its place only.
	if refused := p.Check(Link{Interface: "wlan0", Up: new(false)}); refused == nil {
		t.Error("the machine's own interface may be changed")
	}
}

// Without the interface that was made its undo still says how the radio of the machine's own one was.
func TestAMadeInterfacesUndoGoesWithTheMachinesOwn(t *testing.T) {
	k := &Kernel{loaded: map[string]io.Closer{}}
	const vanished = 1 << 30
	for beside, want := range map[int]bool{1: false, vanished: true} { // 1: lo
		u := &virtualUndo{Virtual: madeInterface{Interface: "mesh0", MAC: "02:00:00:00:00:99", Index: beside}}
		if u.void(k) != want {
			t.Errorf("beside interface %d the undo is void: %t", beside, !want)
		}
	}
}
