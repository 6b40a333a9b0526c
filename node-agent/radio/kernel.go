package radio

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// The channel is asked about at most ten times a second. Some drivers ask their
// firmware then, for every channel that the radio knows: one that takes longer
// than slowSurvey would make samples late, and is asked once a second.
const (
	surveyEvery     = 90 * time.Millisecond // a tick of 100 ms may be early
	slowSurvey      = 20 * time.Millisecond
	slowSurveyEvery = time.Second
	quirksEvery     = time.Second
)

// reader is what Kernel asks of the kernel; *nl80211.Conn is one.
type reader interface {
	Interface(name string) (*nl80211.Interface, error)
	BSSes(ifindex int) ([]nl80211.BSS, error)
	Country() (string, error)
	Phys() ([]nl80211.Phy, error)
	PowerSave(ifindex int) (bool, error)
	Stations(ifindex int) ([]nl80211.Station, error)
	Surveys(ifindex int) ([]nl80211.Survey, error)
	Close() error
}

// Kernel reads a real radio through nl80211, which needs no privileges for
// reading. It serves a node that has no radio-feedback socket. What the driver
// does not tell is absent.
type Kernel struct {
	iface  string
	beside string // on whose radio iface is made for a run; empty: iface has one of its own
	open   func() (reader, error)

	mu      sync.Mutex
	conn    reader
	survey  int64             // boot time from which on the channel is asked about again
	looked  int64             // boot time of the last look for quirks
	network string            // that the interface was in when it was last looked for quirks
	since   int64             // boot time of when it was first seen in that
	told    map[string]string // quirks that were reported of it, by name
	heard   map[string]heard  // by the stations' addresses
}

// heard is what had come of a station when it was last heard.
type heard struct {
	bytes, beacons uint64
	atNs           int64 // boot time
}

// NewKernel makes a reader of one interface. It opens nothing yet: the radio
// may be plugged in later.
func NewKernel(iface string) *Kernel {
	return NewKernelBeside(iface, "")
}

// NewKernelBeside makes a reader of an interface that is made for a run, on the
// radio of another one: before the run it tells what that radio can do.
func NewKernelBeside(iface, beside string) *Kernel {
	return &Kernel{iface: iface, beside: beside, open: func() (reader, error) { return nl80211.Open() }}
}

// Name names the reader as a source of samples.
func (k *Kernel) Name() string { return "radio" }

// find returns an interface as nl80211 knows it; nil when it is not a radio's,
// and where there is no 802.11 stack at all. mu is held.
func (k *Kernel) find(name string) (*nl80211.Interface, error) {
	if k.conn == nil {
		c, err := k.open()
		if errors.Is(err, nl80211.ErrNone) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		k.conn = c
	}
	i, err := k.conn.Interface(name)
	if err != nil {
		// The driver may have been loaded again: the family's number changes
		// then.
		err = errors.Join(err, k.conn.Close())
		k.conn = nil
	}
	return i, err
}

// Caps is what the radio can do and how it is set at present; nil when the
// interface is not a radio's, an error when the kernel could not be asked. Which of
// the standards it keeps to is not among what the kernel tells. Of an interface
// that is still to be made beside another there is only what the radio can do.
func (k *Kernel) Caps() (*wire.Caps, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i, err := k.find(k.iface)
	if err != nil {
		return nil, fmt.Errorf("read the radio of %s: %w", k.iface, err)
	}
	out := &wire.Caps{Driver: "nl80211", RatesMbps: []float64{}}
	var other *nl80211.Interface
	if k.beside != "" {
		if other, err = k.find(k.beside); err != nil {
			return nil, fmt.Errorf("read the radio of %s: %w", k.beside, err)
		}
	}
	of, mhz := i, 0
	if i != nil {
		mhz = i.MHz
		out.MAC, out.Mode, out.Channel, out.Width, out.SSID = i.MAC, i.Mode, nl80211.Channel(i.MHz), i.Width, i.SSID
		out.TxPowerDbm = i.TxPowerDbm
		if i.Mode == "managed" { // no other sleeps, though the kernel may tell what it would do in this mode
			if on, err := k.conn.PowerSave(i.Index); err == nil {
				out.PowerSave = &on
			}
		}
	}
	if of == nil {
		of = other
	}
	if of == nil {
		return nil, nil
	}
	k.cells(out, of.Index, i != nil)
	out.Country, _ = k.conn.Country()
	k.phy(out, of.Phy, mhz, other)
	return out, nil
}

// cells reports the networks that an interface has heard, and of the one that
// it is in, when it is the tested one. What cannot be read stays absent: the
// radio may go at any moment. mu is held.
func (k *Kernel) cells(out *wire.Caps, ifindex int, tested bool) {
	cells, _ := k.conn.BSSes(ifindex)
	for _, cell := range cells {
		if cell.Joined && tested {
			out.SSID, out.BSSID, out.BasicRatesMbps = cell.SSID, cell.BSSID, cell.BasicMbps
		} else {
			out.Heard = append(out.Heard, wire.HeardCell{SSID: cell.SSID, BSSID: cell.BSSID,
				Channel: nl80211.Channel(cell.MHz), SignalDbm: cell.SignalDbm, AgeMs: int64(cell.SeenMsAgo)})
		}
	}
}

// phy reports what a radio can do on a frequency, and beside what. mu is held.
func (k *Kernel) phy(out *wire.Caps, index, mhz int, other *nl80211.Interface) {
	phys, _ := k.conn.Phys()
	for _, p := range phys {
		if p.Index != index {
			continue
		}
		out.Modes, out.Channels = p.Modes, p.Usable()
		for _, c := range p.Combinations {
			out.Combinations = append(out.Combinations, c.String())
		}
		out.RTSThresholdBytes, out.ShortRetryLimit, out.LongRetryLimit = limits(p)
		if f := p.At(mhz); f != nil {
			out.RatesMbps = f.RatesMbps
		}
		if other != nil && other.Phy == p.Index {
			out.Beside = beside(p, *other)
		}
	}
}

// beside is what the tested interface shares its radio with.
func beside(p nl80211.Phy, other nl80211.Interface) *wire.Beside {
	b := &wire.Beside{Interface: other.Name, Mode: other.Mode, Channel: nl80211.Channel(other.MHz),
		Channels: map[string]int{}}
	for _, mode := range p.Modes {
		if n := p.Beside(mode, other.Mode); n > 0 {
			b.Channels[mode] = n
		}
	}
	return b
}

// limits are how a radio announces and repeats frames, absent where the driver
// does not tell: it then has limits of its own.
func limits(p nl80211.Phy) (rts, short, long *int) {
	threshold := min(int(p.RTSThreshold), wire.RTSNever)
	if p.RetryShort != 0 {
		rts, short = &threshold, new(int(p.RetryShort))
	}
	if p.RetryLong != 0 {
		long = new(int(p.RetryLong))
	}
	return rts, short, long
}

// Sample gives a *wire.Station per peer, and up to ten times a second a
// *wire.Survey of the channel in use. Nothing for an interface that is not a
// radio's.
func (k *Kernel) Sample(tBootNs int64) ([]wire.Body, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i, err := k.find(k.iface)
	if err != nil || i == nil {
		return nil, err
	}
	stations, err := k.conn.Stations(i.Index)
	if err != nil {
		return nil, fmt.Errorf("read stations of %q: %w", k.iface, err)
	}
	var out []wire.Body
	before := k.heard
	k.heard = map[string]heard{}
	for _, s := range stations {
		s.InactiveMs = k.silentMs(tBootNs, s, before)
		out = append(out, stationOf(s))
	}
	if tBootNs-k.looked >= quirksEvery.Nanoseconds() {
		k.looked = tBootNs
		events, err := k.quirks(tBootNs, *i, stations)
		if err != nil {
			return out, err
		}
		out = append(out, events...)
	}
	if tBootNs < k.survey {
		return out, nil
	}
	surveys, err := k.surveys(tBootNs, i.Index)
	return append(out, surveys...), err
}

// surveys asks about the channel, and says when to ask again. mu is held.
func (k *Kernel) surveys(tBootNs int64, ifindex int) (out []wire.Body, err error) {
	asked := time.Now()
	all, err := k.conn.Surveys(ifindex)
	pause := surveyEvery
	if time.Since(asked) > slowSurvey {
		pause = slowSurveyEvery
	}
	k.survey = tBootNs + pause.Nanoseconds()
	if err != nil {
		return nil, fmt.Errorf("survey channel of %q: %w", k.iface, err)
	}
	for _, s := range all {
		if s.InUse {
			out = append(out, &wire.Survey{Channel: nl80211.Channel(s.MHz), NoiseDbm: s.NoiseDbm, ActiveMs: s.ActiveMs,
				BusyMs: s.BusyMs})
		}
	}
	return out, nil
}

// silentMs is for how long no frame has come of a station, whose last one's signal it has:
// mac80211 (ieee80211_sta_last_active) counts from a station's last ACK, too. A beacon has a signal, and need not be
// among a driver's bytes: where beacons are counted, they count. mu is held.
func (k *Kernel) silentMs(tBootNs int64, s nl80211.Station, before map[string]heard) *float64 {
	if s.RxBytes == nil || s.InactiveMs == nil {
		return s.InactiveMs
	}
	now := heard{bytes: *s.RxBytes, atNs: tBootNs - int64(*s.InactiveMs*1e6)}
	if s.RxBeacons != nil {
		now.beacons = *s.RxBeacons
	}
	if last, known := before[s.MAC]; known && last.bytes == now.bytes && last.beacons == now.beacons {
		now = last
	}
	k.heard[s.MAC] = now
	return new(max(*s.InactiveMs, float64(tBootNs-now.atNs)/1e6))
}

func stationOf(s nl80211.Station) *wire.Station {
	return &wire.Station{Peer: s.MAC, SignalDbm: s.SignalDbm, TxBitrateMbps: s.TxBitrateMbps,
		RxBitrateMbps: s.RxBitrateMbps,
		TxRetries:     s.TxRetries, TxFailed: s.TxFailed, InactiveMs: s.InactiveMs}
}
