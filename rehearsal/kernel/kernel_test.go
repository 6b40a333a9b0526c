package kernel

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// The script and the program must agree on what a kernel is called, or the
// program never finds what was built.
func TestTheScriptNamesKernelsAsTheProgramDoes(t *testing.T) {
	for _, version := range []string{"", "7.3", "6.12"} {
		args := []string{"--hash"}
		if version != "" {
			args = append(args, version)
		}
		out, err := exec.Command("./build", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		got, err := hashOf(version)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.TrimSpace(string(out)); got != want || len(got) != hashDigits {
			t.Errorf("kernel %q: the program says %q, the script %q", version, got, want)
		}
	}
	if hash, err := hashOf("5.10"); err == nil {
		t.Errorf("a kernel that nobody knows has the hash %q", hash)
	}
}

// Every option has its reason: a comment above it, or above the group.
func TestEveryOptionHasItsReason(t *testing.T) {
	text, err := os.ReadFile("config")
	if err != nil {
		t.Fatal(err)
	}
	reason, seen := false, map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			reason = true
		case line == "":
			reason = false
		case !reason:
			t.Errorf("config:%d: %s has no reason above it", i+1, line)
		case seen[line]:
			t.Errorf("config:%d: %s is there twice", i+1, line)
		}
		seen[line] = line != ""
	}
}

func TestCongestionControlsAreThoseOfTheConfiguration(t *testing.T) {
	got, err := congestion()
	if want := []string{"reno", "cubic", "westwood", "vegas", "veno", "bbr"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// Every program that there is of a congestion control is compiled in, and can be
// asked for.
func TestEveryProgramIsCompiledIn(t *testing.T) {
	makefile, err := os.ReadFile("tcpcc/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	device, err := os.ReadFile("tcpcc/device.c")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join(tcpcc.Programs(), " ")
	if line := "programs := " + want + " " + tcpcc.Events + "\n"; !strings.Contains(string(makefile), line) {
		t.Errorf("tcpcc/Makefile does not say %q", line)
	}
	line := "each(" + strings.Join(tcpcc.Programs(), ") each(") + ")"
	if !strings.Contains(strings.ReplaceAll(string(device), "\\\n\t", ""), line) {
		t.Errorf("tcpcc/device.c does not say %q", line)
	}
}

func TestAKernelIsFoundWhereItWasBuilt(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	hash, err := hashOf("")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cache, "fieldmesh/kernel", hash, "linux")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho 7.0-test\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	k, err := Find()
	if err != nil || k.Path != path || k.Configuration != hash || k.Version != "7.0-test" {
		t.Errorf("found %+v, %v", k, err)
	}
	if named, err := At(path); err != nil || named != k {
		t.Errorf("named, it is %+v, %v; want %+v", named, err, k)
	}
}

// A run keeps the kernel that it was begun with, though another version of
// Fieldmesh builds another: it is named by its file.
func TestAFormerKernelIsKnownByWhatItWasBuiltFrom(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	const former = "0123456789abcdef"
	built, copied := filepath.Join(cache, "fieldmesh/kernel", former, "linux"), filepath.Join(cache, former, "linux")
	for _, path := range []string{built, copied} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho 7.0-test\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if k, err := At(built); err != nil || k.Configuration != former {
		t.Errorf("where it was built: %+v, %v", k, err)
	}
	if k, err := At(copied); err != nil || k.Configuration == former || len(k.Configuration) != hashDigits {
		t.Errorf("elsewhere, where a folder's name says nothing: %+v, %v", k, err)
	}
	if path, err := Built(former); err != nil || path != built {
		t.Errorf("it lies in %q, %v", path, err)
	}
	if path, err := Built("none"); !errors.Is(err, ErrNone) {
		t.Errorf("one that is not there lies in %q, %v", path, err)
	}
}

func TestAVariantThatTheKernelLacksIsRefused(t *testing.T) {
	for _, c := range []struct {
		tcp  wire.TCP
		want string // part of the refusal; "": none
	}{
		{wire.TCP{Variant: "reno"}, ""},
		{wire.TCP{Variant: "sack"}, ""},
		{wire.TCP{Variant: "westwood"}, ""},
		{wire.TCP{Variant: "reno", Classic: true}, ""},
		{wire.TCP{Variant: "tahoe"}, ""},
		{wire.TCP{Variant: "reference"}, ""},
		{wire.TCP{Variant: "illinois"}, "illinois"},
	} {
		err := Check([]wire.Trial{{Number: 3, TCP: c.tcp}})
		if (err != nil) != (c.want != "") || err != nil &&
			(!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "--clock real")) {
			t.Errorf("%+v: %v, want %q", c.tcp, err, c.want)
		}
	}
}
