package nl80211

import (
	"fmt"
	"slices"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Phy is a radio: what it can do and, where the kernel tells, is set to.
type Phy struct {
	Index        int
	Name         string
	Modes        []string // adhoc, mesh, managed, ap, monitor …
	Combinations []Combination
	Frequencies  []Frequencies
	RTSThreshold uint32 // bytes; 1<<32-1 is off
	RetryShort   uint8
	RetryLong    uint8
}

// Frequencies is one channel of a radio.
type Frequencies struct {
	MHz           int
	Disabled      bool    // the regulatory domain forbids it
	NoIR          bool    // it may be listened to, not begun on: no IBSS and no mesh
	Radar         bool    // needs radar detection
	TxPowerMaxDbm float64 // by the regulatory domain and the hardware
	RatesMbps     []float64
	band          uint16
}

// Offers reports whether the radio has a mode.
func (p Phy) Offers(mode string) bool { return slices.Contains(p.Modes, mode) }

// At is the channel with a centre frequency, nil when the radio has none.
func (p Phy) At(mhz int) *Frequencies {
	for i := range p.Frequencies {
		if p.Frequencies[i].MHz == mhz {
			return &p.Frequencies[i]
		}
	}
	return nil
}

// Usable lists the channels on which a network may be begun.
func (p Phy) Usable() []int {
	var out []int
	for _, f := range p.Frequencies {
		if n := Channel(f.MHz); n != 0 && !f.Disabled && !f.NoIR && !f.Radar {
			out = append(out, n)
		}
	}
	return out
}

// Phys lists the radios of this namespace.
func (c *Conn) Phys() ([]Phy, error) {
	messages, err := c.call(unix.NL80211_CMD_GET_WIPHY, netlink.Dump, func(e *netlink.AttributeEncoder) {
		e.Flag(unix.NL80211_ATTR_SPLIT_WIPHY_DUMP, true)
	})
	if err != nil {
		return nil, fmt.Errorf("list radios: %w", err)
	}
	// A radio's description comes in many messages, its bands in pieces.
	var out []Phy
	rates := map[[2]int][]float64{} // by radio and band
	for _, m := range messages {
		at := -1
		err := each(m.Data, func(d *netlink.AttributeDecoder) {
			if d.Type() == unix.NL80211_ATTR_WIPHY {
				index := int(d.Uint32())
				if at = slices.IndexFunc(out, func(p Phy) bool { return p.Index == index }); at < 0 {
					at, out = len(out), append(out, Phy{Index: index})
				}
			} else if at >= 0 {
				out[at].take(d, rates)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("read radio: %w", err)
		}
	}
	for i := range out {
		for j := range out[i].Frequencies {
			f := &out[i].Frequencies[j]
			f.RatesMbps = rates[[2]int{out[i].Index, int(f.band)}]
		}
	}
	return out, nil
}

func (p *Phy) take(d *netlink.AttributeDecoder, rates map[[2]int][]float64) {
	switch d.Type() {
	case unix.NL80211_ATTR_WIPHY_NAME:
		p.Name = d.String()
	case unix.NL80211_ATTR_WIPHY_RTS_THRESHOLD:
		p.RTSThreshold = d.Uint32()
	case unix.NL80211_ATTR_WIPHY_RETRY_SHORT:
		p.RetryShort = d.Uint8()
	case unix.NL80211_ATTR_WIPHY_RETRY_LONG:
		p.RetryLong = d.Uint8()
	case unix.NL80211_ATTR_SUPPORTED_IFTYPES:
		nested(d, func(m *netlink.AttributeDecoder) {
			if w := word(uint32(m.Type())); !slices.Contains(p.Modes, w) {
				p.Modes = append(p.Modes, w)
			}
		})
	case unix.NL80211_ATTR_INTERFACE_COMBINATIONS:
		nested(d, func(one *netlink.AttributeDecoder) {
			var c Combination
			nested(one, c.take)
			p.Combinations = append(p.Combinations, c)
		})
	case unix.NL80211_ATTR_WIPHY_BANDS:
		nested(d, func(band *netlink.AttributeDecoder) {
			number := band.Type()
			nested(band, func(part *netlink.AttributeDecoder) {
				switch part.Type() {
				case unix.NL80211_BAND_ATTR_FREQS:
					nested(part, func(f *netlink.AttributeDecoder) {
						p.Frequencies = append(p.Frequencies, frequency(f, number))
					})
				case unix.NL80211_BAND_ATTR_RATES:
					key := [2]int{p.Index, int(number)}
					nested(part, func(r *netlink.AttributeDecoder) {
						nested(r, func(a *netlink.AttributeDecoder) {
							if a.Type() == unix.NL80211_BITRATE_ATTR_RATE {
								rates[key] = append(rates[key], float64(a.Uint32())/10)
							}
						})
					})
				}
			})
		})
	}
}

func frequency(d *netlink.AttributeDecoder, band uint16) Frequencies {
	f := Frequencies{band: band}
	nested(d, func(a *netlink.AttributeDecoder) {
		switch a.Type() {
		case unix.NL80211_FREQUENCY_ATTR_FREQ:
			f.MHz = int(a.Uint32())
		case unix.NL80211_FREQUENCY_ATTR_DISABLED:
			f.Disabled = true
		case unix.NL80211_FREQUENCY_ATTR_NO_IR:
			f.NoIR = true
		case unix.NL80211_FREQUENCY_ATTR_RADAR:
			f.Radar = true
		case unix.NL80211_FREQUENCY_ATTR_MAX_TX_POWER:
			f.TxPowerMaxDbm = float64(a.Uint32()) / 100
		}
	})
	return f
}

// Country is the regulatory domain in force: two letters, "00" for the world's.
func (c *Conn) Country() (string, error) {
	var country string
	err := c.ask(unix.NL80211_CMD_GET_REG, func(*netlink.AttributeEncoder) {}, func(d *netlink.AttributeDecoder) {
		if d.Type() == unix.NL80211_ATTR_REG_ALPHA2 {
			country = d.String()
		}
	})
	if err != nil {
		return "", fmt.Errorf("read regulatory domain: %w", err)
	}
	return country, nil
}
