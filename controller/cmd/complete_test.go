package cmd

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// What a shell offers is what there is.
func TestCompletion(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8, 16.7}, Repetitions: 1})
	runs, chain := filepath.Dir(a.Dir()), filepath.Join("..", "..", "campaigns", "variants-chain.yaml")
	for _, c := range []struct {
		want string
		args []string
	}{
		{"run\n", []string{"report", "--runs", runs, "r"}},
		{"run\n", []string{"pull", "--runs", runs, ""}},
		{"run\n", []string{"rehearse", "--runs", runs, "--resume", ""}},
		{"full\nnight\nquick\nsmoke\n", []string{"plan", "show", chain, "--scale", ""}},
		{"full\nnight\nquick\nsmoke\n", []string{"rehearse", chain, "--scale", ""}},
		{"1\n2\n3\n4\n", []string{"topology", "run", "--runs", runs, "--trial", ""}},
		{"olsr\n", []string{"simulate-routing", "--protocol", ""}},
	} {
		root := Root()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&bytes.Buffer{})
		root.SetArgs(append([]string{"__complete"}, c.args...))
		if err := root.Execute(); err != nil || !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("%v: %v, %q, want %q", c.args, err, out.String(), c.want)
		}
	}
}
