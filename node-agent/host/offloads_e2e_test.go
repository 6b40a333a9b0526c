//go:build e2e

package host

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
)

// offloaded is what ethtool says of the field's interface.
func (f field) offloaded(t *testing.T) string {
	t.Helper()
	return f.ns.Run(t, "ethtool", "-k", device)
}

// A capture's offloads go off, and what was on comes back on, feature by
// feature, however the host process ends.
func TestE2EOffloadsGoOffAndComeBack(t *testing.T) {
	f, _ := newField(t)
	// Not everything is on at first, and what is off must stay so.
	f.ns.Run(t, "ethtool", "-K", device, "gro", "on", "tx-tcp-ecn-segmentation", "off", "rx-gro-list", "on")
	before := f.offloaded(t)
	for _, want := range []string{"generic-receive-offload: on", "generic-segmentation-offload: on",
		"tx-tcp-ecn-segmentation: off", "rx-gro-list: on"} {
		if !strings.Contains(before, want) {
			t.Fatalf("the interface does not have %q:\n%s", want, before)
		}
	}
	all := []change.Change{change.Offloads{Interface: device}}
	off := func() {
		t.Helper()
		now := f.offloaded(t)
		for _, want := range []string{"generic-receive-offload: off", "generic-segmentation-offload: off",
			"tcp-segmentation-offload: off", "rx-gro-list: off", "tx-udp-segmentation: off"} {
			if !strings.Contains(now, want) {
				t.Errorf("with offloads off there is no %q:\n%s", want, now)
			}
		}
	}
	c, cmd := f.start(t, true)
	apply(t, c, ScopeTrial, all)
	off()
	apply(t, c, ScopeTrial, all) // again, as after a lost answer
	restoreAll(t, c)
	mustEqual(t, "after a restore", before, f.offloaded(t))

	apply(t, c, ScopeTrial, all)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	off()
	c, cmd = f.start(t, true)
	mustEqual(t, "after SIGKILL and another start", before, f.offloaded(t))
	apply(t, c, ScopeTrial, all)
	terminate(t, cmd)
	mustEqual(t, "after SIGTERM", before, f.offloaded(t))
}

func TestE2EOffloadsOfAnInterfaceThatIsNotThere(t *testing.T) {
	f, _ := newField(t)
	f.ns.Do(t, func() error {
		if _, err := netstack.ReadFeatures("nosuch0"); !errors.Is(err, unix.ENODEV) {
			t.Errorf("features of an interface that is not there: %v", err)
		}
		return nil
	})
}
