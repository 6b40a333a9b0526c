package field

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium"
)

// What is lost before the window opens takes no room from the window's losses.
func TestTheWindowsLossesAreKept(t *testing.T) {
	const open, closed = 100 * time.Second, 200 * time.Second
	for name, v := range map[string]struct {
		before, inside, after int
		kept                  int
		whole                 bool
	}{
		"few":               {1, 2, 3, 2, true},
		"many before":       {3*maxLosses + 7, 10, 5, 10, true},
		"a full window":     {5, maxLosses, 0, maxLosses, true},
		"more than is kept": {5, maxLosses + 3, 0, maxLosses, false},
		"many after":        {5, 10, maxLosses, 0, false},
	} {
		l := lossLog{bootAt0: time.Second}
		l.Forget()
		add := func(n int, at time.Duration) {
			for i := range n {
				l.add(medium.FrameLoss{At: at + time.Duration(i), Node: i})
			}
		}
		add(v.before, open-50*time.Second)
		add(v.inside, open+time.Second)
		add(v.after, closed+time.Second)
		got, untold := l.Losses(open, closed)
		if len(got) != v.kept || untold == 0 != v.whole {
			t.Errorf("%s: %d losses and %d untold", name, len(got), untold)
		}
		for i, x := range got {
			if want := v.inside - v.kept + i; x.Node != want || x.boot != x.At+time.Second {
				t.Fatalf("%s: loss %d is %d at %s", name, i, x.Node, x.boot)
			}
		}
		l.Forget()
		if got, untold := l.Losses(open, closed); len(got) != 0 || untold != 0 {
			t.Errorf("%s: of the trial before %d losses and %d untold", name, len(got), untold)
		}
	}
}
