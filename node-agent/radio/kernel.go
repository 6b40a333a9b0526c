package radio

import (
	"fmt"
	"sync"
	"time"

	"github.com/mdlayher/wifi"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// surveyEvery is how often the channel is asked about: the kernel answers for
// every channel that the radio knows.
const surveyEvery = time.Second

// nl80211 is what Kernel asks of the kernel; *wifi.Client is one.
type nl80211 interface {
	Interfaces() ([]*wifi.Interface, error)
	StationInfo(*wifi.Interface) ([]*wifi.StationInfo, error)
	SurveyInfo(*wifi.Interface) ([]*wifi.SurveyInfo, error)
}

// Kernel reads a real radio through nl80211, which needs no privileges for
// reading. It serves a node that has no radio-feedback socket. Where the
// library gives 0 for what the driver did not tell, the field is absent; a
// count that really is 0 is then absent too.
type Kernel struct {
	iface string
	open  func() (nl80211, error)

	mu       sync.Mutex
	client   nl80211
	surveyed int64 // boot time of the last survey
}

// NewKernel makes a reader of one interface. It opens nothing yet: the radio
// may be plugged in later.
func NewKernel(iface string) *Kernel {
	return &Kernel{iface: iface, open: func() (nl80211, error) { return wifi.New() }}
}

// Name names the reader as a source of samples.
func (k *Kernel) Name() string { return "radio" }

// find returns the interface as nl80211 knows it; nil when it is no radio's. mu is held.
func (k *Kernel) find() (*wifi.Interface, error) {
	if k.client == nil {
		c, err := k.open()
		if err != nil {
			return nil, fmt.Errorf("open nl80211: %w", err)
		}
		k.client = c
	}
	all, err := k.client.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list radios: %w", err)
	}
	for _, i := range all {
		if i.Name == k.iface {
			return i, nil
		}
	}
	return nil, nil
}

// Caps is how the radio is set at present; false when the interface is no
// radio's. Standard and transmit power are not among what the kernel tells here.
func (k *Kernel) Caps() (wire.Caps, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i, err := k.find()
	if err != nil || i == nil {
		return wire.Caps{}, false
	}
	return wire.Caps{Driver: "nl80211", MAC: i.HardwareAddr.String(), Mode: mode(i.Type), Channel: channel(i.Frequency), RatesMbps: []float64{}}, true
}

func mode(t wifi.InterfaceType) string {
	switch t {
	case wifi.InterfaceTypeAdHoc:
		return "adhoc"
	case wifi.InterfaceTypeMeshPoint:
		return "mesh"
	}
	return t.String()
}

// channel is the number of the channel with a centre frequency in MHz (IEEE
// 802.11-2020, 17.3.8.4.2 and 15.4.4.3); 0 for one outside 2.4 and 5 GHz.
func channel(mhz int) int {
	switch {
	case mhz == 2484:
		return 14
	case mhz >= 2412 && mhz <= 2472:
		return (mhz - 2407) / 5
	case mhz >= 5160 && mhz <= 5885:
		return (mhz - 5000) / 5
	}
	return 0
}

// Sample gives a *wire.Station per peer, and once a second a *wire.Survey of
// the channel in use. Nothing for an interface that is no radio's.
func (k *Kernel) Sample(tBootNs int64) ([]wire.Body, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i, err := k.find()
	if err != nil || i == nil {
		return nil, err
	}
	stations, err := k.client.StationInfo(i)
	if err != nil {
		return nil, fmt.Errorf("read stations of %q: %w", k.iface, err)
	}
	var out []wire.Body
	for _, s := range stations {
		out = append(out, stationOf(s))
	}
	if tBootNs-k.surveyed < surveyEvery.Nanoseconds() {
		return out, nil
	}
	k.surveyed = tBootNs
	surveys, err := k.client.SurveyInfo(i)
	if err != nil {
		return out, fmt.Errorf("survey channel of %q: %w", k.iface, err)
	}
	for _, s := range surveys {
		if s.InUse {
			out = append(out, surveyOf(s))
		}
	}
	return out, nil
}

func stationOf(s *wifi.StationInfo) *wire.Station {
	ms := float64(s.Inactive) / float64(time.Millisecond)
	return &wire.Station{Peer: s.HardwareAddr.String(), SignalDbm: told(s.Signal, 1), TxBitrateMbps: told(s.TransmitBitrate, 1e-6),
		RxBitrateMbps: told(s.ReceiveBitrate, 1e-6), TxRetries: count(s.TransmitRetries), TxFailed: count(s.TransmitFailed), InactiveMs: &ms}
}

func surveyOf(s *wifi.SurveyInfo) *wire.Survey {
	out := &wire.Survey{Channel: channel(s.Frequency), NoiseDbm: told(s.Noise, 1)}
	if s.ChannelTimeActive > 0 {
		active, busy := float64(s.ChannelTimeActive)/float64(time.Millisecond), float64(s.ChannelTimeBusy)/float64(time.Millisecond)
		out.ActiveMs, out.BusyMs = &active, &busy
	}
	return out
}

// told is v in another unit, absent for 0.
func told(v int, scale float64) *float64 {
	if v == 0 {
		return nil
	}
	out := float64(v) * scale
	return &out
}

func count(v int) *uint64 {
	if v <= 0 {
		return nil
	}
	out := uint64(v)
	return &out
}
