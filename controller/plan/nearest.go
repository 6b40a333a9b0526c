package plan

// Nearest is the known word with the smallest edit distance to a word, empty
// when none is near enough to be meant: more than half of it would have to
// change.
func Nearest(word string, known []string) string {
	best, distance := "", (len(word)+1)/2+1
	for _, k := range known {
		if d := editDistance(word, k); d < distance {
			best, distance = k, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours between two words (optimal string alignment).
func editDistance(a, b string) int {
	const longest = 64 // beyond it nothing is a slip of the finger
	if len(a) > longest || len(b) > longest {
		return max(len(a), len(b))
	}
	var before []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
