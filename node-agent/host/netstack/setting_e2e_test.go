//go:build e2e

package netstack

import (
	"errors"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// An undo puts net.ipv4.ip_forward back first, with which the kernel sets every interface's forwarding. If it is cut
// off there, the next one does not take that for somebody else's.
func TestE2EAnUndoOfForwardingThatWasCutOffIsEnded(t *testing.T) {
	testnet.NewNS(t, "forward").Do(t, func() error {
		sysctl := func(name ...string) Setting { return Setting{Parts: append([]string{"net", "ipv4"}, name...)} }
		forward, lo := sysctl("ip_forward"), sysctl("conf", "lo", "forwarding")
		redirects, other := sysctl("conf", "all", "accept_redirects"), sysctl("conf", "default", "forwarding")
		set := func(s Setting, value string) error { return WriteSysctl(s.Path(), value) }
		if err := errors.Join(set(forward, "0"), set(lo, "1"), set(redirects, "0")); err != nil {
			return err
		}
		effects, err := SideEffects(forward.Parts, "1")
		if err != nil {
			return err
		}
		wanted := append(Settings{{Parts: forward.Parts, Value: "1"}}, effects...)
		before, err := ReadSettings(wanted)
		if err != nil {
			return err
		}
		if err := errors.Join(set(forward, "1"), set(forward, "0")); err != nil { // done, and undone in part
			return err
		}
		note, err := Settings(before).Revert()
		if err != nil || note != "" {
			t.Errorf("the undo says %q, %v", note, err)
		}
		for _, want := range []struct {
			Setting
			value string
		}{{forward, "0"}, {lo, "1"}, {redirects, "0"}, {other, "0"}} {
			if now, err := ReadSysctl(want.Path()); err != nil || now != want.value {
				t.Errorf("%s is %s, want %s; %v", want.key(), now, want.value, err)
			}
		}
		return nil
	})
}
