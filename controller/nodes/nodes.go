// Package nodes tells the state of a fleet's nodes: once or again and again, as
// a table for people or as a line of JSON for each node. What a campaign needs of
// nodes is for package preflight to say.
package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/terminal"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/screen"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ErrNotWell is returned when a node cannot be reached or has a problem; what
// was written has said which.
var ErrNotWell = errors.New("not every node is well")

// Show asks every node once.
func Show(ctx context.Context, f *fleet.Fleet, identity keys.Identity, asJSON bool, out io.Writer) error {
	reports := askAll(ctx, f, identity)
	if asJSON {
		return errors.Join((&watching{out: out, asJSON: true, before: map[string]line{}}).show(reports, time.Now()),
			notWell(reports))
	}
	return printTable(out, reports, screen.Columns(out))
}

// report is what came of asking one node.
type report struct {
	node   fleet.Node
	status wire.NodeStatus
	clock  *wire.Clock // absent: could not be compared
	err    error       // of reaching the node, or of comparing clocks
}

// clockExchanges is enough for one of them to meet no queue.
const clockExchanges = 8

// askAll asks all at once and answers in alphabetical order.
func askAll(ctx context.Context, f *fleet.Fleet, identity keys.Identity) []report {
	reports := make([]report, len(f.Nodes))
	var asked sync.WaitGroup
	for i, name := range f.Names() {
		asked.Go(func() { reports[i] = ask(ctx, fleet.NewClient(identity, f.Nodes[name])) })
	}
	asked.Wait()
	return reports
}

func ask(ctx context.Context, client *fleet.Client) report {
	defer client.Close()
	r := report{node: client.Node()}
	if r.status, r.err = client.Status(ctx); r.err != nil {
		return r
	}
	clock, err := client.ClockOffset(ctx, clockExchanges)
	if err != nil {
		r.err = err
		return r
	}
	r.clock = &clock
	return r
}

// printTable writes the table and, under it, every problem with its cure, for a terminal
// of so many columns.
func printTable(out io.Writer, reports []report, columns int) error {
	out = terminal.Writer(out) // a node's words may be anybody's
	var table screen.Table
	table.Row("NODE", "UNIT", "LABELS", "REACHED", "VERSION", "KERNEL", "RADIO", "GPS", "CLOCK", "DISK FREE", "BATTERY",
		"HEAT", "UNDO PENDING", "PROBLEMS")
	var problems []string
	for _, r := range reports {
		table.Row(r.row()...)
		problems = append(problems, r.problems()...)
	}
	if err := table.Write(out, columns); err != nil {
		return fmt.Errorf("print nodes: %w", err)
	}
	if len(problems) == 0 {
		return nil
	}
	if _, err := fmt.Fprint(out, screen.Fold("\n"+strings.Join(problems, "\n")+"\n", columns)); err != nil {
		return fmt.Errorf("print nodes: %w", err)
	}
	return ErrNotWell
}

// notWell is the exit status of a list in which not all is well.
func notWell(reports []report) error {
	for _, r := range reports {
		if len(r.problems()) > 0 {
			return ErrNotWell
		}
	}
	return nil
}

func (r report) row() []string {
	s := r.status
	if s.Node == "" && r.err != nil {
		return []string{r.node.Name, cmp.Or(r.node.Unit, "-"), labelsCell(r.node.Labels), "no", "-", "-", "-", "-", "-",
			"-", "-", "-", "-", "-"}
	}
	return []string{
		r.node.Name, cmp.Or(r.node.Unit, "-"), labelsCell(r.node.Labels), "yes",
		cmp.Or(s.Version, "-"), cmp.Or(s.Kernel, "-"), radioCell(s), gpsCell(s), clockCell(r.clock),
		bytesCell(s.Spool.FreeBytes), batteryCell(s.Machine), heatCell(s.Machine), undoCell(s.Host),
		fmt.Sprint(len(s.Problems)),
	}
}

func (r report) problems() []string {
	var out []string
	if r.err != nil {
		out = append(out, r.err.Error())
	}
	if r.err == nil && r.status.Node != r.node.Name {
		out = append(out, fmt.Sprintf("%s: its agent calls itself %q: give the agent the bundle of %s, or correct "+
			"the fleet file", r.node.Name, r.status.Node, r.node.Name))
	}
	for _, p := range r.status.Problems {
		out = append(out, fmt.Sprintf("%s: %s: %s: %s", r.node.Name, p.Need, p.Found, p.Cure))
	}
	return out
}

func radioCell(s wire.NodeStatus) string {
	switch {
	case s.Interface == "":
		return "-"
	case s.InterfaceUp == nil && s.Radio != nil && s.Radio.Beside != nil:
		return s.Interface + " beside " + s.Radio.Beside.Interface // made for a run
	case s.InterfaceUp == nil:
		return s.Interface + " missing"
	case *s.InterfaceUp:
		return s.Interface + " up"
	}
	return s.Interface + " down"
}

func gpsCell(s wire.NodeStatus) string {
	fix := gpsFix(s)
	if s.GPS == nil || !s.GPS.Connected || s.GPSRateHz == nil {
		return fix
	}
	return fmt.Sprintf("%s %.3g Hz", fix, *s.GPSRateHz)
}

// gpsFix is which fix the node's receiver has.
func gpsFix(s wire.NodeStatus) string {
	if s.GPS == nil || !s.GPS.Connected {
		return "no gpsd"
	}
	words := map[int]string{0: "no fix", 1: "no fix", 2: "2-D", 3: "3-D"}
	if fix, known := words[s.GPS.Mode]; known {
		return fix
	}
	return fmt.Sprintf("mode %d", s.GPS.Mode)
}

// clockCell is the wall clock's error against this machine's: the boot clocks'
// offset is only the difference of two boots.
func clockCell(c *wire.Clock) string {
	if c == nil {
		return "-"
	}
	return fmt.Sprintf("%s ± %s", signed(time.Duration(c.WallOffsetNs)), short(time.Duration(c.UncertaintyNs)))
}

func signed(d time.Duration) string {
	if d < 0 {
		return "-" + short(-d)
	}
	return "+" + short(d)
}

// short writes a duration with three figures.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}

// bytesCell counts in powers of ten, as everything here does.
func bytesCell(n int64) string {
	value, unit := float64(n), 0
	units := []string{"B", "kB", "MB", "GB", "TB"}
	for value >= 999.5 && unit < len(units)-1 {
		value /= 1000
		unit++
	}
	return fmt.Sprintf("%.3g %s", value, units[unit])
}

func batteryCell(m *wire.Machine) string {
	switch {
	case m == nil || m.BatteryPercent == nil:
		return "-"
	case m.BatteryState == "discharging":
		return fmt.Sprintf("%.0f %%", *m.BatteryPercent)
	}
	return fmt.Sprintf("%.0f %% %s", *m.BatteryPercent, m.BatteryState)
}

func heatCell(m *wire.Machine) string {
	if m == nil || m.TemperatureC == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f °C", *m.TemperatureC)
}

func undoCell(h wire.HostStatus) string {
	if !h.Reached {
		return "host not reached"
	}
	return fmt.Sprint(len(h.Pending))
}
