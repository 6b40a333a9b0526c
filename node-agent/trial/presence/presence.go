// Package presence watches whether the radio under test stays as an attempt has found it: there, up, with its address,
// in its network. Somebody at the machine, or a manager of its networks, may take that away, and the window would end
// as one in which nothing was heard, which is a result. What the network itself can take stays out: a carrier, a way,
// and a station's access point.
package presence

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// station is the one mode, as the kernel names them, in which a radio may be in no network
// because nobody is in reach. A cell, a mesh and an access point are there with nobody in them.
const station = "managed"

// looks is how often the radio is read, and for how long it is in no network before it counts
// as having left: while mac80211 merges two cells of one name it has no channel for a moment
// (__ieee80211_sta_join_ibss).
const looks = time.Second

// Radio is one as it was when the attempt was armed.
type Radio struct {
	Interface string
	Gone      func(error) // ends the attempt

	index int
	own   netip.Addr // invalid: it had no such address, or nobody looks
	link  func(iface string, own netip.Addr) (link.State, error)
	caps  func() (*wire.Caps, error)
	was   *wire.Caps // nil: how it is set may change, as Android has it

	// Sample's alone: Check may run beside it.
	lookedNs int64
	out      bool // it was in no network when it was last read
}

// Find has an interface watched for being there: another one that bears its name is not set up.
func Find(name string, gone func(error)) (*Radio, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("find interface %q: %w", name, err)
	}
	return &Radio{Interface: name, Gone: gone, index: i.Index}, nil
}

// Hold has it watched for staying up, with its address and set as it is, too.
func (r *Radio) Hold(own netip.Addr, state func(string, netip.Addr) (link.State, error), was *wire.Caps,
	caps func() (*wire.Caps, error)) {
	r.link, r.was, r.caps = state, was, caps
	if s, err := state(r.Interface, own); err == nil && s.Address { // batman-adv's own device may have it
		r.own = own
	}
}

// Name names it as a source of samples, of which it gives none.
func (r *Radio) Name() string { return "presence of " + r.Interface }

// Sample checks all that is watched.
func (r *Radio) Sample(tBootNs int64) ([]wire.Body, error) {
	err := r.attached()
	if err == nil && r.was != nil && tBootNs-r.lookedNs >= looks.Nanoseconds() {
		r.lookedNs = tBootNs
		before := r.out
		if err = r.set(); !errors.Is(err, errUnread) {
			r.out = errors.Is(err, errOut)
		}
		if errors.Is(err, errUnread) || r.out && !before {
			err = nil // the next look may know more
		}
	}
	if err != nil {
		r.Gone(err)
	}
	return nil, nil
}

// Check does so once, at the window's end. It takes up to looks where the radio cannot be read,
// or is in no network.
func (r *Radio) Check(ctx context.Context) error {
	for end := time.Now().Add(looks); ; {
		err := r.attached()
		if err != nil || r.was == nil {
			return err
		}
		err = r.set()
		if !errors.Is(err, errUnread) && !errors.Is(err, errOut) || !time.Now().Before(end) {
			return err
		}
		if ended := pause.For(ctx, looks/10); ended != nil {
			return ended
		}
	}
}

// attached checks what is cheap to ask.
func (r *Radio) attached() error {
	if i, err := net.InterfaceByName(r.Interface); err != nil || i.Index != r.index {
		return fmt.Errorf("%s was taken away during the attempt; plug it in again, or see why its driver went (dmesg)",
			r.Interface)
	}
	if r.was == nil {
		return nil
	}
	is, err := r.link(r.Interface, r.own)
	switch {
	case err != nil:
		return nil //nolint:nilerr // it is not known, and whether it is there was asked
	case !is.Up:
		return fmt.Errorf("%s was set down during the attempt, as by flight mode or a network manager; switch the "+
			"radio on (rfkill list), and let nothing else set it", r.Interface)
	case r.own.IsValid() && !is.Address:
		return fmt.Errorf("%s lost its address %s during the attempt; keep network managers and DHCP clients off it",
			r.Interface, r.own)
	}
	return nil
}

// Why set may be asked again: the radio cannot be read, or it is in no network.
var errUnread, errOut = errors.New("cannot be read"), errors.New("left its network")

// set checks how the radio is set.
func (r *Radio) set() error {
	is, err := r.caps()
	if err != nil || is == nil {
		return errors.Join(fmt.Errorf("what %s is set to %w", r.Interface, errUnread), err)
	}
	switch {
	case is.Mode != r.was.Mode:
		return r.changed("mode", r.was.Mode, is.Mode)
	case is.Mode == station && is.SSID == "": // out of reach; some drivers tell a channel all the same
	case is.Channel == 0:
		return fmt.Errorf("%s %w during the attempt; see what had it leave, as a network manager or iw", r.Interface,
			errOut)
	case r.was.Channel != 0 && is.Channel != r.was.Channel:
		return r.changed("channel", fmt.Sprint(r.was.Channel), fmt.Sprint(is.Channel))
	case r.was.SSID != "" && is.SSID != "" && is.SSID != r.was.SSID:
		return r.changed("SSID", r.was.SSID, is.SSID)
	}
	return nil
}

func (r *Radio) changed(what, was, is string) error {
	return fmt.Errorf("the %s of %s went from %s to %s during the attempt; let nothing else set that radio, as a "+
		"network manager or Android's Wi-Fi", what, r.Interface, was, is)
}
