//go:build e2e

package android

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// loader stands in the place of Android's, which is not to be had.
const loader = "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"

// buildForAndroid builds one of the programs as phones get it, and returns where it is.
func buildForAndroid(t *testing.T, program string) string {
	t.Helper()
	testnet.Need(t, "qemu-aarch64")
	if _, err := os.Stat(loader); err != nil {
		t.Skipf("needs a loader in the place of Android's (scripts/setup test installs it): %v", err)
	}
	path := filepath.Join(t.TempDir(), program)
	build := exec.Command("go", "build", "-trimpath", "-tags", "nethttpomithttp2", "-o", path,
		"fieldmesh.dev/fieldmesh/cmd/"+program)
	build.Env = append(os.Environ(), "GOOS=android", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// emulate runs a command in a user namespace of its own, in which programs for arm64 are run by qemu.
func emulate(words []string) error {
	const register = `mount -t tmpfs none /media && mkdir -p /media/binfmt /media/root/system/bin &&
cp "$0" /media/root/system/bin/linker64 && mount -t binfmt_misc none /media/binfmt &&
printf '%s' ':arm64:M:0:\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\xb7\x00:` +
		`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff:/usr/bin/qemu-aarch64:F' ` +
		`>/media/binfmt/register && exec "$@"`
	all := []syscall.SysProcIDMap{{Size: 1 << 16}}
	c := exec.Command("sh", slices.Concat([]string{"-c", register, loader}, words)...)
	c.Stdout, c.Stderr, c.Env = os.Stdout, os.Stderr, append(os.Environ(), "QEMU_LD_PREFIX=/media/root")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: all,
		GidMappings: all, GidMappingsEnableSetgroups: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return fmt.Errorf("emulate: %w", err)
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM)
	go func() {
		for s := range ends {
			_ = c.Process.Signal(s)
		}
	}()
	return c.Wait()
}

// emulator is the program that emulates, which is this one by another name.
func (p *stock) emulator(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	path := filepath.Join(t.TempDir(), "emulate")
	if err == nil {
		err = os.Symlink(self, path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestE2EAgentForAndroidMeasuresNothingThatItCannotRead has one phone's agent be that of the phone app, built for
// Android on arm64. It is paired, takes its part in trials, and leaves nothing. But the emulator's kernel tells no
// counts of TCP's, so no trial may have a result: a receiver without counts is none that received nothing.
func TestE2EAgentForAndroidMeasuresNothingThatItCannotRead(t *testing.T) {
	agent, err := os.ReadFile(buildForAndroid(t, "fieldmesh-agent"))
	if err != nil {
		t.Fatal(err)
	}
	campaign := soakCampaign(t, "repetitions: 2", "repetitions: 1", "radio: {mode: hotspot, access_point: roadside, "+
		"channel: 6, ssid: fieldmesh}", "radio: {mode: none}")
	alpha, bravo := twoStockPhones(t, strings.Replace(campaign, "attempts_max: 20", "attempts_max: 1", 1))
	bravo.killAtOnce(t)
	path := bravo.own("programs/" + agentOfApp)
	if err := errors.Join(os.Remove(path), os.WriteFile(path, agent, 0o755)); err != nil {
		t.Fatal(err)
	}
	bravo.emulated = true
	bravo.boot(t)
	run := alpha.begin(t, "emulated")
	if err := run.Wait(t, 5*time.Minute); err == nil {
		t.Errorf("trials without counts were accepted:\n%s", run.Said())
	}
	if said := run.Said(); !strings.Contains(said, "0 of 4 trials accepted") {
		t.Errorf("of what cannot be read there is a result:\n%s", said)
	}
	if said := bravo.app.Said(); !strings.Contains(said, "sample tcp sockets: read a socket's") {
		t.Errorf("the phone does not tell what it cannot read:\n%s", said)
	}
	alpha.ends(t)
	bravo.ends(t)
}
