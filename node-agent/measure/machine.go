package measure

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// lookMachine is how often battery and temperature are read: they change
	// slowly, and reading a battery may wake a controller chip.
	lookMachine = 2 * time.Second
	tellMachine = 10 * time.Second
)

// MachineLimits are where a machine's state becomes an alarm; 0: none.
type MachineLimits struct {
	BatteryMinPercent float64 // of a battery that feeds the machine
	TemperatureMaxC   float64
}

// Machine is a source of samples of battery, temperatures and disk: when a trial
// begins, every ten seconds, and at once when the battery's state or an alarm
// changes.
type Machine struct {
	sysfs  string
	limits MachineLimits
	room   func() wire.SpoolStatus

	mu     sync.Mutex
	readNs int64 // 0: not yet in this trial
	toldNs int64
	told   wire.Machine
}

// NewMachine makes a source that reads the kernel's classes power_supply and
// thermal below sysfs, "/sys" where nothing else is meant. room reports the
// disk that records go to; nil: nothing is reported of it.
func NewMachine(sysfs string, limits MachineLimits, room func() wire.SpoolStatus) *Machine {
	return &Machine{sysfs: sysfs, limits: limits, room: room}
}

// Name names the source.
func (m *Machine) Name() string { return "machine" }

// Now reads the machine's state; false where it has neither battery, mains nor
// thermometer.
func (m *Machine) Now() (wire.Machine, bool) {
	out := wire.Machine{}
	m.power(&out)
	m.heat(&out)
	known := out != (wire.Machine{})
	out.Alarm = m.alarm(out)
	return out, known
}

// Begin starts again: the next sample is a trial's first.
func (m *Machine) Begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readNs = 0
}

// Sample gives a *wire.Machine when there is something to tell.
func (m *Machine) Sample(tBootNs int64) ([]wire.Body, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := m.readNs == 0
	if !first && tBootNs-m.readNs < lookMachine.Nanoseconds() {
		return nil, nil
	}
	m.readNs = tBootNs
	now, known := m.Now()
	changed := now.BatteryState != m.told.BatteryState || now.Alarm.IsZero() != m.told.Alarm.IsZero()
	if !known && m.room == nil || !first && !changed && tBootNs-m.toldNs < tellMachine.Nanoseconds() {
		return nil, nil
	}
	if m.room != nil {
		s := m.room()
		now.DiskFreeBytes, now.SpoolBytes = &s.FreeBytes, &s.UsedBytes
	}
	m.told, m.toldNs = now, tBootNs
	return []wire.Body{&now}, nil
}

func (m *Machine) alarm(s wire.Machine) wire.Reason {
	feeds := s.BatteryState == "discharging" && (s.OnMains == nil || !*s.OnMains)
	if l := m.limits.BatteryMinPercent; l > 0 && feeds && s.BatteryPercent != nil && *s.BatteryPercent < l {
		return wire.Reason{Code: "battery", Text: fmt.Sprintf("%.3g %% left, the limit is %g %%", *s.BatteryPercent, l)}
	}
	if l := m.limits.TemperatureMaxC; l > 0 && s.TemperatureC != nil && *s.TemperatureC > l {
		text := fmt.Sprintf("%.3g °C at %s, the limit is %g °C", *s.TemperatureC, s.HottestZone, l)
		return wire.Reason{Code: "temperature", Text: text}
	}
	return wire.Reason{}
}

// power reads class power_supply (Documentation/ABI/testing/sysfs-class-power
// in Linux). Batteries of mice and the like have the scope Device.
func (m *Machine) power(out *wire.Machine) {
	var now, full, drawn, percents, batteries float64
	for _, dir := range m.class("power_supply") {
		switch kind, _ := word(dir, "type"); {
		case kind == "Battery":
			if scope, _ := word(dir, "scope"); scope == "Device" {
				continue
			}
			percent, known := number(dir, "capacity")
			if !known {
				continue
			}
			batteries++
			percents += percent
			stock, size, draw := charge(dir)
			now, full, drawn = now+stock, full+size, drawn+draw
			if state, ok := word(dir, "status"); ok && out.BatteryState != "discharging" {
				out.BatteryState = strings.ReplaceAll(strings.ToLower(state), " ", "_")
			}
		case kind != "":
			if online, ok := number(dir, "online"); ok {
				on := online > 0 || out.OnMains != nil && *out.OnMains
				out.OnMains = &on
			}
		}
	}
	if batteries == 0 {
		return
	}
	out.BatteryPercent = new(percents / batteries)
	if full > 0 && batteries > 1 {
		out.BatteryPercent = new(100 * now / full)
	}
	if out.BatteryState == "discharging" && now > 0 && drawn > 0 {
		out.BatteryLeftS = new(math.Round(3600 * now / drawn))
	}
}

// charge is what a battery holds, can hold, and gives at present, in µWh and
// µW or in µAh and µA; 0 for what it does not tell.
func charge(dir string) (stock, size, draw float64) {
	for _, names := range [][3]string{{"energy_now", "energy_full", "power_now"},
		{"charge_now", "charge_full", "current_now"}} {
		stock, ok := number(dir, names[0])
		if !ok {
			continue
		}
		size, _ := number(dir, names[1])
		draw, _ := number(dir, names[2])
		return stock, size, math.Abs(draw) // phones give it a sign, and not all the same one
	}
	return 0, 0, 0
}

// plausible temperatures: zones that measure nothing tell the least number
// that there is, or 0 exactly.
func plausible(celsius float64) bool { return celsius > -50 && celsius < 200 && celsius != 0 }

// heat reads class thermal (Documentation/ABI/testing/sysfs-class-thermal).
func (m *Machine) heat(out *wire.Machine) {
	for _, dir := range m.class("thermal") {
		milli, ok := number(dir, "temp")
		if c := milli / 1000; ok && plausible(c) && (out.TemperatureC == nil || c > *out.TemperatureC) {
			out.TemperatureC = &c
			out.HottestZone, _ = word(dir, "type")
		}
	}
}

// class lists the devices of a class.
func (m *Machine) class(name string) []string {
	found, err := filepath.Glob(filepath.Join(m.sysfs, "class", name, "*"))
	if err != nil { // the folder's name is a broken pattern
		return nil
	}
	return found
}

// word reads an attribute; false where the device has none, or cannot tell.
func word(dir, name string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(text)), err == nil
}

func number(dir, name string) (float64, bool) {
	text, ok := word(dir, name)
	v, err := strconv.ParseFloat(text, 64)
	return v, ok && err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// Fit reports why no trial can begin on the machine as it is; nil when it can.
func (m *Machine) Fit() error {
	if now, _ := m.Now(); !now.Alarm.IsZero() {
		return now.Alarm
	}
	return nil
}
