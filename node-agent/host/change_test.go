package host

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/node-agent/routing/manetd"
)

// TestEveryKindHasItsVerbs: what the compiler cannot see of a kind. There is a
// sample of each, which a policy that lets it in allows; a change that says
// nothing is refused.
func TestEveryKindHasItsVerbs(t *testing.T) {
	samples := map[string][]Change{}
	for _, e := range replay(sampleJournal(t)).pending {
		name, _, err := kindOf(e.Change.Change)
		if err != nil {
			t.Fatal(err)
		}
		samples[name] = append(samples[name], e.Change.Change)
	}
	p := testPolicy()
	p.beside, p.binaries[agentBinary] = "wlan9", "/usr/bin/fieldmesh-agent"
	targets := map[string]string{}
	for name, k := range kinds() {
		if len(samples[name]) == 0 {
			t.Errorf("%s: there is no sample of it in sample_test.go", name)
		}
		for _, c := range samples[name] {
			if other := targets[c.target()]; c.target() == "" || c.String() == "" || other != "" && other != name {
				t.Errorf("%s: %q acts on %q, as %q does", name, c, c.target(), other)
			}
			targets[c.target()] = name
			if refused := p.check(c); refused != nil {
				t.Errorf("%s: %v", name, refused)
			}
		}
		nothing, err := k.decode([]byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if p.check(nothing) == nil {
			t.Errorf("%s: a policy allows %+v", name, nothing)
		}
		u, again := k.undo(), k.undo()
		u.place().Boot = "b"
		text, err := json.Marshal(u)
		if err == nil {
			err = decodeStrict(text, again)
		}
		if err != nil || !reflect.DeepEqual(u, again) {
			t.Errorf("%s: undo %s is read as %+v, %v", name, text, again, err)
		}
	}
}

// The names by which the host process starts our own program are those of what
// it runs there.
func TestOurDaemonsAreThoseOfTheRoutingDaemon(t *testing.T) {
	var own []string
	for name, kind := range daemonKinds() {
		if kind.binary != agentBinary || kind.mesh {
			continue
		}
		own = append(own, name)
		if forward, err := manetd.Forwards(name); err != nil || forward != kind.forward {
			t.Errorf("%s: the kernel forwards: %v, and is to: %v, %v", name, kind.forward, forward, err)
		}
	}
	if names := manetd.Names(); !slices.Equal(slices.Sorted(slices.Values(own)), slices.Sorted(slices.Values(names))) {
		t.Errorf("started are %q, and there are %q", own, names)
	}
	if !daemonKinds()[batman.Protocol].mesh {
		t.Error("batman-adv is not started as a mesh of layer 2")
	}
}

func TestWhatIsNoChangeIsNotTaken(t *testing.T) {
	link := `{"link":{"interface":"wlan0","up":true}}`
	for text, want := range map[string]string{
		`{}`:     "0 kinds",
		`null`:   "0 kinds",
		`"link"`: "cannot unmarshal",
		`{"link":{"interface":"wlan0","up":true},"sysctl":{"key":"net.ipv4.tcp_sack","value":"0"}}`: "2 kinds",
		`{"bpf_congestion":{"program":"tahoe"},"held_rto":{}}`:                                      "2 kinds",
		`{"reboot":{}}`: `"reboot" is not a kind`,
		`{"Link":{}}`:   `"Link" is not a kind`,
		`{"link":{"interface":"wlan0","up":true,"then":"sh"}}`: `unknown field "then"`,
		`{"link":[]}`: "kind link",
	} {
		for _, changes := range []string{text, link + "," + text} {
			_, err := decodeRequest([]byte(`{"apply":{"scope":"run","changes":[` + changes + `]}}`))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", changes, err, want)
			}
		}
	}
	r, err := decodeRequest([]byte(`{"apply":{"scope":"run","changes":[` + link + `,` + link + `]}}`))
	if err != nil || !reflect.DeepEqual(r.Apply.changes(), slices.Repeat([]Change{linkUp()}, 2)) {
		t.Errorf("%+v, %v", r, err)
	}
}
