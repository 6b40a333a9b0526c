package metrics

import (
	"errors"
	"fmt"
	"io/fs"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/verdict"
)

// Lack is a capture that is not of the whole window: what it has not would be
// taken for lost, or never sent. No figure that needs it is told.
type Lack struct{ Node, What string }

// Lacks lists the attempt's captures that do not hold the whole window, in the
// order of its nodes: every node of a trial captures. Whether a file can be read
// is not looked at.
func (at Attempt) Lacks(a *archive.Archive) []Lack {
	nodes, windows, any := at.trial.Nodes(), 0, at.trial.Capture != nil
	for _, n := range nodes {
		any = any || at.captureOf(n) != nil
		if verdict.WindowOf(n, at.records) != nil {
			windows++
		}
	}
	if !any || windows == 0 {
		return nil
	}
	var out []Lack
	for _, n := range nodes {
		if what := at.lack(a, n); what != "" {
			out = append(out, Lack{n, what})
		}
	}
	return out
}

// lack is what a node's capture has not, in words; empty when it is whole.
func (at Attempt) lack(a *archive.Archive, node string) string {
	w, told := verdict.WindowOf(node, at.records), at.captureOf(node)
	switch {
	case w == nil:
		return "the node had no window"
	case told == nil:
		return "there is no record of it"
	case told.Error != "":
		return "it failed: " + told.Error
	case told.FileDrops > 0:
		return fmt.Sprintf("its file was full, and %d packets are missing", told.FileDrops)
	case told.OpenBootNs > w.OpenBootNs:
		return fmt.Sprintf("it began %.3g s after the window opened", float64(told.OpenBootNs-w.OpenBootNs)/1e9)
	case told.CloseBootNs < w.CloseBootNs:
		return fmt.Sprintf("it ended %.3g s before the window closed", float64(w.CloseBootNs-told.CloseBootNs)/1e9)
	}
	f, err := a.OpenCapture(at.key, node)
	if errors.Is(err, fs.ErrNotExist) {
		return "its file is not in the archive"
	}
	if err == nil {
		_ = f.Close() // nothing was written
	}
	return ""
}

// fileDrops sums what captures' files had no room for.
func (at Attempt) fileDrops() *float64 {
	var sum *float64
	for _, n := range at.trial.Nodes() {
		if told := at.captureOf(n); told != nil {
			if sum == nil {
				sum = new(float64)
			}
			*sum += float64(told.FileDrops)
		}
	}
	return sum
}
