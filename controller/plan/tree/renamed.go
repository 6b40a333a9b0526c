package tree

import (
	"fmt"
	"slices"
	"strings"
)

// Renamed has, for each section, the present name of each of its keys that had another name. It has words that are
// values of a key, too, under the key in place of the section. The name of a key that was removed is "".
type Renamed map[string]map[string]string

// Now is what a key of a section, or a word of a key, is called now; "" when it never had another name.
func (r Renamed) Now(path, key string) string { return r.of(path)[key] }

func (r Renamed) of(path string) map[string]string { return r[path[strings.LastIndex(path, ".")+1:]] }

// Says is what a former key of a section is now, in words; "" when it never was one.
func (r Renamed) Says(path, key string) string {
	switch now, known := r.of(path)[key]; {
	case now != "":
		return fmt.Sprintf("is called %q now", now)
	case known:
		return "is no key any more, for it changed nothing; leave it out"
	}
	return ""
}

// Gone reports whether a key of a section is no more.
func (r Renamed) Gone(path, key string) bool {
	now, known := r.of(path)[key]
	return known && now == ""
}

// Modernise gives keys and words of former names their present ones, and takes out keys that are no more. The levels of
// a factor with a key are of the section that the key names; a factor whose key is no more keeps it, for its levels are
// in the run's plan.
func (r Renamed) Modernise(n *Node, section string) {
	n.Entries = slices.DeleteFunc(n.Entries, func(e Entry) bool { return r.Gone(section, e.Key) })
	for i := range n.Entries {
		e := &n.Entries[i]
		if now := r.Now(section, e.Key); now != "" {
			e.Key = now
		}
		if now := r.Now(e.Key, e.Value.Text); now != "" {
			e.Value.Text = now
		}
		if levels := e.Value.Child("levels"); levels != nil && section == "factors" {
			for _, l := range levels.Entries {
				r.Modernise(l.Value, e.Value.TextAt("key"))
			}
			continue
		}
		r.Modernise(e.Value, e.Key)
	}
}
