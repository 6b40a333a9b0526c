package journal

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// shifted is the machine's clock, with a wall clock that shows another time.
type shifted struct {
	clock.System
	by time.Duration
}

func (c shifted) Wall() time.Time { return c.System.Wall().Add(c.by) }

// In the same boot the boot clock says how long ago the run was heard of, whatever befell the wall clock. After a
// reboot true time does, where it was known when the run was heard of; else the run counts as just heard of.
func TestHowLongAgoTheRunWasHeardOf(t *testing.T) {
	const ago, behind = 10 * time.Minute, 72 * time.Hour
	day, slow := 24*time.Hour, shifted{by: -behind}
	synced, byGPS := wire.WallClock{Sync: "synchronised"}, wire.WallClock{GPSOffsetNs: new(behind.Nanoseconds())}
	for name, c := range map[string]struct {
		then     clock.Clock
		wall     wire.WallClock
		rebooted bool
		now      clock.Clock
		want     time.Duration
	}{
		"the clock is set in the same boot":     {slow, wire.WallClock{}, false, clock.System{}, ago},
		"and put back":                          {clock.System{}, synced, false, slow, ago},
		"after a reboot, by a kept clock":       {clock.System{}, synced, true, shifted{by: day}, ago + day},
		"by GPS, beside a clock that was wrong": {slow, byGPS, true, clock.System{}, ago},
		"by a clock that nothing confirmed":     {slow, wire.WallClock{}, true, clock.System{}, 0},
		"by one that is not set yet":            {clock.System{}, synced, true, slow, 0},
		"by one that was never set":             {clock.System{}, synced, true, shifted{by: -50 * 365 * day}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := HeardAt(c.then, c.then.BootNs()-ago.Nanoseconds(), c.wall)
			if c.rebooted {
				h.BootID, h.BootNs = "another", 1
			}
			got := time.Duration(c.now.BootNs() - h.Ns(c.now))
			if got < c.want-2*time.Second || got > c.want+2*time.Second {
				t.Errorf("heard of %s ago, want %s", got, c.want)
			}
		})
	}
	if got := time.Duration(clock.System{}.BootNs() - Heard{}.Ns(clock.System{})); got > time.Second {
		t.Errorf("what is not known counts as %s ago", got)
	}
}
