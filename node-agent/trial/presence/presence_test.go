package presence

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// An attempt ends when its interface is not there any more, and when another one
// bears its name: a radio that was plugged in again is not set up.
func TestARadioThatIsTakenAwayEndsTheAttempt(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		iface string
		index int
		ends  bool
	}{
		"it is there":   {"lo", lo.Index, false},
		"it is not":     {"absent0", lo.Index, true},
		"it is another": {"lo", lo.Index + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			var ended error
			p := &Radio{Interface: c.iface, index: c.index, Gone: func(err error) { ended = err }}
			if bodies, err := p.Sample(0); bodies != nil || err != nil {
				t.Errorf("samples %v, error %v", bodies, err)
			}
			if checked := p.Check(t.Context()); (ended != nil) != c.ends || (checked != nil) != c.ends {
				t.Errorf("ended with %v, and the last check with %v", ended, checked)
			}
		})
	}
}

// What somebody at the machine does to a radio ends the attempt; what its network does, does not.
func TestWhoTookTheNetworkAway(t *testing.T) {
	cell := wire.Caps{Mode: "adhoc", Channel: 6, SSID: "m"}
	mesh := wire.Caps{Mode: "mesh", Channel: 6}
	ap := wire.Caps{Mode: "ap", Channel: 6, SSID: "m"}
	client := wire.Caps{Mode: "managed", Channel: 6, SSID: "m"}
	up := link.State{Up: true, Carrier: true, Address: true}
	silent, down := link.State{Up: true, Address: true}, link.State{Address: true}
	bare := link.State{Up: true, Carrier: true}
	unread := errors.New("busy")
	for name, c := range map[string]struct {
		was   wire.Caps
		state link.State
		is    wire.Caps
		err   error
		lasts time.Duration // then it is as it was
		want  string        // empty: the attempt goes on
	}{
		"as it was":                {cell, up, cell, nil, time.Hour, ""},
		"a cell merges":            {cell, silent, wire.Caps{Mode: "adhoc"}, nil, looks / 2, ""},
		"no carrier in a cell":     {cell, silent, cell, nil, time.Hour, ""},
		"not read for a moment":    {cell, up, wire.Caps{}, unread, looks / 2, ""},
		"no access point in reach": {client, silent, wire.Caps{Mode: "managed", Channel: 11}, nil, time.Hour, ""},
		"a mesh as it was":         {mesh, up, mesh, nil, time.Hour, ""},

		"flight mode":              {cell, down, wire.Caps{Mode: "adhoc"}, nil, time.Hour, "lo was set down"},
		"a station in flight mode": {client, down, client, nil, time.Hour, "lo was set down"},
		"its address was taken":    {cell, bare, cell, nil, time.Hour, "lo lost its address"},
		"a manager made it its own": {cell, up, wire.Caps{Mode: "managed"}, nil, time.Hour,
			"the mode of lo went from adhoc"},
		"it left the cell":       {cell, up, wire.Caps{Mode: "adhoc"}, nil, time.Hour, "lo left its network"},
		"it left the mesh":       {mesh, up, wire.Caps{Mode: "mesh"}, nil, time.Hour, "lo left its network"},
		"the access point ended": {ap, up, wire.Caps{Mode: "ap"}, nil, time.Hour, "lo left its network"},
		"on another channel": {mesh, up, wire.Caps{Mode: "mesh", Channel: 11}, nil, time.Hour,
			"the channel of lo went from 6 to 11"},
		"a station in another network": {client, up, wire.Caps{Mode: "managed", Channel: 6, SSID: "cafe"}, nil,
			time.Hour, "the SSID of lo went from m to cafe"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ended error
				p, err := Find("lo", func(err error) { ended = err })
				if err != nil {
					t.Fatal(err)
				}
				var began time.Time // of what happens
				happens := func() bool { return !began.IsZero() && time.Since(began) < c.lasts }
				p.Hold(netip.MustParseAddr("10.77.0.1"), func(string, netip.Addr) (link.State, error) {
					if happens() {
						return c.state, nil
					}
					return up, nil
				}, &c.was, func() (*wire.Caps, error) {
					if happens() {
						return &c.is, c.err
					}
					return &c.was, nil
				})
				start := time.Now()
				for range 40 {
					time.Sleep(100 * time.Millisecond)
					if began.IsZero() && time.Since(start) >= looks {
						began = time.Now()
					}
					if _, err := p.Sample(time.Since(start).Nanoseconds()); err != nil {
						t.Fatal(err)
					}
				}
				told := func(err error) string {
					if err == nil {
						return ""
					}
					return err.Error()
				}
				if got := told(ended); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
					t.Errorf("ended with %q, want %q", got, c.want)
				}
				began = time.Now() // and the same at the window's end
				if got := told(p.Check(t.Context())); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
					t.Errorf("the last check says %q, want %q", got, c.want)
				}
			})
		})
	}
}

// A merge that goes on while the window closes is looked at by two: what one of them sees is no second look of the
// other.
func TestAMergeAtTheWindowsEndIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cell, merges := wire.Caps{Mode: "adhoc", Channel: 6, SSID: "m"}, wire.Caps{Mode: "adhoc"}
		p, err := Find("lo", func(err error) { t.Errorf("ended with %v", err) })
		if err != nil {
			t.Fatal(err)
		}
		closed := time.Now()
		p.Hold(netip.MustParseAddr("10.77.0.1"), func(string, netip.Addr) (link.State, error) {
			return link.State{Up: true, Carrier: true, Address: true}, nil
		}, &cell, func() (*wire.Caps, error) {
			if time.Since(closed) < looks/2 {
				return &merges, nil
			}
			return &cell, nil
		})
		checked := make(chan error)
		go func() { checked <- p.Check(t.Context()) }()
		time.Sleep(looks / 4)
		if _, err := p.Sample(looks.Nanoseconds()); err != nil {
			t.Error(err)
		}
		if err := <-checked; err != nil {
			t.Errorf("the last check says %v", err)
		}
	})
}

// An address that was elsewhere from the beginning, as on batman-adv's own device, is not missed.
func TestAnAddressElsewhereIsNotMissed(t *testing.T) {
	p, err := Find("lo", func(err error) { t.Errorf("ended with %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	p.Hold(netip.MustParseAddr("10.77.0.1"), func(string, netip.Addr) (link.State, error) {
		return link.State{Up: true, Carrier: true}, nil
	}, &wire.Caps{Mode: "adhoc", Channel: 6}, func() (*wire.Caps, error) {
		return &wire.Caps{Mode: "adhoc", Channel: 6}, nil
	})
	if _, err := p.Sample(looks.Nanoseconds()); err != nil {
		t.Fatal(err)
	}
}
