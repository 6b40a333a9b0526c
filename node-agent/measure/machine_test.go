package measure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// device writes a device of a class of sysfs.
func device(t *testing.T, sysfs, class, name string, attributes map[string]string) {
	t.Helper()
	dir := filepath.Join(sysfs, "class", class, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for attribute, value := range attributes {
		if err := os.WriteFile(filepath.Join(dir, attribute), []byte(value+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMachineTellsBatteryAndHeat(t *testing.T) {
	sysfs := t.TempDir()
	m := NewMachine(sysfs, MachineLimits{BatteryMinPercent: 5, TemperatureMaxC: 95}, nil)
	if now, known := m.Now(); known || m.Fit() != nil {
		t.Errorf("a machine with nothing tells %+v", now)
	}
	device(t, sysfs, "power_supply", "AC", map[string]string{"type": "Mains", "online": "0"})
	device(t, sysfs, "power_supply", "BAT0", map[string]string{"type": "Battery", "capacity": "40",
		"status": "Discharging", "energy_now": "20000000", "energy_full": "50000000", "power_now": "10000000"})
	device(t, sysfs, "power_supply", "mouse", map[string]string{"type": "Battery", "scope": "Device", "capacity": "1",
		"status": "Discharging"})
	device(t, sysfs, "thermal", "thermal_zone0", map[string]string{"type": "acpitz", "temp": "42000"})
	device(t, sysfs, "thermal", "thermal_zone1", map[string]string{"type": "x86_pkg_temp", "temp": "71500"})
	device(t, sysfs, "thermal", "thermal_zone2", map[string]string{"type": "broken", "temp": "-274000"})
	now, known := m.Now()
	if !known || *now.BatteryPercent != 40 || now.BatteryState != "discharging" || *now.BatteryLeftS != 7200 ||
		*now.OnMains || *now.TemperatureC != 71.5 || now.HottestZone != "x86_pkg_temp" || !now.Alarm.IsZero() {
		t.Errorf("%+v", now)
	}
	// A second, larger one that is full: what both hold together.
	device(t, sysfs, "power_supply", "BAT1", map[string]string{"type": "Battery", "capacity": "100",
		"status": "Not charging", "energy_now": "100000000", "energy_full": "100000000", "power_now": "0"})
	if now, _ = m.Now(); *now.BatteryPercent != 80 || now.BatteryState != "discharging" {
		t.Errorf("two batteries: %+v", now)
	}
}

// Phones tell charge and current instead, the current with a sign.
func TestMachineOfAPhone(t *testing.T) {
	sysfs := t.TempDir()
	device(t, sysfs, "power_supply", "battery", map[string]string{"type": "Battery", "capacity": "50",
		"status": "Discharging", "charge_now": "1500000", "charge_full": "3000000", "current_now": "-500000"})
	if now, _ := NewMachine(sysfs, MachineLimits{}, nil).Now(); now.BatteryLeftS == nil || *now.BatteryLeftS !=
		3*3600 || now.OnMains != nil {
		t.Errorf("%+v", now)
	}
}

func TestMachineAlarms(t *testing.T) {
	for name, c := range map[string]struct {
		percent, status, mains, temp string
		alarm                        string
	}{
		"low":              {"4", "Discharging", "0", "50000", "battery: 4 % left, the limit is 5 %"},
		"low, and charged": {"4", "Charging", "1", "50000", ""},
		// A laptop that draws more than its mains gives tells both.
		"low beside the mains": {"4", "Discharging", "1", "50000", ""},
		"at the limit":         {"5", "Discharging", "0", "95000", ""},
		"hot":                  {"50", "Discharging", "0", "96000", "temperature: 96 °C at cpu, the limit is 95 °C"},
	} {
		sysfs := t.TempDir()
		device(t, sysfs, "power_supply", "AC", map[string]string{"type": "Mains", "online": c.mains})
		device(t, sysfs, "power_supply", "BAT0", map[string]string{"type": "Battery", "capacity": c.percent,
			"status": c.status})
		device(t, sysfs, "thermal", "thermal_zone0", map[string]string{"type": "cpu", "temp": c.temp})
		m := NewMachine(sysfs, MachineLimits{BatteryMinPercent: 5, TemperatureMaxC: 95}, nil)
		if now, _ := m.Now(); now.Alarm.String() != c.alarm {
			t.Errorf("%s: alarm %q, want %q", name, now.Alarm, c.alarm)
		}
		if err := m.Fit(); (err == nil) != (c.alarm == "") {
			t.Errorf("%s: %v", name, err)
		}
		if now, _ := NewMachine(sysfs, MachineLimits{}, nil).Now(); !now.Alarm.IsZero() {
			t.Errorf("%s: without limits %q", name, now.Alarm)
		}
	}
}

func TestMachineIsToldWhenThereIsSomethingToTell(t *testing.T) {
	sysfs := t.TempDir()
	battery := func(percent, status string) {
		device(t, sysfs, "power_supply", "BAT0", map[string]string{"type": "Battery", "capacity": percent,
			"status": status})
	}
	battery("50", "Discharging")
	m := NewMachine(sysfs, MachineLimits{BatteryMinPercent: 5}, nil)
	const tick = 100_000_000
	now := int64(tick)
	told := map[int64]string{}
	sample := func(ticks int) {
		for range ticks {
			bodies, err := m.Sample(now)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range bodies {
				s := b.(*wire.Machine)
				told[now/tick] = strings.TrimSpace(s.BatteryState + " " + s.Alarm.String())
			}
			now += tick
		}
	}
	sample(110) // at 1, and ten seconds later
	battery("4", "Discharging")
	sample(30) // the alarm, at the next look
	battery("4", "Charging")
	sample(30)
	m.Begin() // the trial has ended; another begins
	sample(5)
	want := map[int64]string{1: "discharging", 101: "discharging", 121: "discharging battery: 4 % left, the " +
		"limit is 5 %", 141: "charging", 171: "charging"}
	if len(told) != len(want) {
		t.Errorf("told %v, want %v", told, want)
	}
	for at, text := range want {
		if told[at] != text {
			t.Errorf("at tick %d: %q, want %q; told %v", at, told[at], text, told)
		}
	}
}

// A machine without battery and thermometer reports its disk all the same.
func TestMachineTellsOfItsDisk(t *testing.T) {
	free := int64(5e9)
	m := NewMachine(t.TempDir(), MachineLimits{}, func() wire.SpoolStatus {
		return wire.SpoolStatus{FreeBytes: free, UsedBytes: 7}
	})
	m.Begin()
	for _, c := range []struct {
		atS  int64
		want *int64
	}{{1, new(int64(5e9))}, {4, nil}, {12, new(int64(4e9))}} {
		got, err := m.Sample(c.atS * 1e9)
		if err != nil || (len(got) == 1) != (c.want != nil) {
			t.Fatalf("after %d s: %v, %v", c.atS, got, err)
		}
		if c.want != nil {
			if now := got[0].(*wire.Machine); *now.DiskFreeBytes != *c.want || *now.SpoolBytes != 7 ||
				now.TemperatureC != nil {
				t.Errorf("after %d s: %+v", c.atS, now)
			}
		}
		free = 4e9
	}
}
