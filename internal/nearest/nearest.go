// Package nearest finds the word that somebody is likely to have meant.
package nearest

import "strings"

// Word returns the known word that was meant, empty when none is near enough: the
// shortest that begins with the word, else the only one that has it within, else the
// one with the smallest edit distance, unless more than half of the word would have to
// change.
func Word(word string, known []string) string {
	if word == "" {
		return ""
	}
	begins, within, n := "", "", 0
	best, distance := "", (len(word)+1)/2+1
	for _, k := range known {
		if strings.HasPrefix(k, word) && (begins == "" || len(k) < len(begins)) {
			begins = k
		}
		if strings.Contains(k, word) {
			within = k
			n++
		}
		if d := editDistance(word, k); d < distance {
			best, distance = k, d
		}
	}
	switch {
	case begins != "":
		return begins
	case n == 1:
		return within
	}
	return best
}

// Slip returns the known word that was meant if the finger slipped, by no more than two
// letters; empty when there is none. It is for names, which are often alike.
func Slip(word string, known []string) string {
	best, distance := "", min(len(word)/2, 2)+1
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
