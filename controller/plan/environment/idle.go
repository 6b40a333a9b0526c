package environment

import "fieldmesh.dev/fieldmesh/protocols/wire"

// Idle is a key of the field that changes nothing in a campaign, and why: "with field.mobility, …".
type Idle struct {
	Key, Why string
	leaveOut func()
}

// Idle are the keys of the field that change nothing in a campaign; has reports whether one of its
// trials is so. With nil nothing is judged by standard or channel.
func (f *Field) Idle(has func(func(wire.Trial) bool) bool) []Idle {
	if f == nil {
		return nil
	}
	// As the rehearsal has it, a radio without a standard is of 802.11g.
	standards := func(is func(wire.Radio) bool) bool {
		return has == nil || has(func(t wire.Trial) bool { return is(t.Radio) })
	}
	var out []Idle
	add := func(idle bool, key, why string, leaveOut func()) {
		if idle {
			out = append(out, Idle{key, why, leaveOut})
		}
	}
	add(f.AntennaHeightM != nil && !HasHeights(f.Propagation),
		"antenna_height_m", "with propagation: "+f.Propagation+", whose loss has no heights",
		func() { f.AntennaHeightM = nil })
	add(f.SpacingM != nil && f.Mobility != nil, "spacing_m", "with field.mobility, which places the nodes",
		func() { f.SpacingM = nil })
	add(f.ShortPreamble && !standards(func(r wire.Radio) bool { return r.Standard == "802.11b" }),
		"short_preamble", "in these trials, of which none has standard 802.11b", func() { f.ShortPreamble = false })
	add(f.LongSlot != nil && !standards(func(r wire.Radio) bool {
		return r.Standard == "" || r.Standard == "802.11g" || r.Standard == "802.11n" && r.Channel <= 14
	}), "long_slot", "in these trials, of which none has standard 802.11g, or 802.11n at 2.4 GHz",
		func() { f.LongSlot = nil })
	return out
}

// HasHeights reports whether the loss of a propagation depends on the antennas' heights.
func HasHeights(propagation string) bool {
	return propagation != "free_space" && propagation != "log_distance"
}

// LeaveOutIdle takes the keys away that Idle names.
func (f *Field) LeaveOutIdle(has func(func(wire.Trial) bool) bool) {
	for _, k := range f.Idle(has) {
		k.leaveOut()
	}
}
