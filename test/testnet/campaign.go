package testnet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Campaign writes a campaign that ships into a folder of the test's, as
// NAME.yaml and with changes, each a text that stands in it once and what takes
// its place.
func Campaign(t *testing.T, shipped, name string, changes ...string) string {
	t.Helper()
	text, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	out := string(text)
	for i := 0; i < len(changes); i += 2 {
		if strings.Count(out, changes[i]) != 1 {
			t.Fatalf("%s does not hold %q once", shipped, changes[i])
		}
		out = strings.Replace(out, changes[i], changes[i+1], 1)
	}
	path := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
