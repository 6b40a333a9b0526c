package nl80211

import (
	"slices"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

func TestChannelNumbers(t *testing.T) {
	for mhz, want := range map[int]int{2412: 1, 2437: 6, 2472: 13, 2484: 14, 5180: 36, 5825: 165, 900: 0} {
		if got := Channel(mhz); got != want {
			t.Errorf("%d MHz is channel %d, want %d", mhz, got, want)
		}
		if want != 0 && Frequency(want) != mhz {
			t.Errorf("channel %d is %d MHz, want %d", want, Frequency(want), mhz)
		}
	}
}

func TestBeaconsElements(t *testing.T) {
	var b BSS
	// 0xff and 0xfb are BSS membership selectors; the last element is cut
	b.elements([]byte{0, 4, 'm', 'e', 's', 'h', 1, 4, 0x82, 0x8b, 12, 0xff, 50, 2, 108, 0xfb, 45, 0, 1, 9, 1})
	if b.SSID != "mesh" || !b.HT || !slices.Equal(b.BasicMbps, []float64{1, 5.5}) ||
		!slices.Equal(b.RatesMbps, []float64{1, 5.5, 6, 54}) {
		t.Errorf("read %+v", b)
	}
}

func TestRatesAsBeaconsHaveThem(t *testing.T) {
	if got := halfMbps([]float64{1, 5.5, 54}); !slices.Equal(got, []byte{2, 11, 108}) {
		t.Errorf("encoded %v", got)
	}
}

func TestWhatARadioCanBeAtOnce(t *testing.T) {
	p := Phy{Combinations: []Combination{
		{Interfaces: 2, Channels: 1, Limits: []Limit{{1, []string{"adhoc"}}, {1, []string{"managed", "mesh"}}}},
		{Interfaces: 3, Channels: 2, Limits: []Limit{{3, []string{"managed", "monitor"}}}},
		{Interfaces: 1, Channels: 1, Limits: []Limit{{1, []string{"ap"}}, {1, []string{"adhoc"}}}},
	}}
	for pair, want := range map[[2]string]int{
		{"adhoc", "managed"}: 1, {"managed", "adhoc"}: 1, {"managed", "managed"}: 2, {"managed", "mesh"}: 0,
		{"adhoc", "adhoc"}: 0, {"ap", "adhoc"}: 0,
	} {
		if got := p.Beside(pair[0], pair[1]); got != want {
			t.Errorf("%v on %d channels, want %d", pair, got, want)
		}
	}
	if got := p.Combinations[0].String(); got != "#{ adhoc } <= 1, #{ managed, mesh } <= 1, total <= 2, "+
		"#channels <= 1" {
		t.Errorf("worded %q", got)
	}
}

// A station of which no frame came yet has no signal: the kernel says 0 dBm of it.
func TestASignalIsOfAFrame(t *testing.T) {
	for raw, want := range map[byte]*float64{0: nil, 0xc4: new(-60.0)} {
		var s Station
		err := each([]byte{5, 0, unix.NL80211_STA_INFO_SIGNAL, 0, raw, 0, 0, 0,
			5, 0, unix.NL80211_STA_INFO_SIGNAL_AVG, 0, raw, 0, 0, 0}, s.info)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []*float64{s.SignalDbm, s.SignalAvgDbm} {
			if (got == nil) != (want == nil) || want != nil && *got != *want {
				t.Errorf("of %#x the signal is %v, want %v", raw, got, want)
			}
		}
	}
}

// The index of a rate says that it is of 802.11n or later.
func TestRatesOfLaterStandards(t *testing.T) {
	for name, c := range map[string]struct {
		index uint16 // attribute; 0: none
		ht    bool
	}{
		"802.11g": {0, false}, "802.11n": {unix.NL80211_RATE_INFO_MCS, true},
		"802.11ac": {unix.NL80211_RATE_INFO_VHT_MCS, true}, "802.11ax": {unix.NL80211_RATE_INFO_HE_MCS, true},
		"802.11be": {unix.NL80211_RATE_INFO_EHT_MCS, true},
	} {
		e := netlink.NewAttributeEncoder()
		e.Nested(unix.NL80211_STA_INFO_TX_BITRATE, func(n *netlink.AttributeEncoder) error {
			n.Uint32(unix.NL80211_RATE_INFO_BITRATE32, 540)
			if c.index != 0 {
				n.Uint8(c.index, 7)
			}
			return nil
		})
		data, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var s Station
		if err := each(data, s.info); err != nil || *s.TxBitrateMbps != 54 || s.TxHT != c.ht {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// What came of a station is read in the width that the kernel has it in.
func TestWhatCameOfAStation(t *testing.T) {
	e := netlink.NewAttributeEncoder()
	e.Uint64(unix.NL80211_STA_INFO_RX_BYTES64, 1<<33)
	e.Uint64(unix.NL80211_STA_INFO_BEACON_RX, 7)
	e.Uint32(unix.NL80211_STA_INFO_INACTIVE_TIME, 20)
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var s Station
	if err := each(data, s.info); err != nil {
		t.Fatal(err)
	}
	if s.RxBytes == nil || *s.RxBytes != 1<<33 || s.RxBeacons == nil || *s.RxBeacons != 7 || *s.InactiveMs != 20 {
		t.Errorf("read %+v", s)
	}
}

// Whatever a driver sends, reading it ends and does not panic.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{8, 0, 3, 0, 1, 0, 0, 0, 10, 0, 6, 0, 2, 0, 0, 0, 0, 1, 0, 0})
	f.Add([]byte{12, 0, 0x15, 0x80, 8, 0, 7, 0, 0xc4, 0, 0, 0})
	f.Add([]byte{24, 0, 0x2f, 0x80, 10, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0, 6, 0, 0, 3, 'a', 'b'})
	fuzz.Run(f, func(t *testing.T, data []byte) {
		var i Interface
		var s Station
		var p Phy
		var b BSS
		_ = each(data, i.take)
		_ = each(data, s.take)
		_ = each(data, s.info)
		_ = each(data, b.info)
		_ = each(data, func(d *netlink.AttributeDecoder) { p.take(d, map[[2]int][]float64{}) })
		b.elements(data)
		for _, command := range []uint8{unix.NL80211_CMD_NEW_STATION, unix.NL80211_CMD_NOTIFY_CQM, 0} {
			if e, ok := event(genetlink.Message{Header: genetlink.Header{Command: command}, Data: data}); ok &&
				e.MAC == "" {
				t.Errorf("an event without a station: %+v", e)
			}
		}
	})
}
