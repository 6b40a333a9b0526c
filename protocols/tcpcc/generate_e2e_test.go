//go:build e2e

package tcpcc

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compiledBy is the compiler of the objects that are kept: another one's differ
// in their bytes though not in what they do.
const compiledBy = "clang version 14.0.6"

// TestE2EObjectsAreTheirSources compiles every program again. What is kept must
// be, byte for byte, what the sources give with the same compiler.
func TestE2EObjectsAreTheirSources(t *testing.T) {
	for _, tool := range []string{"clang", "llvm-strip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s, which is not installed", tool)
		}
	}
	dir := t.TempDir()
	if out, err := exec.Command("bpf/generate.sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("generate: %v\n%s", err, out)
	}
	version, err := exec.Command("clang", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(version), compiledBy) {
		t.Skipf("the sources compile; whether the objects are theirs only %s can tell, and here is %s", compiledBy,
			version)
	}
	sources, err := filepath.Glob("bpf/*.bpf.c")
	if err != nil || len(sources) != len(Programs())+3 { // RTO, Clamp and Events
		t.Errorf("%d sources of %d congestion controls and three others, %v", len(sources), len(Programs()), err)
	}
	yardsticks, err := filepath.Glob("bpf/yardsticks/*.bpf.c")
	if err != nil || len(yardsticks) == 0 {
		t.Errorf("%d yardsticks, %v", len(yardsticks), err)
	}
	for _, source := range append(sources, yardsticks...) {
		object := strings.TrimPrefix(strings.TrimSuffix(source, ".c")+".o", "bpf/")
		kept, err := os.ReadFile(filepath.Join("bpf", object))
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := os.ReadFile(filepath.Join(dir, object))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(kept, fresh) {
			t.Errorf("%s is not what its source gives: run bpf/generate.sh", object)
		}
	}
}
