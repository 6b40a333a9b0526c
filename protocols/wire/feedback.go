package wire

import (
	"bufio"
	"encoding/json"
	"io"
)

// Feedback is one line (JSON) of the radio-feedback socket: a unix stream
// socket per node, the same for a real radio and for the emulated medium. The
// server sends Caps first, then stations and survey ten times a second, or as
// often as the reader wishes, and events as they happen. Its queue is bounded;
// Dropped counts what a slow reader lost so far. Exactly one of the pointers is set.
type Feedback struct {
	Caps      *Caps      `json:"caps,omitempty"`
	Station   *Station   `json:"station,omitempty"`
	Survey    *Survey    `json:"survey,omitempty"`
	TxFailed  *TxFailed  `json:"tx_failed,omitempty"`
	Neighbour *Neighbour `json:"neighbour,omitempty"`
	FrameLost *FrameLost `json:"frame_lost,omitempty"`
	Dropped   uint64     `json:"dropped,omitempty"`
}

// FeedbackHz is how often a second a server sends stations and survey: these are
// its turns.
const FeedbackHz = 10

// FeedbackWish is a line (JSON) that a reader of the socket may send, at any time
// and again: how often it needs stations and survey. A server may ignore it.
type FeedbackWish struct {
	SampleHz int `json:"sample_hz"` // 0: not at all; FeedbackHz at most
}

// Turns returns how many turns lie between two in which the reader is sent
// something; 0: it is sent nothing.
func (w FeedbackWish) Turns() int64 {
	if w.SampleHz <= 0 {
		return 0
	}
	return int64(max(1, FeedbackHz/w.SampleHz))
}

// maxWishBytes bounds a line of a reader's.
const maxWishBytes = 1024

// ReadWishes reads a reader's wishes until it is gone, or sends something else.
func ReadWishes(r io.Reader, each func(FeedbackWish)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxWishBytes)
	for lines.Scan() {
		var w FeedbackWish
		if json.Unmarshal(lines.Bytes(), &w) != nil {
			return
		}
		each(w)
	}
}

// AndroidDriver is what a radio calls itself of which Android tells, being its master.
const AndroidDriver = "android"

// The levels of Android's API from which a program may have it join a network
// (connect-network of its command is in Android 11) and start a hotspot
// (start-softap is in 12).
const (
	AndroidJoinsFromAPI   = 30
	AndroidHotspotFromAPI = 31
)

// Caps is what a radio can do and is set to.
type Caps struct {
	Driver     string    `json:"driver" redact:"keep"` // "medium" for the emulated one
	MAC        string    `json:"mac" redact:"keep"`
	Mode       string    `json:"mode,omitempty" redact:"keep"`     // adhoc | mesh | …; absent where nothing tells
	Standard   string    `json:"standard,omitempty" redact:"keep"` // absent where nothing tells
	Channel    int       `json:"channel"`
	TxPowerDbm *float64  `json:"tx_power_dbm,omitempty"` // absent where nothing tells
	RatesMbps  []float64 `json:"rates_mbps"`

	// Of a real radio, as far as its driver tells:

	SSID  string `json:"ssid,omitempty" redact:"keep"`
	BSSID string `json:"bssid,omitempty" redact:"keep"`
	// "20 MHz (no HT)": the rates of 802.11a, b and g only
	Width          string    `json:"width,omitempty" redact:"keep"`
	BasicRatesMbps []float64 `json:"basic_rates_mbps,omitempty"`
	Country        string    `json:"country,omitempty" redact:"keep"` // regulatory domain, "00" for the world's
	Modes          []string  `json:"modes,omitempty" redact:"keep"`   // that it can be set to
	Channels       []int     `json:"channels,omitempty"`              // on which it may begin a network

	RTSThresholdBytes *int `json:"rts_threshold_bytes,omitempty"` // absent where nothing tells; 2347: off
	ShortRetryLimit   *int `json:"short_retry_limit,omitempty"`
	LongRetryLimit    *int `json:"long_retry_limit,omitempty"`

	// of interfaces that it can have at once, as iw(8) words them
	Combinations []string    `json:"combinations,omitempty" redact:"keep"`
	Heard        []HeardCell `json:"heard,omitempty"` // other networks that it has heard lately; the channel is scanned before it is joined
	// absent: the radio is the tested interface's alone
	Beside *Beside `json:"beside,omitempty" redact:"keep"`
	// whether the tested interface may sleep between beacons, which only a station does; absent where nothing tells
	PowerSave *bool `json:"power_save,omitempty"`
}

// Beside is the machine's own interface, on whose radio the tested one is made
// for a run: before it there is none, and mode, channel and network are absent.
type Beside struct {
	Interface string `json:"interface"`
	Mode      string `json:"mode"`
	Channel   int    `json:"channel,omitempty"` // of the network that it is in; absent: in none
	// on how many channels the radio can be at once with the tested interface in
	// a mode; a mode that is absent cannot be beside this interface
	Channels map[string]int `json:"channels"`
}

// HeardCell is a network of others that a radio has heard.
type HeardCell struct {
	SSID      string   `json:"ssid,omitempty" redact:"keep"` // absent: it does not say
	BSSID     string   `json:"bssid" redact:"keep"`
	Channel   int      `json:"channel"`
	SignalDbm *float64 `json:"signal_dbm,omitempty"`
	AgeMs     int64    `json:"age_ms"` // since it was heard last
}

// RTSNever is the threshold that no frame of 802.11a, b and g is longer than.
const RTSNever = 2347

// TxFailed says that a unicast frame to Peer was given up after all retries.
type TxFailed struct {
	Peer  string `json:"peer"`
	Frame []byte `json:"frame,omitempty"` // the Ethernet frame; absent where the radio does not say
}

// Neighbour says that a peer was heard for the first time, or is given up; a
// real radio's driver tells it, the emulated one does not.
type Neighbour struct {
	Peer  string `json:"peer"`
	State string `json:"state"` // new | gone
}

// FrameLost says which frame of which flow was lost and why; only an emulated
// medium can know.
type FrameLost struct {
	Flow  string `json:"flow"`  // "src:port>dst:port/proto"
	Seq   uint32 `json:"seq"`   // TCP sequence number, or IP id for UDP
	Cause string `json:"cause"` // collision | channel_error | out_of_range | queue_full | no_route | no_neighbour; and, after one of the three that say there was no way, route_change: there is another by now
}
