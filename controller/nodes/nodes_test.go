package nodes

import (
	"errors"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestCellsAreShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 999600: "1 MB", 51539607552: "51.5 GB",
		3e15: "3e+03 TB"} {
		if got := bytesCell(n); got != want {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
	status := wire.NodeStatus{Interface: "mesh0"}
	if got := radioCell(status); got != "mesh0 missing" {
		t.Errorf("no interface: %q", got)
	}
	status.Radio = &wire.Caps{Beside: &wire.Beside{Interface: "wlan0"}}
	if got := radioCell(status); got != "mesh0 beside wlan0" {
		t.Errorf("one that is made for a run: %q", got)
	}
	status.InterfaceUp = new(true)
	if got := radioCell(status); got != "mesh0 up" {
		t.Errorf("one that was made: %q", got)
	}
	clock := &wire.Clock{WallOffsetNs: -1_234_567, UncertaintyNs: 250_400}
	if got, want := clockCell(clock), "-1.23 ms ± 250 µs"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

//attack:face whoever has taken it over, or a radio's driver, tells what the controller's terminal would obey
func TestWhatNodesTellMovesNoTerminal(t *testing.T) {
	var out strings.Builder
	r := report{node: fleet.Node{Name: "car"}, err: errors.New("it said \x1b]52;c;cm0=\x07")}
	if err := printTable(&out, []report{r}, 0); !errors.Is(err, ErrNotWell) {
		t.Error(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\x07") || !strings.Contains(out.String(), `it said \x1b]52`) {
		t.Errorf("%q", out.String())
	}
}

// The table's 14 columns fit a terminal; what is the same everywhere stands below.
func TestTheTableFitsTheTerminal(t *testing.T) {
	var reports []report
	for _, name := range []string{"alpha", "bravo"} {
		reports = append(reports, report{node: fleet.Node{Name: name, Unit: "laptop-of-" + name},
			clock: &wire.Clock{WallOffsetNs: 1_234_567, UncertaintyNs: int64(1000 * len(reports))},
			status: wire.NodeStatus{Node: name, Version: "0.1.0", Kernel: "6.12.74+deb13-amd64", Interface: "wlan0",
				InterfaceUp: new(true), GPS: &wire.GPS{Connected: true, Mode: 3}, GPSRateHz: new(10.0),
				Spool: wire.SpoolStatus{FreeBytes: 123e9}, Host: wire.HostStatus{Reached: true},
				Machine: &wire.Machine{BatteryPercent: new(71.0 + float64(len(reports))), TemperatureC: new(55.0)}}})
	}
	const want = `NODE   UNIT             CLOCK            BATTERY
alpha  laptop-of-alpha  +1.23 ms ± 0 µs  71 %
bravo  laptop-of-bravo  +1.23 ms ± 1 µs  72 %
the same in every row: LABELS -; REACHED yes; VERSION 0.1.0;
  KERNEL 6.12.74+deb13-amd64; RADIO wlan0 up; GPS 3-D 10 Hz; DISK FREE 123 GB;
  HEAT 55 °C; UNDO PENDING 0; PROBLEMS 0
`
	var out strings.Builder
	if err := printTable(&out, reports, 80); err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}
