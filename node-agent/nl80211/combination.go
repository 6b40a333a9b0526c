package nl80211

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Combination is a set of interfaces that a radio can have at once.
type Combination struct {
	Limits     []Limit
	Interfaces int // at most, of all limits together
	Channels   int // on which they may be at once
}

// Limit is how many interfaces of some modes a combination may have.
type Limit struct {
	Interfaces int
	Modes      []string
}

// String words it as iw(8) does.
func (c Combination) String() string {
	var limits []string
	for _, l := range c.Limits {
		limits = append(limits, fmt.Sprintf("#{ %s } <= %d", strings.Join(l.Modes, ", "), l.Interfaces))
	}
	return fmt.Sprintf("%s, total <= %d, #channels <= %d", strings.Join(limits, ", "), c.Interfaces, c.Channels)
}

// Beside reports whether a radio can have an interface of a mode beside one of
// another, and on how many channels the two may be: 0 for not at all.
func (p Phy) Beside(mode, other string) (channels int) {
	for _, c := range p.Combinations {
		if c.Interfaces >= 2 && c.room(mode, other) {
			channels = max(channels, c.Channels)
		}
	}
	return channels
}

// room looks for a place for each of two interfaces.
func (c Combination) room(a, b string) bool {
	for i, l := range c.Limits {
		for j, m := range c.Limits {
			if slices.Contains(l.Modes, a) && slices.Contains(m.Modes, b) && (i != j || l.Interfaces >= 2) {
				return true
			}
		}
	}
	return false
}

func (c *Combination) take(d *netlink.AttributeDecoder) {
	switch d.Type() {
	case unix.NL80211_IFACE_COMB_MAXNUM:
		c.Interfaces = int(d.Uint32())
	case unix.NL80211_IFACE_COMB_NUM_CHANNELS:
		c.Channels = int(d.Uint32())
	case unix.NL80211_IFACE_COMB_LIMITS:
		nested(d, func(one *netlink.AttributeDecoder) {
			var l Limit
			nested(one, func(a *netlink.AttributeDecoder) {
				switch a.Type() {
				case unix.NL80211_IFACE_LIMIT_MAX:
					l.Interfaces = int(a.Uint32())
				case unix.NL80211_IFACE_LIMIT_TYPES:
					nested(a, func(m *netlink.AttributeDecoder) { l.Modes = append(l.Modes, word(uint32(m.Type()))) })
				}
			})
			c.Limits = append(c.Limits, l)
		})
	}
}
