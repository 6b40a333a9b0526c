//go:build e2e

package android

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

const module = modules + "/fieldmesh"

// installer is what customize.sh has of the managers' installers.
const installer = `ui_print() { echo "$1"; }; abort() { echo "$1"; exit 1; }
set_perm() { chown $2:$3 "$1" && chmod $4 "$1"; }
ARCH=arm64; MODPATH=` + module + `; . $MODPATH/customize.sh`

// newModule is a field whose phone runs the module, installed as a manager does it.
func newModule(t *testing.T, su manner) *field {
	t.Helper()
	f := installModule(t, su)
	f.namePhone(t)
	f.boot(t, su)
	f.logs(t, "node is ready")
	return f
}

// installModule is a field whose phone has the module, and was not booted since.
func installModule(t *testing.T, su manner) *field {
	t.Helper()
	f := newFieldWithoutAgent(t, su)
	f.installModule(t)
	return f
}

// installModule installs the module on the phone.
func (f *field) installModule(t *testing.T) {
	t.Helper()
	for _, name := range []string{"module/module.prop", "module/customize.sh", "module/service.sh",
		"module/uninstall.sh", "termux/agent.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "packaging", name))
		if err != nil {
			t.Fatal(err)
		}
		f.phone.write(t, module+"/"+filepath.Base(name), string(text), 0o755)
	}
	f.phone.mustRoot(t, "cp", termux+"/bin/fieldmesh-agent", module+"/fieldmesh-agent")
	f.phone.mustRoot(t, "chmod", "700", "/data/adb")
	t.Log(f.phone.must(t, nil, "/system/bin/sh", "-c", installer))
}

// boot is a boot as the manager sees it, before anybody unlocks the phone.
func (f *field) boot(t *testing.T, su manner) {
	t.Helper()
	if su == kernelSU {
		f.phone.mustRoot(t, "rm", "-f", home+"/service.log")
		f.phone.must(t, nil, "/debug_ramdisk/ksud")
	} else {
		for _, pid := range f.processes("magiskd") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		f.phone.mustRoot(t, "rm", "-f", home+"/service.log", suSocket)
		testnet.Start(t, f.phone.command(nil, "/debug_ramdisk/magiskd"))
	}
}

// logs waits until the service's log has some words.
func (f *field) logs(t *testing.T, words string) {
	t.Helper()
	var text []byte
	testnet.Await(t, 60*time.Second, "the service logs "+words, func() bool {
		text, _ = os.ReadFile(f.phone.path(home + "/service.log"))
		return strings.Contains(string(text), words)
	})
}

// off disables the module in its manager, after which the agent ends by itself.
func (f *field) off(t *testing.T) {
	t.Helper()
	f.phone.write(t, module+"/disable", "", 0o644)
	f.ended(t, "the agent of a module that is disabled")
	f.logs(t, "nothing to put back")
	f.isAsBefore(t)
}

// ended waits until no process of the agent's is left, nor of its service's.
func (f *field) ended(t *testing.T, what string) {
	t.Helper()
	testnet.Await(t, 60*time.Second, "the end of "+what, func() bool {
		return len(f.agents())+len(f.processes("sh "+module)) == 0
	})
}

// The module owns the agent, whatever the manager: it runs from boot on, and stops
// in order with the module.
func TestE2EModuleOwnsTheAgent(t *testing.T) {
	for _, su := range []manner{magisk, kernelSU} {
		t.Run(string(su), func(t *testing.T) {
			f := newModule(t, su)
			accepted(t, f.end(t, f.begin(t, "module")))
			f.off(t)
		})
	}
}

// Whoever ends the module's shell in a window ends the agent, in order, and the next
// boot has it again.
func TestE2EModulesAgentEndsWithItsShell(t *testing.T) {
	f := newModule(t, kernelSU)
	run := f.begin(t, "shell")
	run.Says(t, "measuring")
	shells := f.processes("sh " + module) // the older one started the other
	if len(shells) != 2 {
		t.Fatalf("the service has the shells %v", shells)
	}
	f.phone.write(t, "/sys/power/wake_unlock", "", 0o600)
	if err := syscall.Kill(slices.Min(shells), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.ended(t, "the agent whose shell was killed")
	f.isAsBefore(t)
	f.sleepsAgain(t)
	f.boot(t, kernelSU)
	f.logs(t, "node is ready")
	accepted(t, f.end(t, run))
	f.off(t)
}

// sleepsAgain fails the test unless the phone was kept awake, and is not any more.
func (f *field) sleepsAgain(t *testing.T) {
	t.Helper()
	for _, name := range []string{"wake_lock", "wake_unlock"} {
		text, err := os.ReadFile(f.phone.path("/sys/power/" + name))
		if err != nil || string(text) != "fieldmesh\n" {
			t.Errorf("%s has %q, %v", name, text, err)
		}
	}
}

// A phone that stopped in a window is put back at the next boot, before the agent
// runs; nothing puts it back under an agent that lives.
func TestE2EModulePutsThePhoneBackAtBoot(t *testing.T) {
	f := newModule(t, magisk)
	run := f.begin(t, "boot")
	run.Says(t, "measuring")
	f.phone.must(t, nil, "/system/bin/sh", module+"/uninstall.sh") // removed in the manager, and taken for a boot
	if said := f.end(t, run); !good.MatchString(said) || strings.Contains(said, "host_restored") {
		t.Error("the phone was put back under a living agent")
	}
	if _, err := os.Stat(f.phone.path(home + "/fieldmesh-agent")); err != nil {
		t.Errorf("what could not put the phone back is gone: %v", err)
	}
	// The window has to be open still when its beginning has been read and the processes been found.
	if err := os.WriteFile(f.path("campaign.yaml"), []byte(lasting(10)), 0o644); err != nil {
		t.Fatal(err)
	}
	run = f.begin(t, "power")
	run.Says(t, "measuring")
	f.killAll(t, "sh "+module, "fieldmesh-agent ")
	if testnet.Snapshot(t, f.phone.ns.Name) == f.before {
		t.Error("nothing is left changed when the power goes: the test shows nothing")
	}
	f.boot(t, magisk)
	f.logs(t, "node is ready")
	text, err := os.ReadFile(f.phone.path(home + "/service.log"))
	if undone := strings.Index(string(text), "undone"); err != nil || undone < 0 ||
		undone > strings.Index(string(text), "node is ready") {
		t.Errorf("before the agent runs, the phone is not put back: %v\n%s", err, text)
	}
	accepted(t, f.end(t, run))
	f.off(t)
}

// A phone is paired after the module's first boot. A module that is removed takes its
// programs with it, and leaves the owner's keys.
func TestE2EModuleThatIsRemovedLeavesTheOwnersKeys(t *testing.T) {
	f := installModule(t, kernelSU)
	f.boot(t, kernelSU)
	testnet.Await(t, 30*time.Second, "the agent's program", func() bool {
		_, err := os.Stat(f.phone.path(home + "/fieldmesh-agent"))
		return err == nil
	})
	f.namePhone(t) // by then the service has tried in vain to start the agent
	f.logs(t, "node is ready")
	f.phone.write(t, module+"/remove", "", 0o644)
	f.ended(t, "the agent of a module that is removed")
	f.phone.must(t, nil, "/system/bin/sh", module+"/uninstall.sh")
	want := []string{"agent.yaml", "keys", "state"}
	testnet.Await(t, 30*time.Second, fmt.Sprintf("that %v are left", want), func() bool {
		left, err := os.ReadDir(f.phone.path(home))
		var names []string
		for _, e := range left {
			names = append(names, e.Name())
		}
		return err == nil && slices.Equal(names, want)
	})
	f.isAsBefore(t)
}

// killAll kills the phone's processes of some words, of each of which there has to be
// one, at once: all are stopped before the first is killed, so that none puts anything
// back because another has gone. One that is missed, as it begins, is met when they are
// looked for again.
func (f *field) killAll(t *testing.T, words ...string) {
	t.Helper()
	signal := func(pid int, s syscall.Signal) {
		if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
			t.Error(err)
		}
	}
	stopped, found := map[int]bool{}, map[string]bool{}
	for before := -1; len(stopped) > before; {
		before = len(stopped)
		for _, w := range words {
			for _, pid := range f.processes(w) {
				if found[w] = true; !stopped[pid] {
					signal(pid, syscall.SIGSTOP)
					stopped[pid] = true
				}
			}
		}
	}
	for _, w := range words {
		if !found[w] {
			t.Errorf("there is no process %q", w)
		}
	}
	t.Logf("%d processes are killed", len(stopped))
	for pid := range stopped {
		signal(pid, syscall.SIGKILL)
	}
}
