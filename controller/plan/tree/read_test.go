package tree

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

const anchor = "begins an anchor, alias or tag, which are not part of the format; allowed: the value written out"

//attack:file a campaign of lists in lists without an end, to use up the stack | 24 levels
//attack:file a campaign without an end | 256 KiB
//attack:file a campaign whose text a terminal would obey when its fault is shown | control characters are no text
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
		"an escape":     {"a: \x1b[2J", "f:1:4: byte 0x1b is not text; allowed: UTF-8 without control characters"},
		"deep dashes":   {strings.Repeat("- ", 5000), "f:1:193: nested too deeply; allowed: 24 levels"},
	} {
		var f Findings
		root := Read([]byte(c.raw), "fieldmesh: 1", &f)
		if got := f.Problems("f", 0).Error(); root != nil || got != c.want {
			t.Errorf("%s: got\n%v\nwant\n%s", name, got, c.want)
		}
	}
}

//attack:file a campaign whose aliases unfold to thousands of millions of values, or lie in themselves | anchors and
//attack:and aliases are not part of the format
//attack:file a campaign with a key twice, of which a reader sees one and the program takes the other | it is refused
func TestYAMLThatIsNoPartOfTheFormat(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"aliases of aliases": {"a: &a [x, x]\nb: [*a, *a]\n", `f:1:4: "&" ` + anchor + `
f:2:5: "*" ` + anchor + `
f:2:9: "*" ` + anchor},
		"a list in itself": {"a: &a [*a]\n", `f:1:4: "&" ` + anchor},
		"a key twice": {"fieldmesh: 1\nname: a\nname: b\n",
			`f:3:1: key "name" is given twice, first in line 2; allowed: once`},
	} {
		var f Findings
		Read([]byte(c.raw), "fieldmesh: 1", &f)
		if got := f.Problems("f", 0).Error(); got != c.want {
			t.Errorf("%s: got\n%v\nwant\n%s", name, got, c.want)
		}
	}
}

// A file that is there and must not be read is not taken for a slip of the finger.
func TestAFileThatMayNotBeReadIsNotMissed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused := &fs.PathError{Op: "open", Path: path, Err: syscall.EACCES}
	if got := withNames(path, refused); got.Error() != refused.Error() {
		t.Errorf("it may not be read: %v", got)
	}
	if got := withNames(filepath.Join(filepath.Dir(path), "tuesday.yaml"), fs.ErrNotExist); got.Error() !=
		fs.ErrNotExist.Error()+"; the folder has "+path {
		t.Errorf("it is not there: %v", got)
	}
}
