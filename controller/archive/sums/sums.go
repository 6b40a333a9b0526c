// Package sums is the text of a manifest: files with their SHA-256, in the form that sha256sum -c reads from within
// their folder. The sizes stand in comments, so that a file cut short is told from one that was changed.
package sums

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// File is one that a manifest names.
type File struct {
	Name   string // from its folder, with slashes
	SHA256 string // in hex
	Size   int64  // bytes; negative: not told
}

// Text is a manifest of files.
func Text(files []File) []byte {
	var sizes, sums bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&sizes, "# %d bytes: %s\n", f.Size, f.Name)
		fmt.Fprintf(&sums, "%s  %s\n", f.SHA256, f.Name)
	}
	return append(sizes.Bytes(), sums.Bytes()...)
}

// Parse returns the files that a manifest names, and those of its lines that are none of a manifest. A size without its
// sum is one: the manifest was cut.
func Parse(text []byte) (files []File, wrong []string) {
	sizes := map[string]int64{}
	for raw := range bytes.Lines(text) {
		line := string(bytes.TrimSuffix(raw, []byte("\n")))
		if comment, ok := strings.CutPrefix(line, "# "); ok {
			count, name, _ := strings.Cut(comment, " bytes: ")
			var size int64
			if _, err := fmt.Sscan(count, &size); err == nil {
				sizes[name] = size
			}
			continue
		}
		sum, name, ok := strings.Cut(line, "  ")
		if !ok || len(sum) != 64 || !filepath.IsLocal(filepath.FromSlash(name)) {
			wrong = append(wrong, line)
			continue
		}
		size, told := sizes[name]
		if !told {
			size = -1
		}
		delete(sizes, name)
		files = append(files, File{name, sum, size})
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		wrong = append(wrong, fmt.Sprintf("# %d bytes: %s", sizes[name], name))
	}
	return files, wrong
}
