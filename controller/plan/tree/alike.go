package tree

import "slices"

// words are the keys that only say what a campaign is: no trial hangs on them.
var words = []string{".title", ".question", ".notes", ".paper.deviations", ".scales.*.why"}

// SameButForWords reports whether two campaign files have the same trials: whether they
// differ in nothing but comments, places and words.
func SameButForWords(a, b []byte) bool {
	var f Findings
	x, y := Read(a, "", &f), Read(b, "", &f)
	return x != nil && y != nil && alike(x, y, "")
}

func alike(a, b *Node, path string) bool {
	if a.Shape != b.Shape || a.Text != b.Text || a.Number != b.Number || a.Truth != b.Truth ||
		!slices.EqualFunc(a.Items, b.Items, func(x, y *Node) bool { return alike(x, y, path+".*") }) {
		return false
	}
	below := func(key string) string {
		if path == ".scales" {
			key = "*"
		}
		return path + "." + key
	}
	rest := func(n *Node) []Entry {
		return slices.DeleteFunc(slices.Clone(n.Entries), func(e Entry) bool {
			return slices.Contains(words, below(e.Key))
		})
	}
	return slices.EqualFunc(rest(a), rest(b), func(x, y Entry) bool {
		return x.Key == y.Key && alike(x.Value, y.Value, below(x.Key))
	})
}
