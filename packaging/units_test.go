package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
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

// The loader of a program that may be started starts whatever file can be read.
//
//attack:face whoever has taken over that of the package has a loader run what it wrote | nothing in the folders that
//attack:and its unit lets it write may run
func TestNothingThatTheFaceWritesIsAProgram(t *testing.T) {
	unit, err := os.ReadFile("debian/fieldmesh-face.service")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(unit), "\nNoExecPaths=/var/lib/fieldmesh /tmp /var/tmp -/dev/shm\n") {
		t.Error("the unit lets it start what lies in a folder that it may write")
	}
}

// A removal that does not put the machine back leaves the node as it was at boot: only then does a reboot put it back.
func TestARefusedRemovalDisablesNothing(t *testing.T) {
	text, err := os.ReadFile("debian/fieldmesh-agent.prerm")
	if err != nil {
		t.Fatal(err)
	}
	for restored, want := range map[string]string{
		"true": "systemctl stop fieldmesh-face.service fieldmesh-host.service\nrestore\n" +
			"systemctl disable fieldmesh-face.service fieldmesh-host.service\n",
		"false": "systemctl stop fieldmesh-face.service fieldmesh-host.service\nrestore\n",
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"prerm": strings.NewReplacer("/run/systemd/system", dir, "/etc/fieldmesh", dir, "/var/lib/fieldmesh", dir).
				Replace(string(text)),
			"systemctl":       "#!/bin/sh\necho systemctl $* >>" + dir + "/said\n",
			"fieldmesh-agent": "#!/bin/sh\necho $* >>" + dir + "/said\n" + restored + "\n",
			"host/journal":    "not put back\n",
		} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		remove := exec.Command("sh", filepath.Join(dir, "prerm"), "remove")
		remove.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := remove.CombinedOutput(); (err == nil) != (restored == "true") {
			t.Errorf("restore says %s, the removal %v\n%s", restored, err, out)
		}
		if said, err := os.ReadFile(filepath.Join(dir, "said")); err != nil || string(said) != want {
			t.Errorf("restore says %s, and it runs\n%swant\n%s%v", restored, said, want, err)
		}
	}
}
