//go:build e2e

package packaging

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The agent is built for Android as it is, with what a phone starts: its programs may lie
// anywhere in memory, and Android's own loader starts them.
func TestE2ETheAgentIsBuiltForAndroid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fieldmesh-agent")
	build := exec.Command("go", "build", "-tags", "nethttpomithttp2", "-o", path,
		"fieldmesh.dev/fieldmesh/cmd/fieldmesh-agent")
	build.Env = append(os.Environ(), "GOOS=android", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != elf.EM_AARCH64 || f.Type != elf.ET_DYN {
		t.Errorf("it is for %v, of type %v", f.Machine, f.Type)
	}
}
