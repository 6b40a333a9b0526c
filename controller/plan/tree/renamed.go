package tree

import "strings"

// Renamed are the present names of keys that had another, by the section that they lie in
// and their former name, and of what a key may say, by the key.
type Renamed map[string]map[string]string

// Now is what a key of a section, or a word of a key, is called now; "" when it never had another name.
func (r Renamed) Now(path, key string) string { return r[path[strings.LastIndex(path, ".")+1:]][key] }

// Modernise gives keys and words of former names their present ones.
func (r Renamed) Modernise(n *Node, section string) {
	for i := range n.Entries {
		e := &n.Entries[i]
		if now := r.Now(section, e.Key); now != "" {
			e.Key = now
		}
		if now := r.Now(e.Key, e.Value.Text); now != "" {
			e.Value.Text = now
		}
		r.Modernise(e.Value, e.Key)
	}
}
