package pause

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestForEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := For(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("waited %s of an hour: %v", time.Since(began), err)
		}
		why := errors.New("enough")
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Minute, why)
		defer stop()
		began = time.Now()
		if err := For(ctx, time.Hour); !errors.Is(err, why) || time.Since(began) != time.Minute {
			t.Errorf("waited %s with a context of a minute: %v", time.Since(began), err)
		}
	})
}

func TestReconnectPausesLongerWhereNothingAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		answers := []bool{false, false, false, true, false, false}
		var pauses []time.Duration
		last := time.Now()
		err := Reconnect(ctx, time.Second, 3*time.Second, func(context.Context) bool {
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			i := len(pauses) - 1
			if i == len(answers) {
				stop()
				return false
			}
			return answers[i]
		})
		want := []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, time.Second, 2 * time.Second,
			3 * time.Second}
		if !errors.Is(err, context.Canceled) || !slices.Equal(pauses, want) {
			t.Errorf("paused %v, want %v: %v", pauses, want, err)
		}
	})
}
