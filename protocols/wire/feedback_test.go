package wire

import (
	"slices"
	"strings"
	"testing"
)

func TestWishesAreReadUntilSomethingElse(t *testing.T) {
	for text, want := range map[string][]int64{
		"":                     nil,
		"{\"sample_hz\":0}\n":  {0},
		"{\"sample_hz\":-1}\n": {0},
		"{\"sample_hz\":1}\n{\"sample_hz\":2}\n{\"sample_hz\":3}\n":     {10, 5, 3},
		"{\"sample_hz\":10}\n{\"sample_hz\":1000}\n":                    {1, 1},
		"{\"sample_hz\":10}\nfaster\n{\"sample_hz\":2}\n":               {1},
		"{\"sample_hz\":10" + strings.Repeat(" ", maxWishBytes) + "}\n": nil,
	} {
		var got []int64
		ReadWishes(strings.NewReader(text), func(w FeedbackWish) { got = append(got, w.Turns()) })
		if !slices.Equal(got, want) {
			t.Errorf("%.60q: a turn of every %v, want %v", text, got, want)
		}
	}
}
