package journal

import (
	"time"

	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Heard is when the run was last heard of from elsewhere: by the boot clock, for an agent that is started again in the
// same boot, and by true time, for one in a later boot.
type Heard struct {
	BootID string `json:"boot_id,omitempty"`
	BootNs int64  `json:"boot_ns,omitempty"`
	UnixS  int64  `json:"unix_s,omitempty"` // absent where nothing confirmed the wall clock
}

// HeardAt is a moment of the present boot. wall is where the wall clock stands: GPS corrects it, or what keeps
// it says that it is right; any other may be set, by days, at any time.
func HeardAt(clk clock.Clock, bootNs int64, wall wire.WallClock) Heard {
	h := Heard{BootNs: bootNs}
	h.BootID, _ = clock.BootID() // not known: then true time decides
	at := clk.Wall().Add(time.Duration(bootNs - clk.BootNs()))
	switch {
	case wall.GPSOffsetNs != nil:
		h.UnixS = at.Add(time.Duration(*wall.GPSOffsetNs)).Unix()
	case wall.Sync == "synchronised":
		h.UnixS = at.Unix()
	}
	return h
}

// Ns is that moment by the present boot clock, and now where it is not known: who may have heard of the run
// goes on.
func (h Heard) Ns(clk clock.Clock) int64 {
	now := clk.BootNs()
	if boot, err := clock.BootID(); err == nil && boot == h.BootID {
		return min(now, h.BootNs)
	}
	off := clk.Wall().Sub(time.Unix(h.UnixS, 0))
	if h.UnixS == 0 || off < 0 || clock.IsUnset(clk.Wall(), version.Built()) {
		return now
	}
	return now - off.Nanoseconds()
}
