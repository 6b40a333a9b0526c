package packaging

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What ProtectClock allows, systemd before 252 takes for all that is allowed: a unit that has it names each device
// that the agent's privileged half opens, beside those of DevicePolicy=closed (systemd.resource-control).
func TestTheUnitNamesItsDevices(t *testing.T) {
	text, err := os.ReadFile("debian/fieldmesh-host.service")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	source, err := os.ReadFile("../node-agent/routing/manetd/tun.go")
	if err != nil {
		t.Fatal(err)
	}
	opened := regexp.MustCompile(`"(/dev/[^"]+)"`).FindSubmatch(source)
	if opened == nil {
		t.Fatal("the routing protocols open no device any more")
	}
	for _, want := range []string{"DevicePolicy=closed", "DeviceAllow=" + string(opened[1]) + " rw",
		"DeviceAllow=/dev/rfkill r"} {
		if slices.Contains(lines, "ProtectClock=yes") && !slices.Contains(lines, want) {
			t.Errorf("the unit has no line %s", want)
		}
	}
}
