package plan

import "strings"

// renamed are the present names of keys that had another, by the section that they lie in and their former name. A
// file with a former name is refused; the campaign of a run that was begun with it is still read.
var renamed = map[string]map[string]string{"design": {"enough": "stop_when"}}

// presentName is what a key of a section is called now; "" when it never had another name.
func presentName(path, key string) string { return renamed[path[strings.LastIndex(path, ".")+1:]][key] }

// modernise gives keys of former names their present ones.
func (n *node) modernise(section string) {
	for i := range n.entries {
		e := &n.entries[i]
		if now := presentName(section, e.key); now != "" {
			e.key = now
		}
		e.value.modernise(e.key)
	}
}
