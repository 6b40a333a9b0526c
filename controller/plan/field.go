package plan

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/controller/plan/radios"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ChannelDraws says which trials of a rehearsal share one draw of the channel.
func (c *Campaign) ChannelDraws() string { return c.Field.Draws() }

// HaveOneDraw has all repetitions share one draw of the channel.
func (c *Campaign) HaveOneDraw() {
	if c.Field == nil {
		c.Field = &environment.Field{}
	}
	c.Field.ChannelDraws = environment.DrawsPerCampaign
}

// perUnit is decibels by hardware unit.
func perUnit() table {
	return table{what: "unit", name: regexp.MustCompile(nameForm), names: nameWords, row: number{-30, 30, false, false,
		"dB"}}
}

func (s schema) fieldModel() object {
	return object{[]field{
		optional("radio", choice(radios.Names()), "A radio by name, with its error rates, noise figure and usual "+
			"power: ns2_wavelan (ns-2's, receives to 250 m or range_m), dsss_orinoco (802.11b), ofdm_2003 (hard "+
			"decisions), ofdm_recent (soft decisions), ht20 and ht40 (802.11n in 20 and 40 MHz), vht80 (802.11ac in "+
			"80 MHz), disc (for tests); absent: an ideal receiver for 802.11b, ofdm_2003's for 802.11a and g"),
		optional("propagation", choice{"free_space", "log_distance", "two_ray_ground", "disc"},
			"Model of the path loss").or("two_ray_ground"),
		optional("path_loss_exponent", number{1, 8, false, false, ""}, "log_distance: the exponent").or(2.7),
		optional("reference_m", number{0, 100, true, false, "m"},
			"log_distance: the distance up to which the loss is free space's").or(1),
		optional("range_m", number{0, 5000, true, false, "m"}, "disc: radius of reception; ns2_wavelan: the same at "+
			"its usual power, absent: 250, at most 550"),
		optional("carrier_sense_m", number{0, 20000, true, false, "m"},
			"disc: radius of carrier sense and interference; absent: 2.2 times range_m"),
		optional("antenna_height_m", number{0, 100, true, false, "m"}, "two_ray_ground: antenna height").or(1.5),
		optional("antenna_gain_dbi", number{environment.GainLeastDbi, environment.GainMostDbi, false, false, "dBi"},
			"Gain of the antennas").or(0),
		optional("noise_figure_db", number{0, 30, true, false, "dB"}, "Noise figure of the receivers; with a radio by "+
			"name: its own").or(10),
		optional("tx_power_dbm", number{0, 30, false, false, "dBm"}, "Transmit power, for trials that do not "+
			"say; with a radio by name: its own").or(20),
		optional("unit_power_offset_db", perUnit(), "What a hardware unit's power is off by"),
		optional("unit_gain_offset_db", perUnit(), "What the gain of a hardware unit's antenna is off by"),
		optional("unit_noise_offset_db", perUnit(), "What a hardware unit's noise figure is off by"),
		optional("shadowing", object{[]field{
			required("sigma_db", number{0, 20, true, false, "dB"}, "Standard deviation"),
			required("decorrelation_m", number{0, 1000, true, false, "m"}, "The way after which 1/e of the "+
				"correlation is left"),
			optional("node_correlation", number{0, 0.5, false, false, ""}, "Correlation of two links that have one "+
				"node in common").or(0),
		}}, "Log-normal shadowing, correlated over distance; absent: none"),
		optional("fading", object{[]field{
			required("model", choice{"rayleigh", "rician"}, "Whether there is a line of sight (rician) or none"),
			optional("k_factor_db", kFactor(), "rician: line of sight to scattered power"),
			optional("scatterer_mps", number{0, 100, false, false, "m/s"}, "How fast scatterers move; with 0 the "+
				"fading of nodes that stand stands too").or(0),
		}}, "Small-scale fading, as fast as the nodes move; absent: none"),
		optional("channel_error", object{[]field{
			required("mean", number{0, 0.95, true, false, ""}, "Share of frames lost"),
			optional("burst_frames", number{1, 1e6, false, false, "frames"}, "Mean length of a burst of losses"),
			optional("burst_s", number{0, 3600, true, false, "s"}, "Mean length of a burst of losses"),
		}}, "Losses in bursts on top of all else; absent: none"),
		optional("rate_control", choice{"minstrel", "genie_snr"}, "What chooses the rate where the trial fixes none").
			or("minstrel"),
		optional("basic_rates_mbps", list{1, 8, legacyRate(), true}, "Rates that every station knows, at which "+
			"control and broadcast frames go; absent: 1 of ns2_wavelan, else 1 and 2 of 802.11b, 6, 12 and 24 of the "+
			"others"),
		optional("carrier_sense_dbm", number{-110, 0, false, false, "dBm"}, "Power at which a frame whose start is "+
			"noticed keeps the channel busy; with ht40 -79, with vht80 -76").or(-82),
		optional("energy_detect_dbm", number{-110, 0, false, false, "dBm"}, "Power of any kind at which the "+
			"channel is busy; absent: -62 dBm of 802.11a and g and ht20, -59 of ht40, -56 of vht80, -70 to -76 dBm of "+
			"802.11b by the own power"),
		// dot11ShortRetryLimit and dot11LongRetryLimit (IEEE 802.11-2020, annex C)
		optional("short_retry_limit", number{1, 255, false, true, ""}, "How often a frame is sent at most; absent: 7, "+
			"or with minstrel and no long_retry_limit as its retry chain has it"),
		optional("long_retry_limit", number{1, 255, false, true, ""}, "How often a frame announced by RTS is sent at "+
			"most; absent: 4, or with minstrel and no short_retry_limit as its retry chain has it"),
		optional("short_preamble", boolean{}, "802.11b: the short preamble").or(false),
		optional("long_slot", boolean{}, "Whether 802.11g, and 802.11n at 2.4 GHz, have the slot of 20 µs "+
			"and not of 9; absent: except in a mesh, as Linux has it"),
		optional("rts_threshold_bytes", number{1, wire.RTSNever, false, true, "bytes"},
			"Longer frames are announced by RTS").or(wire.RTSNever),
		optional("queue_frames", number{1, 10000, false, true, ""}, "Frames that the interface's queue holds; of "+
			"802.11n and 802.11ac 64").or(50),
		optional("frame_lost", boolean{},
			"Whether every lost frame is told on the nodes' feedback sockets as well").or(false),
		optional("nmea_hz", numberChoice{[]float64{1, 5, 10}, "fixes a second"}, "How often the GPS receivers report").
			or(10),
		optional("spacing_m", number{0, 5000, true, false, "m"}, "How far apart nodes stand that no course places").
			or(20),
		// the emulated plane does not serve near a pole
		optional("site_lat_deg", number{-80, 80, false, false, "degrees"},
			"Latitude of the roadside node, where the course does not say").or(50),
		optional("site_lon_deg", number{-180, 180, false, false, "degrees"},
			"Longitude of the roadside node, where the course does not say").or(8),
		optional("mobility", s.mobility(), "How nodes move that no course places; absent: they stand in a row"),
		optional("channel_draws", choice{environment.DrawsPerRepetition, environment.DrawsPerCampaign},
			"Which trials share one draw of shadowing, fading and back-off: those of one repetition, or all").
			or(environment.DrawsPerRepetition),
		optional("channels", table{what: "node", name: regexp.MustCompile(nameForm), names: nameWords,
			row: number{1, maxChannel, false, true, ""}},
			"Channels of nodes, where they are not the trial's"),
		optional("agents", choice{"all", "participants"},
			"Which nodes have an agent; with participants those in no trial only forward and leave no records").
			or("all"),
		optional("calibrated_by", object{[]field{
			required("run", pattern{regexp.MustCompile(`^[a-z0-9-]{1,64}$`), "1 to 64 of a-z, 0-9 and -"}, "Its name"),
			optional("held_out", list{1, 1000, number{1, 1e6, false, true, ""}, true}, "Its repetitions that were not "+
				"used"),
		}}, "The run that the field was calibrated by; fieldmesh calibrate writes it, and compare reads it"),
	}}
}

func kFactor() number { return number{-20, 40, false, false, "dB"} }

// checkField judges what one rule alone cannot see.
func (p *parse) checkField(root *tree.Node) {
	n := root.Child("field")
	if n == nil || n.Shape != tree.Map {
		return
	}
	f := &p.findings
	p.checkRadio(n)
	p.checkLoss(n)
	for _, k := range [][2]string{{"site_lat_deg", "site_lon_deg"}, {"site_lon_deg", "site_lat_deg"}} {
		if given := n.Child(k[0]); given != nil && n.Child(k[1]) == nil && !n.Strange {
			f.Add(given.Home, "field.%s: %s is not allowed without %s; allowed: both or neither", k[0],
				given.Show(), k[1])
		}
	}
	p.checkMobility(n.Child("mobility"))
	p.checkChannels(n.Child("channels"))
	if p.schema.units == nil {
		return
	}
	for _, key := range []string{"unit_power_offset_db", "unit_gain_offset_db", "unit_noise_offset_db"} {
		for _, e := range n.Child(key).EntriesOrNone() {
			reference{"unit", p.schema.units}.check(f, "field."+key, tree.NewText(e.Key, e.At))
		}
	}
}

// checkIdle refuses keys that change nothing. An archived run was checked when it began.
func (p *parse) checkIdle(trials []wire.Trial) {
	has := func(is func(wire.Trial) bool) bool { return slices.ContainsFunc(trials, is) }
	if p.scale != nil || p.findings.Len() > 0 || len(trials) == 0 {
		has = nil // those that the key is for may be missing
	}
	for _, k := range p.field.Idle(has) {
		if v := p.fieldTree.Child(k.Key); !p.archived {
			p.findings.Add(v.Home, "field.%s: %s changes nothing %s; allowed: leave it out", k.Key, v.Show(), k.Why)
		}
	}
}

// ns2SenseM is how far ns-2's radio senses at its usual power (ns-2.34, CSThresh_).
const ns2SenseM = 550

// checkRadio refuses what a radio by name decides itself. An archived run was checked when it began.
func (p *parse) checkRadio(n *tree.Node) {
	r := radios.ByName(n.TextAt("radio"))
	if r == nil || p.archived {
		return
	}
	for _, key := range r.Decides {
		if v := n.Child(key); v != nil {
			p.findings.Add(v.Home, "field.%s: %s is not allowed with radio: %s, which decides it; allowed: leave it "+
				"out", key, v.Show(), r.Name)
		}
	}
}

// fieldFits holds the field's radio, basic rates and channels to the trial's standard.
func (c *check) fieldFits() {
	field := c.p.fieldTree
	standard := c.tree.Lookup("radio.standard")
	r := radios.ByName(field.TextAt("radio"))
	if r == nil && standard.Fine() {
		c.hasRadio(standard)
	}
	if field == nil || field.Shape != tree.Map {
		return
	}
	switch {
	case r == nil:
	case standard == nil && !c.p.unsure && len(r.Standards) < 3: // of the three that an agent sets
		c.add(field.Child("radio").Home, "field.radio: %s is not allowed without trial.radio.standard; allowed: %s",
			r.Name, strings.Join(r.Standards, " or "))
	case standard.Fine() && !slices.Contains(r.Standards, standard.Text):
		c.add(standard.Home, "trial.radio.standard: %s is not allowed with field.radio: %s; allowed: %s",
			standard.Show(), r.Name, strings.Join(r.Standards, " or "))
	}
	if !standard.Fine() {
		return
	}
	if r != nil {
		c.widthFits(*r)
	}
	c.basicRates(standard.Text, field.Child("basic_rates_mbps"))
	allowed, of := radios.Channels(standard.Text), standard.Text
	if r != nil && r.Channels != nil {
		allowed, of = r.Channels, "field.radio: "+r.Name
	}
	for _, e := range field.Child("channels").EntriesOrNone() {
		if e.Value.Fine() && !slices.Contains(allowed, e.Value.Number) {
			c.add(e.Value.At, "field.channels.%s: %s is not a channel of %s; allowed: %s", e.Key, e.Value.Show(), of,
				joinNumbers(allowed))
		}
	}
}

// hasRadio refuses a standard that only a radio by name has.
func (c *check) hasRadio(standard *tree.Node) {
	if have := radios.Of(standard.Text); have != nil && !c.p.fieldTree.Child("radio").AtFault() {
		c.add(standard.Home, "trial.radio.standard: %s is not allowed without field.radio: %s, for it is for "+
			"rehearsals only: the agent sets no radio to its rates; allowed: such a field, or 802.11a, 802.11b, "+
			"802.11g",
			standard.Show(), strings.Join(have, " or "))
	}
}

// widthFits holds rate and channel to the width of a radio.
func (c *check) widthFits(r radios.Named) {
	for _, k := range []struct {
		key     string
		allowed []float64
	}{{"rate_mbps", r.Rates}, {"channel", r.Channels}} {
		if n := c.tree.NumberAt("radio." + k.key); n != nil && k.allowed != nil && !slices.Contains(k.allowed, *n) {
			c.add(c.tree.Lookup("radio."+k.key).At, "trial.radio.%s: %s is not allowed with field.radio: %s; allowed: "+
				"%s", k.key, formatNumber(*n), r.Name, joinNumbers(k.allowed))
		}
	}
}

// basicRates holds them to a standard; an emulated 802.11g has only OFDM's rates.
func (c *check) basicRates(standard string, n *tree.Node) {
	if !n.Fine() {
		return
	}
	allowed := radios.Rates("802.11a")
	if standard == "802.11b" {
		allowed = radios.Rates(standard)
	}
	for _, rate := range n.Items {
		if !slices.Contains(allowed, rate.Number) {
			c.add(rate.At, "field.basic_rates_mbps: %s is not a rate of %s; allowed: %s Mbit/s", rate.Show(), standard,
				joinNumbers(allowed))
		}
	}
}

// checkLoss judges what the radio waves meet with against the propagation.
func (p *parse) checkLoss(n *tree.Node) {
	f := &p.findings
	model, atFault := n.TextAt("propagation"), n.Child("propagation").AtFault()
	r := radios.ByName(n.TextAt("radio"))
	if r != nil && r.Name == radios.Disc {
		model = "disc"
	}
	for _, k := range [][2]string{{"path_loss_exponent", "log_distance"}, {"reference_m", "log_distance"},
		{"range_m", "disc"}, {"carrier_sense_m", "disc"}} {
		decided := r != nil && (slices.Contains(r.Decides, k[0]) || r.Name == radios.NS2 && k[0] == "range_m")
		if v := n.Child(k[0]); v != nil && model != k[1] && !atFault && !decided {
			f.Add(v.Home, "field.%s: %s is not allowed without propagation: %s; allowed: leave it out", k[0], v.Show(),
				k[1])
		}
	}
	if reach := n.NumberAt("range_m"); r != nil && r.Name == radios.NS2 && reach != nil && *reach > ns2SenseM {
		f.Add(n.Child("range_m").At, "field.range_m: %s is not allowed with radio: %s, which senses to %d m; allowed: "+
			"above 0 up to %[3]d m", formatNumber(*reach), radios.NS2, ns2SenseM)
	}
	if model == "disc" {
		if n.Child("range_m") == nil && !n.Strange {
			f.Add(n.Home, "field: key %q is missing; allowed: the disc's radius in metres", "range_m")
		}
		for _, key := range radios.VoidInDisc() {
			if v := n.Child(key); v != nil && !p.archived && (r == nil || !slices.Contains(r.Decides, key)) {
				f.Add(v.Home, "field.%s: %s is not allowed with propagation: disc, where only distance counts; "+
					"allowed: leave it out", key, v.Show())
			}
		}
	}
	sense := cmp.Or(n.NumberAt("carrier_sense_dbm"), new(radios.CarrierSenseDbm(n.TextAt("radio"))))
	for _, o := range []struct {
		low       *float64
		name, key string
	}{{n.NumberAt("range_m"), "range_m", "carrier_sense_m"}, {sense, "carrier_sense_dbm", "energy_detect_dbm"}} {
		if v := n.NumberAt(o.key); v != nil && o.low != nil && *v < *o.low {
			f.Add(n.Child(o.key).At, "field.%s: %s is below %s %s; allowed: %[3]s or more", o.key, formatNumber(*v),
				o.name, formatNumber(*o.low))
		}
	}
	rician, k := n.TextAt("fading.model") == "rician", n.Lookup("fading.k_factor_db")
	if fading := n.Child("fading"); fading.Fine() && rician && k == nil && !fading.Strange {
		f.Add(fading.Home, "field.fading: key %q is missing; allowed: %s", "k_factor_db", kFactor().allowed())
	} else if k != nil && n.TextAt("fading.model") == "rayleigh" {
		f.Add(k.Home, "field.fading.k_factor_db: %s is not allowed with model rayleigh; allowed: leave it out",
			k.Show())
	}
	if e := n.Child("channel_error"); e.Fine() && !e.Strange && (e.Child("burst_frames") == nil) ==
		(e.Child("burst_s") == nil) {
		f.Add(e.Home, "field.channel_error: a burst needs one length; allowed: either burst_frames or burst_s")
	}
}

// checkChannels holds them to the nodes that there are.
func (p *parse) checkChannels(n *tree.Node) {
	for _, e := range n.EntriesOrNone() {
		if p.schema.nodes != nil {
			reference{"node", p.schema.nodes}.check(&p.findings, "field.channels", tree.NewText(e.Key, e.At))
		}
	}
}

// Participants are the nodes that have an agent in a rehearsal: all, unless
// the field says that only those that take part in a trial do.
func (c *Campaign) Participants() []string {
	var out []string
	if c.Field == nil || c.Field.Agents != "participants" {
		for _, n := range c.Nodes {
			out = append(out, n.Name)
		}
		return out
	}
	for _, t := range c.trials {
		out = append(out, t.Nodes()...) // the ends of flows are among them
	}
	return out
}
