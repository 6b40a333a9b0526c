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
	if err := printTable(&out, []report{r}); !errors.Is(err, ErrNotWell) {
		t.Error(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\x07") || !strings.Contains(out.String(), `it said \x1b]52`) {
		t.Errorf("%q", out.String())
	}
}
