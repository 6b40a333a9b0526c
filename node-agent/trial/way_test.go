package trial

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A node whose packets to a peer leave by another interface does not arm, and says
// by which.
func TestANodeWithAnotherWayToAPeerDoesNotArm(t *testing.T) {
	for name, c := range map[string]struct {
		iface string
		err   error
		want  string // empty: it arms
	}{
		"by the one under test": {"wlan0", nil, ""},
		"by another":            {"rmnet0", nil, "packets to road at 127.0.0.2 leave by rmnet0, not by wlan0"},
		"none":                  {"", errors.New("network is unreachable"), "no way to road at 127.0.0.2: network"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "car", t.TempDir(), 0)
			r.deps.Way = func(netip.Addr) (string, error) { return c.iface, c.err }
			r.start(t)
			plan := twoNodePlan(1, 0, 0)
			if _, err := r.Lease(t.Context(), holder, wire.Lease{Holder: "desk", TTLS: 30}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Load(t.Context(), holder, plan); err != nil {
				t.Fatal(err)
			}
			_, err := r.Arm(t.Context(), holder, plan.Run, wire.TrialKey{Trial: 1, Attempt: 1})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("armed: %v, want %q", err, c.want)
			}
		})
	}
}
