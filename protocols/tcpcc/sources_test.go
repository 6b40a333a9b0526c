package tcpcc

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestObjectsAreOfTheseSources: the sources are those that the objects were
// compiled from. That the objects are what the compiler gives is for
// TestE2EObjectsAreTheirSources.
func TestObjectsAreOfTheseSources(t *testing.T) {
	data, err := os.ReadFile("bpf/sources.sha256")
	if err != nil {
		t.Fatal(err)
	}
	var now []string
	for _, pattern := range []string{"*.c", "*.h", "yardsticks/*.c", "yardsticks/*.h"} {
		paths, err := filepath.Glob(filepath.Join("bpf", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no %s: %v", pattern, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			now = append(now, fmt.Sprintf("%x  %s", sha256.Sum256(text), strings.TrimPrefix(path, "bpf/")))
		}
	}
	then := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(data), "  ./", "  ")), "\n")
	if slices.Sort(now); !slices.Equal(slices.Sorted(slices.Values(then)), now) {
		t.Error("the sources changed since the objects were compiled: go generate ./protocols/tcpcc")
	}
}
