package pause

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestAnAlarmWaitsAndIsEnded(t *testing.T) {
	a, err := NewAlarm()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []time.Duration{20 * time.Millisecond, 0, -time.Second, 5 * time.Millisecond} {
		began := time.Now()
		if err := a.For(t.Context(), d); err != nil || time.Since(began) < d {
			t.Errorf("%v, after %v, want no error after %v", err, time.Since(began), d)
		}
	}
	why := errors.New("enough")
	ctx, end := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { end(why) })
	if err := a.For(ctx, 24*time.Hour); !errors.Is(err, why) {
		t.Errorf("ended by its context it returns %v", err)
	}
	if err := a.For(ctx, 24*time.Hour); !errors.Is(err, why) {
		t.Errorf("with a context that has ended it returns %v", err)
	}
	if err := a.For(t.Context(), time.Millisecond); err != nil {
		t.Errorf("after that it returns %v", err)
	}
	if err := errors.Join(a.Close(), a.For(t.Context(), 0)); err == nil {
		t.Error("a closed alarm waits")
	}
}
