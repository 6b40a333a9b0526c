package change

import (
	"encoding/json"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/node-agent/routing/manetd"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// TestEveryKindHasItsVerbs: what the compiler cannot see of a kind. There is a
// sample of each, which a policy that lets it in allows; a change that says
// nothing is refused.
func TestEveryKindHasItsVerbs(t *testing.T) {
	data, err := os.ReadFile("testdata/samples.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ Change Boxed }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	samples := map[string][]Change{}
	for _, s := range all {
		name, _, err := kindOf(s.Change.Change)
		if err != nil {
			t.Fatal(err)
		}
		samples[name] = append(samples[name], s.Change.Change)
	}
	p := Policy{Interfaces: []string{"wlan0"}, Beside: "wlan9", ControlPort: 7443,
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16")},
		Binaries: map[string]string{babeld: "/usr/sbin/babeld", AgentBinary: "/usr/bin/fieldmesh-agent"}}
	targets := map[string]string{}
	for name, k := range kinds() {
		if len(samples[name]) == 0 {
			t.Errorf("%s: there is no sample of it in testdata/samples.json", name)
		}
		for _, c := range samples[name] {
			if other := targets[c.Target()]; c.Target() == "" || c.String() == "" || other != "" && other != name {
				t.Errorf("%s: %q acts on %q, as %q does", name, c, c.Target(), other)
			}
			targets[c.Target()] = name
			if refused := p.Check(c); refused != nil {
				t.Errorf("%s: %v", name, refused)
			}
		}
		nothing, err := k.decode([]byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if p.Check(nothing) == nil {
			t.Errorf("%s: a policy allows %+v", name, nothing)
		}
		u, again := k.undo(), k.undo()
		u.Place().Boot = "b"
		text, err := json.Marshal(u)
		if err == nil {
			err = DecodeStrict(text, again)
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
		if kind.binary != AgentBinary || kind.mesh {
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
	for _, p := range manetd.Protocols() {
		if wants := (wire.Routing{Protocol: p.Name}).WantsRoutesInUse(); wants != p.OnDemand {
			t.Errorf("%s is told which routes data uses: %v, and the host sees to it: %v", p.Name, p.OnDemand, wants)
		}
		refused := routesUnknown(p.Name, unix.EPROTONOSUPPORT)
		if (refused != nil) != p.OnDemand {
			t.Errorf("%s on a kernel without nftables: %v", p.Name, refused)
		}
		if refused != nil && !(strings.Contains(refused.Reason, p.Name) && strings.Contains(refused.Cure, "nftables")) {
			t.Errorf("%s is refused with %q, %q", p.Name, refused.Reason, refused.Cure)
		}
		if refused := routesUnknown(p.Name, nil); refused != nil {
			t.Errorf("%s is refused: %v", p.Name, refused)
		}
	}
	if !daemonKinds()[batman.Protocol].mesh {
		t.Error("batman-adv is not started as a mesh of layer 2")
	}
}
