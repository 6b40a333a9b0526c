package preflight

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A need that comes by itself is looked at until it is met; others are not waited for.
func TestPatienceWaitsForWhatComesByItself(t *testing.T) {
	gone := errors.New("the fleet's key is gone")
	for name, c := range map[string]struct {
		patience time.Duration
		need     string
		state    string // until it is met
		metAfter time.Duration
		err      error
		looks    int
		lasts    time.Duration
		pass     bool
	}{
		"no patience":         {0, "generator", Unmet, 3 * time.Second, nil, 1, 0, false},
		"comes":               {time.Minute, "generator", Unmet, 3 * time.Second, nil, 4, 3 * time.Second, true},
		"could not be asked":  {time.Minute, "generator", Unknown, 3 * time.Second, nil, 4, 3 * time.Second, true},
		"does not come":       {5 * time.Second, "generator", Unmet, time.Hour, nil, 5, 4 * time.Second, false},
		"is there":            {time.Minute, "generator", Unmet, 0, nil, 1, 0, true},
		"another need":        {time.Minute, "radio", Unmet, 3 * time.Second, nil, 1, 0, false},
		"cannot look":         {time.Minute, "generator", Unmet, time.Hour, gone, 1, 0, false},
		"nothing is asked of": {time.Minute, "generator", Unneeded, time.Hour, nil, 1, 0, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, looks := time.Now(), 0
			r, err := Patiently(t.Context(), c.patience, func(context.Context) (Report, error) {
				looks++
				item := Item{Node: "car", Need: c.need, State: c.state}
				if time.Since(began) >= c.metAfter {
					item.State = Met
				}
				var r Report
				r.Add(item)
				return r, c.err
			})
			lasted := time.Since(began)
			if !errors.Is(err, c.err) || looks != c.looks || lasted != c.lasts || c.err == nil && r.Pass != c.pass {
				t.Errorf("%s: looked %d times in %v, want %d in %v; passed: %v, %v", name, looks, lasted, c.looks,
					c.lasts, r.Pass, err)
			}
		})
	}
}

// Whoever ends the wait has its reason, and what was seen last.
func TestPatienceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		r, err := Patiently(ctx, time.Hour, func(context.Context) (Report, error) {
			return Report{Items: []Item{{Need: "generator", State: Unmet}}}, nil
		})
		if !errors.Is(err, context.DeadlineExceeded) || len(r.Items) != 1 {
			t.Errorf("saw %+v, %v", r, err)
		}
	})
}
