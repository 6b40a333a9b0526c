package tree

import (
	"strings"
	"testing"
)

// Some editors begin a file with a byte order mark, which YAML allows.
func TestAByteOrderMarkIsNoFault(t *testing.T) {
	var f Findings
	root := Read([]byte("\ufefffieldmesh: 1\n"), "fieldmesh: 1", &f)
	if root == nil || root.Child("fieldmesh") == nil || len(f.Problems("f", 0)) > 0 {
		t.Errorf("read as %+v, with %v", root, f.Problems("f", 0))
	}
}

func TestFilesThatAreNoCampaign(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"empty":         {"", "f:1:1: the file is empty; allowed: a mapping that begins with fieldmesh: 1"},
		"only comments": {"# nothing\n", "f:1:1: the file is empty; allowed: a mapping that begins with fieldmesh: 1"},
		"a list":        {"- 1\n", "f:1:1: the file holds a list; allowed: a mapping that begins with fieldmesh: 1"},
		"a word":        {"hello\n", "f:1:1: the file holds text; allowed: a mapping that begins with fieldmesh: 1"},
		"binary":        {"a: \x00", "f:1:4: byte 0x00 is not text; allowed: UTF-8 without control characters"},
		"not UTF-8":     {"a: 1\nb: \xff\n", "f:2:4: byte 0xff is not text; allowed: UTF-8 without control characters"},
		"UTF-16":        {"\xff\xfea\x00", "f:1:1: the file is UTF-16; save it as UTF-8"},
		"two documents": {"fieldmesh: 1\n---\nfieldmesh: 1\n", "f:2:1: a second YAML document begins here; allowed: " +
			"one document in a file"},
		"too large": {strings.Repeat("#", MaxFileBytes+1), "f:1:1: the file has 262145 bytes; allowed: at " +
			"most 262144"},
		"deep brackets": {"a: " + strings.Repeat("[", 5000), "f:1:100: nested too deeply; allowed: 24 levels"},
		"deep dashes":   {strings.Repeat("- ", 5000), "f:1:193: nested too deeply; allowed: 24 levels"},
	} {
		var f Findings
		root := Read([]byte(c.raw), "fieldmesh: 1", &f)
		if got := f.Problems("f", 0).Error(); root != nil || got != c.want {
			t.Errorf("%s: got\n%v\nwant\n%s", name, got, c.want)
		}
	}
}
