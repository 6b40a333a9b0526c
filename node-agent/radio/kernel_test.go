package radio

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// fakeRadio answers as a kernel with one ad hoc interface would.
type fakeRadio struct {
	down  bool
	other bool          // there is a mesh0 too
	slow  time.Duration // that a survey takes
	cells []nl80211.BSS
	phys  []nl80211.Phy
	sleep string // "on", "off"; else the kernel does not tell
	mode  string // absent: ad hoc
}

func (f fakeRadio) Interface(name string) (*nl80211.Interface, error) {
	if f.down {
		return nil, errors.New("gone")
	}
	if name == "mesh0" && f.other {
		return &nl80211.Interface{Index: 2, Name: "mesh0", MAC: "06:00:00:00:00:01", Mode: "mesh", MHz: 2437}, nil
	}
	if name != "wlan0" {
		return nil, nil
	}
	return &nl80211.Interface{Name: "wlan0", MAC: "02:00:00:00:00:01", Mode: cmp.Or(f.mode, "adhoc"), MHz: 2437,
		Width: nl80211.WidthNoHT, TxPowerDbm: new(17.0)}, nil
}

func (f fakeRadio) BSSes(int) ([]nl80211.BSS, error) {
	if f.cells != nil {
		return f.cells, nil
	}
	return []nl80211.BSS{
		{SSID: "mesh", BSSID: "02:11:22:33:44:55", MHz: 2437, Joined: true, BasicMbps: []float64{1, 2}},
		{SSID: "home", BSSID: "02:11:22:33:44:77", MHz: 2412, SignalDbm: new(-71.0), SeenMsAgo: 120},
	}, nil
}

func (fakeRadio) Country() (string, error) { return "DE", nil }

func (f fakeRadio) PowerSave(int) (bool, error) {
	if f.sleep == "" {
		return false, errors.New("not supported")
	}
	return f.sleep == "on", nil
}
func (fakeRadio) Close() error { return nil }

func (f fakeRadio) Phys() ([]nl80211.Phy, error) {
	if f.phys != nil {
		return f.phys, nil
	}
	return []nl80211.Phy{{Modes: []string{"adhoc"}}}, nil
}

func (fakeRadio) Stations(int) ([]nl80211.Station, error) {
	return []nl80211.Station{{MAC: "02:00:00:00:00:02", SignalDbm: new(-61.0), TxBitrateMbps: new(54.0),
		TxRetries: new(uint64(7)), InactiveMs: new(20.0)}}, nil
}

func (f fakeRadio) Surveys(int) ([]nl80211.Survey, error) {
	time.Sleep(f.slow)
	return []nl80211.Survey{{MHz: 2412, NoiseDbm: new(-90.0)}, {MHz: 2437, NoiseDbm: new(-95.0), InUse: true,
		ActiveMs: new(1000.0), BusyMs: new(250.0)}}, nil
}

func kernelOf(iface string, f fakeRadio) *Kernel {
	k := NewKernel(iface)
	k.open = func() (reader, error) { return f, nil }
	return k
}

func TestKernelTellsWhatTheRadioIs(t *testing.T) {
	caps, err := kernelOf("wlan0", fakeRadio{}).Caps()
	if err != nil || caps.Mode != "adhoc" || caps.Channel != 6 ||
		caps.MAC != "02:00:00:00:00:01" || caps.Standard != "" ||
		caps.BSSID != "02:11:22:33:44:55" || caps.Width != nl80211.WidthNoHT || caps.TxPowerDbm == nil ||
		*caps.TxPowerDbm != 17 || caps.Country !=
		"DE" ||
		len(caps.Heard) != 1 || caps.Heard[0].SSID != "home" || caps.Heard[0].Channel != 1 || caps.Heard[0].AgeMs !=
		120 {
		t.Errorf("caps %+v, %v", caps, err)
	}
	if caps, err := kernelOf("eth0", fakeRadio{}).Caps(); caps != nil || err != nil {
		t.Errorf("of an interface that is not a radio's: %+v, %v", caps, err)
	}
	if caps, err := kernelOf("wlan0", fakeRadio{down: true}).Caps(); caps != nil || err == nil {
		t.Errorf("of a kernel that does not answer: %+v, %v", caps, err)
	}
}

// A power that the kernel does not tell is absent: 0 dBm would be one.
func TestAPowerThatTheKernelDoesNotTellIsAbsent(t *testing.T) {
	for iface, told := range map[string]bool{"wlan0": true, "mesh0": false} {
		caps, err := kernelOf(iface, fakeRadio{other: true}).Caps()
		text, _ := json.Marshal(caps)
		if err != nil || strings.Contains(string(text), "tx_power_dbm") != told {
			t.Errorf("%s: %s, %v", iface, text, err)
		}
	}
}

// Whether a station may sleep is told; of what does not sleep, and where the kernel does not tell, nothing is.
func TestKernelTellsWhetherAStationMaySleep(t *testing.T) {
	for name, c := range map[string]struct {
		radio fakeRadio
		want  *bool
	}{
		"it may":             {fakeRadio{mode: "managed", sleep: "on"}, new(true)},
		"it may not":         {fakeRadio{mode: "managed", sleep: "off"}, new(false)},
		"nobody tells":       {fakeRadio{mode: "managed"}, nil},
		"in an ad hoc cell":  {fakeRadio{sleep: "on"}, nil},
		"as an access point": {fakeRadio{mode: "ap", sleep: "on"}, nil},
	} {
		caps, err := kernelOf("wlan0", c.radio).Caps()
		if err != nil || !reflect.DeepEqual(caps.PowerSave, c.want) {
			t.Errorf("%s: %+v, %v", name, caps, err)
		}
	}
}

// Before a run an interface beside the machine's own has what its radio can do,
// and nothing of the network that the other is in; then it has its own.
func TestKernelTellsOfTheRadioBeside(t *testing.T) {
	f := fakeRadio{phys: []nl80211.Phy{{Modes: []string{"adhoc", "mesh"},
		Frequencies: []nl80211.Frequencies{{MHz: 2437, RatesMbps: []float64{6}}},
		Combinations: []nl80211.Combination{{Interfaces: 2, Channels: 1,
			Limits: []nl80211.Limit{{Interfaces: 2, Modes: []string{"adhoc", "mesh"}}}}}}}}
	k := NewKernelBeside("mesh0", "wlan0")
	k.open = func() (reader, error) { return f, nil }
	caps, err := k.Caps()
	if err != nil || caps.MAC != "" ||
		caps.Mode != "" || caps.Channel != 0 || caps.SSID != "" || caps.TxPowerDbm != nil ||
		len(caps.RatesMbps) != 0 || len(caps.Modes) != 2 ||
		len(caps.Heard) != 2 || caps.Heard[0].SSID != "mesh" {
		t.Errorf("before: %+v, %v", caps, err)
	}
	want := wire.Beside{Interface: "wlan0", Mode: "adhoc", Channel: 6, Channels: map[string]int{"adhoc": 1, "mesh": 1}}
	if caps.Beside == nil || !reflect.DeepEqual(*caps.Beside, want) {
		t.Errorf("beside %+v, want %+v", caps.Beside, want)
	}
	if bodies, err := k.Sample(0); err != nil || len(bodies) != 0 {
		t.Errorf("sampled %v, %v of an interface that is not there", bodies, err)
	}
	f.other = true
	k = NewKernelBeside("mesh0", "wlan0")
	k.open = func() (reader, error) { return f, nil }
	if caps, err = k.Caps(); err != nil || caps.MAC != "06:00:00:00:00:01" || caps.Mode != "mesh" ||
		caps.Channel != 6 || caps.Beside == nil || caps.Beside.Channel != 6 || len(caps.RatesMbps) != 1 {
		t.Errorf("in the run: %+v, %v", caps, err)
	}
	k = NewKernelBeside("mesh0", "wlan1")
	k.open = func() (reader, error) { return fakeRadio{}, nil }
	if caps, err := k.Caps(); caps != nil || err != nil {
		t.Errorf("beside one that is not there: %+v, %v", caps, err)
	}
}

func TestKernelSamplesStationsAndTheChannel(t *testing.T) {
	for _, c := range []struct {
		name    string
		slow    time.Duration
		surveys int
	}{
		{"ten times a second", 0, 25},
		{"once a second where the driver takes its time", slowSurvey + time.Millisecond, 3},
	} {
		t.Run(c.name, func(t *testing.T) { samples(t, c.slow, c.surveys) })
	}
	if bodies, err := kernelOf("eth0", fakeRadio{}).Sample(0); err != nil || len(bodies) != 0 {
		t.Errorf("no radio: %v, %v", bodies, err)
	}
	if _, err := kernelOf("wlan0", fakeRadio{down: true}).Sample(0); err == nil {
		t.Error("a kernel that does not answer is not an error")
	}
}

func samples(t *testing.T, slow time.Duration, want int) {
	k := kernelOf("wlan0", fakeRadio{slow: slow})
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
				if *b.SignalDbm != -61 || *b.TxBitrateMbps != 54 || *b.TxRetries != 7 || b.TxFailed != nil ||
					*b.InactiveMs != 20 {
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
	if stations != 25 || surveys > want || slow == 0 && surveys < want/2 || surveys == 0 {
		t.Errorf("%d stations and %d surveys, want 25 and %d", stations, surveys, want)
	}
}

// A driver that lies is reported once for each network.
func TestKernelTellsOfLies(t *testing.T) {
	own := nl80211.BSS{BSSID: "02:11:22:33:44:55", SSID: "mesh", MHz: 2437, Joined: true, Capability: 2}
	other := nl80211.BSS{BSSID: "02:99:99:99:99:99", SSID: "mesh", MHz: 2437, Capability: 2, SeenMsAgo: 50}
	f := fakeRadio{cells: []nl80211.BSS{own, other}}
	k := NewKernel("wlan0")
	k.open = func() (reader, error) { return f, nil }
	told := func(from, to int) (out []string) {
		for s := from; s < to; s++ {
			bodies, err := k.Sample(int64(s) * int64(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range bodies {
				if e, ok := b.(*wire.Event); ok {
					out = append(out, e.Level+" "+e.Text)
				}
			}
		}
		return out
	}
	if got := told(60, 70); len(got) != 1 || !strings.HasPrefix(got[0], "error split_cell: ") {
		t.Errorf("told %q, want the split once", got)
	}
	f.cells[0].BSSID = "02:77:77:77:77:77" // another network, as split
	if got := told(70, 80); len(got) != 1 {
		t.Errorf("told %q of another network", got)
	}
}

// bytesRadio is one whose peer acknowledges at every moment, and of which frames come
// from time to time.
type bytesRadio struct {
	fakeRadio
	station *nl80211.Station
}

func (f bytesRadio) Stations(int) ([]nl80211.Station, error) {
	if f.station == nil {
		return nil, nil
	}
	return []nl80211.Station{*f.station}, nil
}

// mac80211 counts a peer's ACK as a sign of life, and keeps the signal of its last frame: a
// signal is no newer than the last byte that came, or the last beacon.
func TestASignalIsAsOldAsTheLastFrame(t *testing.T) {
	radio := &bytesRadio{}
	k := NewKernel("wlan0")
	k.open = func() (reader, error) { return radio, nil }
	for i, c := range []struct {
		bytes   *uint64 // so far; nil: the driver does not count
		beacons *uint64
		gone    bool
		want    float64 // ms
	}{
		{bytes: new(uint64(500)), want: 4}, {bytes: new(uint64(500)), want: 104}, {bytes: new(uint64(500)), want: 204},
		{bytes: new(uint64(900)), want: 4}, {bytes: new(uint64(900)), want: 104},
		{gone: true}, {bytes: new(uint64(900)), want: 4}, {bytes: nil, want: 4},
		// A driver that leaves beacons out of the bytes.
		{bytes: new(uint64(900)), beacons: new(uint64(3)), want: 4},
		{bytes: new(uint64(900)), beacons: new(uint64(3)), want: 104},
		{bytes: new(uint64(900)), beacons: new(uint64(4)), want: 4},
		{bytes: new(uint64(900)), beacons: new(uint64(4)), want: 104},
		{bytes: new(uint64(950)), beacons: new(uint64(4)), want: 4},
	} {
		radio.station = nil
		if !c.gone {
			radio.station = &nl80211.Station{MAC: "02:00:00:00:00:02", SignalDbm: new(-61.0), InactiveMs: new(4.0),
				RxBytes: c.bytes, RxBeacons: c.beacons}
		}
		bodies, err := k.Sample(int64(time.Minute) + int64(i)*int64(100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bodies {
			if s, ok := b.(*wire.Station); ok && *s.InactiveMs != c.want {
				t.Errorf("sample %d: last heard %g ms ago, want %g", i, *s.InactiveMs, c.want)
			}
		}
	}
}
