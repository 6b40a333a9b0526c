package predict

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/plan/show"
	"fieldmesh.dev/fieldmesh/internal/screen"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/field"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// assume says what of the field the file leaves to the defaults, and what makes no draw differ
// from another.
func (p *Prediction) assume(c *plan.Campaign, s field.Settings, cells []kind) error {
	given, filled := map[string]any{}, map[string]any{}
	for _, v := range []struct {
		from any
		to   *map[string]any
	}{{c.Field, &given}, {s, &filled}} {
		text, err := json.Marshal(v.from)
		if err == nil {
			err = json.Unmarshal(text, v.to)
		}
		if err != nil {
			return fmt.Errorf("read the campaign's field: %w", err)
		}
	}
	// What no radio wave depends on.
	unused := []string{"nmea_hz", "site_lat_deg", "site_lon_deg", "spacing_m", "channel_draws"}
	if s.Propagation != "log_distance" {
		unused = append(unused, "path_loss_exponent", "reference_m")
	}
	if !environment.HasHeights(s.Propagation) {
		unused = append(unused, "antenna_height_m")
	}
	if s.Propagation == "disc" || s.Radio == phy.RadioDisc {
		unused = append(unused, "antenna_height_m", "noise_figure_db", "tx_power_dbm")
	}
	if !slices.ContainsFunc(cells, func(k kind) bool { return k.trials[0].Radio.TxPowerDbm == nil }) {
		unused = append(unused, "tx_power_dbm")
	}
	p.Defaults = map[string]any{}
	for key, value := range filled {
		if _, is := given[key]; !is && !slices.Contains(unused, key) {
			p.Defaults["field."+key] = value
		}
	}
	for _, k := range cells {
		if own, taken := k.trials[0].Radio, field.RadioOf(k.trials[0].Radio); own.Standard == "" {
			p.Defaults["trial.radio.standard"] = taken.Standard
		}
	}
	if s.Shadowing == nil {
		p.Without = append(p.Without, "shadowing")
	}
	if s.Fading == nil {
		p.Without = append(p.Without, "fading")
	}
	return nil
}

// name is the cell's factors in words, and its direction where no factor tells it.
func (c Cell) name() string {
	var out []string
	for _, f := range slices.Sorted(maps.Keys(c.Factors)) {
		out = append(out, f+"="+c.Factors[f])
	}
	if c.Direction != "" && c.Factors["direction"] == "" {
		out = append(out, "direction="+c.Direction)
	}
	return strings.Join(out, " ")
}

// Write writes the prediction for people.
func (p *Prediction) Write(w io.Writer, c *plan.Campaign) error {
	out, columns := &strings.Builder{}, screen.Columns(w)
	fmt.Fprintf(out, "%s: %s\n\nThis is %s.\n", c.Name, c.Title, p.What)
	fmt.Fprintf(out, "Goodput is payload, in packets of %d bytes. Within reach is when on average over fading the two "+
		"carry each other's frames.\n", p.DatagramBytes)
	fmt.Fprintf(out, "Means and, in brackets, their %g %% intervals are over %d draws of the field (seeds from "+
		"%d on), and know nothing of what a road adds.\n", 100*p.Confidence, len(p.Seeds), p.Seeds[0])
	if len(p.Without) > 0 {
		fmt.Fprintf(out, "The field has no %s.\n", strings.Join(p.Without, " and no "))
	}
	if len(p.Defaults) > 0 {
		fmt.Fprintf(out, "Defaults, which the file does not give: %s.\n", p.defaults())
	}
	if _, err := io.WriteString(w, screen.Fold(out.String(), columns)); err != nil {
		return err
	}
	if err := p.cellTable(w, columns); err != nil {
		return err
	}
	for _, r := range p.Distances {
		if err := r.table(w, columns); err != nil {
			return err
		}
	}
	out.Reset()
	for i, o := range p.Open {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "not predicted: %s\n", o.words())
	}
	if _, err := io.WriteString(w, screen.Fold(out.String(), columns)); err != nil {
		return err
	}
	return show.Summary(w, c)
}

func (p *Prediction) defaults() string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(p.Defaults)) {
		out = append(out, fmt.Sprintf("%s %v", key, p.Defaults[key]))
	}
	return strings.Join(out, ", ")
}

func (p *Prediction) cellTable(w io.Writer, columns int) error {
	var table screen.Table
	table.Row("cell", "motion", "speed m/s", "window s", "apart m", "within reach %", "goodput Mbit/s", "trials")
	for _, c := range p.Cells {
		speed := "-"
		if c.SpeedMps != nil {
			speed = fmt.Sprintf("%.1f", *c.SpeedMps)
		}
		table.Row(cmp.Or(c.name(), "-"), c.Motion, speed, fmt.Sprintf("%.1f", c.WindowS),
			fmt.Sprintf("%.0f..%.0f", c.NearestM, c.FarthestM), c.WithinReach.in(100, 0), c.GoodputMbps.in(1, 2),
			fmt.Sprint(c.Trials))
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return table.Write(w, columns)
}

func (r Radio) table(w io.Writer, columns int) error {
	head := fmt.Sprintf("\n%s to %s, standing, with the radio of trial %d%s\n", r.Sender, r.Receiver, r.Trial,
		radioText(r.Radio))
	if _, err := io.WriteString(w, screen.Fold(head, columns)); err != nil {
		return err
	}
	var table screen.Table
	table.Row("apart m", "goodput Mbit/s")
	for _, p := range r.Points {
		table.Row(fmt.Sprintf("%.0f", p.DistanceM), p.GoodputMbps.in(1, 2))
	}
	return table.Write(w, columns)
}

func radioText(r wire.Radio) string {
	out := fmt.Sprintf(", %s on channel %d", r.Standard, r.Channel)
	if r.RateMbps != nil {
		out += fmt.Sprintf(", %g Mbit/s", *r.RateMbps)
	}
	if r.TxPowerDbm != nil {
		out += fmt.Sprintf(", %g dBm", *r.TxPowerDbm)
	}
	return out
}

// in is the mean with its interval, where there is one.
func (e Expected) in(times float64, digits int) string {
	out := fmt.Sprintf("%.*f", digits, times*e.Value)
	if e.Low != nil {
		out += fmt.Sprintf(" (%.*f to %.*f)", digits, times**e.Low, digits, times**e.High)
	}
	return out
}
