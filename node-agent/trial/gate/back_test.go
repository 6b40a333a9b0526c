package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// comingBack is a car that comes back along the road of these tests to its start at 10 m.
type comingBack struct {
	Back

	mu       sync.Mutex
	atM      float64
	speedMps float64
	told     string
	toStart  bool
}

func comesBack() *comingBack {
	c := &comingBack{atM: 1000, speedMps: 8}
	now := func() int64 { return time.Now().UnixNano() }
	c.Back = Back{Gate: New(outbound("depart", wire.Gate{AtStart: true}), now()), NowNs: now, Fix: c.fix,
		Log: slog.New(slog.DiscardHandler), Tell: func(detail string, toStart bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.told, c.toStart = detail, toStart
		}}
	return c
}

func (c *comingBack) fix() wire.GPS {
	c.mu.Lock()
	defer c.mu.Unlock()
	speedMps := c.speedMps
	return wire.GPS{Mode: 3, FixAgeMs: new(50.0), SpeedMps: &speedMps, LatDeg: new(0.0), LonDeg: new(c.atM * degPerM),
		TrackDeg: new(270.0)}
}

// goes puts the car elsewhere, and returns what is told a second later.
func (c *comingBack) goes(toM, speedMps float64) string {
	c.mu.Lock()
	c.atM, c.speedMps = toM, speedMps
	c.mu.Unlock()
	time.Sleep(time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

var errOutOfReach = errors.New("out of reach")

func isOutOfReach(err error) bool { return errors.Is(err, errOutOfReach) }

// A try may take minutes. The driver is told where the car is meanwhile, and a try that ends with its context ends as
// soon as the car stands at its start, however short that is: the last one begins there.
func TestTheCarIsFollowedWhileArmingIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := comesBack()
		tries := make(chan bool, 2)
		done := make(chan error, 1)
		go func() {
			done <- c.Do(t.Context(), isOutOfReach, func(ctx context.Context, returns bool) error {
				if tries <- returns; !returns {
					return nil
				}
				return pause.For(ctx, 10*time.Minute)
			})
		}()
		if got := c.goes(500, 8); !<-tries || got != "drive to the start, 489 m from here" {
			t.Errorf("500 m down the road the driver is told %q", got)
		}
		if got := c.goes(30, 5); got != "stop at the start" {
			t.Errorf("at the start the driver is told %q", got)
		}
		if !c.toStart {
			t.Error("the car is not said to have yet to stand there")
		}
		if got := c.goes(10, 0); got != "stay at the start until the trial is armed" || c.toStart {
			t.Errorf("who stands there is told %q", got)
		}
		c.goes(200, 8)
		if len(tries) != 1 || <-tries {
			t.Error("no last try has begun at the start")
			return
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// One that does not end with its context is made once more at the start when it has ended.
func TestTheLastTryIsMadeAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := comesBack()
		var tries []bool
		go c.goes(10, 0)
		err := c.Do(t.Context(), isOutOfReach, func(_ context.Context, returns bool) error {
			tries = append(tries, returns)
			time.Sleep(12 * time.Second)
			return errOutOfReach
		})
		if !isOutOfReach(err) || len(tries) != 2 || !tries[0] || tries[1] {
			t.Errorf("%v after the tries %v", err, tries)
		}
	})
}

// Who may take no longer, or is given up, is waited for no longer.
func TestACarThatDoesNotComeBackIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := comesBack()
		began := time.Now()
		err := c.Do(t.Context(), isOutOfReach, func(context.Context, bool) error {
			time.Sleep(12 * time.Second)
			return errOutOfReach
		})
		if took := time.Since(began).Seconds(); !isOutOfReach(err) || took < wire.ReturnS || took > wire.ReturnS+30 {
			t.Errorf("%v after %.0f s", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c = comesBack()
		began = time.Now()
		err = c.Do(ctx, isOutOfReach, func(ctx context.Context, _ bool) error { return pause.For(ctx, time.Hour) })
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Minute {
			t.Errorf("given up after a minute: %v after %v", err, took)
		}
	})
}

// Why a try failed is told with the way, and logged, but not each time.
func TestWhyATryFailedIsToldAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := comesBack()
		var log bytes.Buffer
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		tries := 0
		go func() {
			done <- c.Do(ctx, isOutOfReach, func(context.Context, bool) error {
				tries++
				time.Sleep(2 * time.Second)
				return fmt.Errorf("try %d: %w", tries, errOutOfReach)
			})
		}()
		if got := c.goes(500, 8); got != "drive to the start, 489 m from here" {
			t.Errorf("in the first try the driver is told %q", got)
		}
		time.Sleep(3 * time.Second)
		const why = "; the last try to arm: try 2: out of reach"
		if got := c.goes(400, 8); got != "drive to the start, 389 m from here"+why {
			t.Errorf("in the third try the driver is told %q", got)
		}
		time.Sleep(38 * time.Second)
		cancel()
		<-done
		n := strings.Count(log.String(), "level=WARN")
		if n != 4 || !strings.Contains(log.String(), "try 1: out of reach") {
			t.Errorf("%d tries in 43 s are logged as\n%s", tries, log.String())
		}
	})
}

// What does not come from being out of reach is not tried again, nor what another node's car would do.
func TestNothingElseIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := comesBack()
		other.Gate = nil
		for want, c := range map[error]*comingBack{errors.New("no such device"): comesBack(), errOutOfReach: other} {
			tries := 0
			err := c.Do(t.Context(), isOutOfReach, func(context.Context, bool) error { tries++; return want })
			if !errors.Is(err, want) || tries != 1 || strings.HasPrefix(c.told, "stay") {
				t.Errorf("%v: %v after %d tries, told %q", want, err, tries, c.told)
			}
		}
	})
}
