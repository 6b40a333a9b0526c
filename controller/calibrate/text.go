package calibrate

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"fieldmesh.dev/fieldmesh/internal/screen"
)

// Write tells the result to a person: what is known with its interval, then
// what is not, and why.
func (r *Result) Write(w io.Writer) error {
	var t screen.Table
	t.Row("number", "estimate", "interval")
	row := func(what string, e *Estimate, unit string) {
		if e != nil {
			t.Row(what, fmt.Sprintf("%.2f%s", e.Value, unit), fmt.Sprintf("%.2f to %.2f", e.Low, e.High))
		}
	}
	row("path-loss exponent", r.Exponent, "")
	row("antenna gain, each end", r.GainDbi, " dBi")
	row("shadowing, standard deviation", r.ShadowDb, " dB")
	row("shadowing, correlation distance", r.CorrelationM, " m")
	row("single samples about that", &r.OwnDb, " dB")
	for _, u := range slices.Sorted(maps.Keys(r.PowerDb)) {
		row("power of "+u+" against the units' mean", new(r.PowerDb[u]), " dB")
	}
	for _, u := range slices.Sorted(maps.Keys(r.AntennaDb)) {
		row("antenna of "+u+" against the units' mean", new(r.AntennaDb[u]), " dB")
	}
	columns := screen.Columns(w)
	if err := t.Write(w, columns); err != nil {
		return err
	}
	for _, o := range r.notes() {
		if _, err := io.WriteString(w, screen.Fold(o+"\n", columns)); err != nil {
			return err
		}
	}
	return nil
}

// notes are what the numbers rest on, and what is not known.
func (r *Result) notes() []string {
	out := []string{fmt.Sprintf("from %d signals in %d accepted attempts, at %d places (each way of a link by "+
		"itself) from %.0f to %.0f m",
		r.Heard, r.Attempts, r.Used, r.NearM, r.FarM)}
	if len(r.HeldOut) > 0 {
		out = append(out, fmt.Sprintf("held out: repetitions %d to %d, by which compare judges a rehearsal of this",
			r.HeldOut[0], r.HeldOut[len(r.HeldOut)-1]))
	}
	if r.CutM != nil {
		out = append(out, fmt.Sprintf("left out: all from %.0f m on, where more than 2 %% of the moments were "+
			"silent; shadows deeper than those before it are not in these numbers; where signals fade, many frames "+
			"are lost before that, and the exponent may be too low by more than its interval says", *r.CutM))
	}
	if len(r.PowerDb) > 0 {
		out = append(out, "a unit's power holds what its receiver reads too little of others' signals: the two "+
			"cannot be told apart")
	}
	if r.PowerDbm != nil {
		out = append(out, fmt.Sprintf("not every trial says its power; %.1f dBm are taken, %s", *r.PowerDbm,
			r.powerFrom))
	}
	for _, o := range r.Open {
		out = append(out, "not known: "+o)
	}
	return out
}
