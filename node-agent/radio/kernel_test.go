package radio

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/mdlayher/wifi"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// fakeRadio answers as a kernel with one ad hoc interface would.
type fakeRadio struct{ down bool }

func (f fakeRadio) Interfaces() ([]*wifi.Interface, error) {
	if f.down {
		return nil, errors.New("gone")
	}
	return []*wifi.Interface{{Name: "wlan0", HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Type: wifi.InterfaceTypeAdHoc, Frequency: 2437}}, nil
}

func (f fakeRadio) StationInfo(*wifi.Interface) ([]*wifi.StationInfo, error) {
	return []*wifi.StationInfo{{HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 2}, Signal: -61, TransmitBitrate: 54_000_000, TransmitRetries: 7, Inactive: 20 * time.Millisecond}}, nil
}

func (f fakeRadio) SurveyInfo(*wifi.Interface) ([]*wifi.SurveyInfo, error) {
	return []*wifi.SurveyInfo{{Frequency: 2412, Noise: -90}, {Frequency: 2437, Noise: -95, InUse: true, ChannelTimeActive: time.Second, ChannelTimeBusy: 250 * time.Millisecond}}, nil
}

func kernelOf(iface string, f fakeRadio) *Kernel {
	k := NewKernel(iface)
	k.open = func() (nl80211, error) { return f, nil }
	return k
}

func TestKernelTellsWhatTheRadioIs(t *testing.T) {
	caps, ok := kernelOf("wlan0", fakeRadio{}).Caps()
	if !ok || caps.Mode != "adhoc" || caps.Channel != 6 || caps.MAC != "02:00:00:00:00:01" || caps.Standard != "" {
		t.Errorf("caps %+v, %v", caps, ok)
	}
	if _, ok := kernelOf("eth0", fakeRadio{}).Caps(); ok {
		t.Error("an interface that is no radio's has caps")
	}
	if _, ok := kernelOf("wlan0", fakeRadio{down: true}).Caps(); ok {
		t.Error("a kernel that does not answer has caps")
	}
}

func TestKernelSamplesStationsAndOnceASecondTheChannel(t *testing.T) {
	k := kernelOf("wlan0", fakeRadio{})
	var stations, surveys int
	for tick := range 25 { // 2.5 s, from a boot time of a minute
		bodies, err := k.Sample(int64(time.Minute) + int64(tick)*int64(100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bodies {
			switch b := b.(type) {
			case *wire.Station:
				stations++
				if *b.SignalDbm != -61 || *b.TxBitrateMbps != 54 || *b.TxRetries != 7 || b.TxFailed != nil || *b.InactiveMs != 20 {
					t.Fatalf("station %+v", b)
				}
			case *wire.Survey:
				surveys++
				if b.Channel != 6 || *b.NoiseDbm != -95 || *b.ActiveMs != 1000 || *b.BusyMs != 250 {
					t.Fatalf("survey %+v", b)
				}
			}
		}
	}
	if stations != 25 || surveys != 3 {
		t.Errorf("%d stations and %d surveys, want 25 and 3", stations, surveys)
	}
	if bodies, err := kernelOf("eth0", fakeRadio{}).Sample(0); err != nil || len(bodies) != 0 {
		t.Errorf("no radio: %v, %v", bodies, err)
	}
	if _, err := kernelOf("wlan0", fakeRadio{down: true}).Sample(0); err == nil {
		t.Error("a kernel that does not answer is no error")
	}
}

func TestChannelNumbers(t *testing.T) {
	for mhz, want := range map[int]int{2412: 1, 2437: 6, 2472: 13, 2484: 14, 5180: 36, 5825: 165, 900: 0} {
		if got := channel(mhz); got != want {
			t.Errorf("%d MHz is channel %d, want %d", mhz, got, want)
		}
	}
}
