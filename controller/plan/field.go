package plan

import (
	"regexp"
	"slices"
)

// Field is what a rehearsal assumes of the road: how radio waves spread, what
// the radios are like, and how the GPS receivers report. On a road it is
// ignored. A key that is absent leaves the choice to the rehearsal's default.
// Its JSON has the keys of the file.
type Field struct {
	Propagation       string             `json:"propagation,omitempty"`        // free_space | log_distance | two_ray_ground | disc
	PathLossExponent  *float64           `json:"path_loss_exponent,omitempty"` // log_distance
	ReferenceM        *float64           `json:"reference_m,omitempty"`        // log_distance
	RangeM            *float64           `json:"range_m,omitempty"`            // disc: radius of reception
	CarrierSenseM     *float64           `json:"carrier_sense_m,omitempty"`    // disc: radius of carrier sense and interference
	AntennaHeightM    *float64           `json:"antenna_height_m,omitempty"`   // over the road
	AntennaGainDbi    *float64           `json:"antenna_gain_dbi,omitempty"`
	NoiseFigureDb     *float64           `json:"noise_figure_db,omitempty"`
	TxPowerDbm        *float64           `json:"tx_power_dbm,omitempty"`         // for trials that do not say
	UnitPowerOffsetDb map[string]float64 `json:"unit_power_offset_db,omitempty"` // hardware unit → dB added to its power
	UnitGainOffsetDb  map[string]float64 `json:"unit_gain_offset_db,omitempty"`  // hardware unit → dB added to its antenna's gain
	UnitNoiseOffsetDb map[string]float64 `json:"unit_noise_offset_db,omitempty"` // hardware unit → dB added to its noise figure
	Shadowing         *Shadowing         `json:"shadowing,omitempty"`
	Fading            *Fading            `json:"fading,omitempty"`
	ChannelError      *ChannelError      `json:"channel_error,omitempty"`
	RateControl       string             `json:"rate_control,omitempty"`      // snr | minstrel; where the trial fixes no rate
	CarrierSenseDbm   *float64           `json:"carrier_sense_dbm,omitempty"` // summed power at which the channel is busy
	ShortRetryLimit   *int               `json:"short_retry_limit,omitempty"`
	LongRetryLimit    *int               `json:"long_retry_limit,omitempty"`
	ShortPreamble     bool               `json:"short_preamble,omitempty"` // 802.11b
	LongSlot          bool               `json:"long_slot,omitempty"`      // 802.11g
	RTSThresholdBytes *int               `json:"rts_threshold_bytes,omitempty"`
	QueueFrames       *int               `json:"queue_frames,omitempty"`
	FrameLost         bool               `json:"frame_lost,omitempty"`   // every lost frame on the nodes' feedback sockets
	NMEAHz            *float64           `json:"nmea_hz,omitempty"`      // fixes a second
	SpacingM          *float64           `json:"spacing_m,omitempty"`    // between nodes that no course places
	SiteLatDeg        *float64           `json:"site_lat_deg,omitempty"` // of the roadside node, where the course does not say
	SiteLonDeg        *float64           `json:"site_lon_deg,omitempty"`
	Mobility          *Mobility          `json:"mobility,omitempty"` // absent: nodes that no course places stand in a row
	Channels          map[string]int     `json:"channels,omitempty"` // node → channel, where it is not the trial's
	// Agents is "participants" where a node that takes part in no trial only
	// forwards: it has no agent, no GPS receiver and no records.
	Agents string `json:"agents,omitempty"` // all | participants
}

// Shadowing is a log-normal loss that is correlated over distance.
type Shadowing struct {
	SigmaDb        float64 `json:"sigma_db"`
	DecorrelationM float64 `json:"decorrelation_m"` // after which 1/e of the correlation is left
}

// Fading is small-scale fading, as fast as the nodes move.
type Fading struct {
	Model     string   `json:"model"`                 // rayleigh | rician
	KFactorDb *float64 `json:"k_factor_db,omitempty"` // rician: line of sight to scattered power
}

// ChannelError loses data frames in bursts on top of all else: two states.
type ChannelError struct {
	Mean        float64  `json:"mean"`                   // share of frames lost
	BurstFrames *float64 `json:"burst_frames,omitempty"` // mean length of a burst, in frames
	BurstS      *float64 `json:"burst_s,omitempty"`      // or in seconds
}

// perUnit is decibels by hardware unit.
func perUnit() table {
	return table{what: "unit", name: regexp.MustCompile(nameForm), names: nameWords, row: number{-30, 30, false, false, "dB"}}
}

func (s schema) fieldModel() object {
	return object{[]field{
		{"propagation", choice{"free_space", "log_distance", "two_ray_ground", "disc"}, false},
		{"path_loss_exponent", number{1, 8, false, false, ""}, false},
		{"reference_m", number{0, 100, true, false, "m"}, false},
		{"range_m", number{0, 5000, true, false, "m"}, false},
		{"carrier_sense_m", number{0, 20000, true, false, "m"}, false},
		{"antenna_height_m", number{0, 100, true, false, "m"}, false},
		{"antenna_gain_dbi", number{-20, 20, false, false, "dBi"}, false},
		{"noise_figure_db", number{0, 30, true, false, "dB"}, false},
		{"tx_power_dbm", number{0, 30, false, false, "dBm"}, false},
		{"unit_power_offset_db", perUnit(), false},
		{"unit_gain_offset_db", perUnit(), false},
		{"unit_noise_offset_db", perUnit(), false},
		{"shadowing", object{[]field{{"sigma_db", number{0, 20, true, false, "dB"}, true}, {"decorrelation_m", number{0, 1000, true, false, "m"}, true}}}, false},
		{"fading", object{[]field{{"model", choice{"rayleigh", "rician"}, true}, {"k_factor_db", number{-20, 40, false, false, "dB"}, false}}}, false},
		{"channel_error", object{[]field{{"mean", number{0, 0.95, true, false, ""}, true},
			{"burst_frames", number{1, 1e6, false, false, "frames"}, false}, {"burst_s", number{0, 3600, true, false, "s"}, false}}}, false},
		{"rate_control", choice{"snr", "minstrel"}, false},
		{"carrier_sense_dbm", number{-110, 0, false, false, "dBm"}, false},
		{"short_retry_limit", number{1, 255, false, true, ""}, false}, // dot11ShortRetryLimit and dot11LongRetryLimit (IEEE 802.11-2020, annex C)
		{"long_retry_limit", number{1, 255, false, true, ""}, false},
		{"short_preamble", boolean{}, false},
		{"long_slot", boolean{}, false},
		{"rts_threshold_bytes", number{1, 2347, false, true, "bytes"}, false}, // a legacy MPDU has at most 2346, so 2347 turns RTS off
		{"queue_frames", number{1, 10000, false, true, ""}, false},
		{"frame_lost", boolean{}, false},
		{"nmea_hz", numberChoice{[]float64{1, 5, 10}, "fixes a second"}, false},
		{"spacing_m", number{0, 5000, true, false, "m"}, false},
		{"site_lat_deg", number{-80, 80, false, false, "degrees"}, false}, // the emulated plane does not serve near a pole
		{"site_lon_deg", number{-180, 180, false, false, "degrees"}, false},
		{"mobility", s.mobility(), false},
		{"channels", table{what: "node", name: regexp.MustCompile(nameForm), names: nameWords, row: number{1, 165, false, true, ""}}, false},
		{"agents", choice{"all", "participants"}, false},
	}}
}

// checkField judges what one rule alone cannot see.
func (p *parse) checkField(root *node) {
	n := root.child("field")
	if n == nil || n.shape != shapeMap {
		return
	}
	f := &p.findings
	p.checkLoss(n)
	lat, lon := n.child("site_lat_deg"), n.child("site_lon_deg")
	if lat != nil && lon == nil && !n.strange {
		f.add(lat.home, "field.site_lat_deg: %s is not allowed without site_lon_deg; allowed: both or neither", lat.show())
	}
	if lon != nil && lat == nil && !n.strange {
		f.add(lon.home, "field.site_lon_deg: %s is not allowed without site_lat_deg; allowed: both or neither", lon.show())
	}
	p.checkMobility(n.child("mobility"))
	p.checkChannels(root, n.child("channels"))
	if p.schema.units == nil {
		return
	}
	for _, key := range []string{"unit_power_offset_db", "unit_gain_offset_db", "unit_noise_offset_db"} {
		for _, e := range n.child(key).entriesOrNone() {
			reference{"unit", p.schema.units}.check(f, "field."+key, textNode(e.key, e.at))
		}
	}
}

// checkLoss judges what the radio waves meet with against the propagation.
func (p *parse) checkLoss(n *node) {
	f := &p.findings
	model, atFault := n.textAt("propagation"), n.child("propagation").atFault()
	for _, k := range [][2]string{{"path_loss_exponent", "log_distance"}, {"reference_m", "log_distance"}, {"range_m", "disc"}, {"carrier_sense_m", "disc"}} {
		if v := n.child(k[0]); v != nil && model != k[1] && !atFault {
			f.add(v.home, "field.%s: %s is not allowed without propagation: %s; allowed: leave it out", k[0], v.show(), k[1])
		}
	}
	if model == "disc" {
		if n.child("range_m") == nil && !n.strange {
			f.add(n.home, "field: key %q is missing; allowed: the disc's radius in metres", "range_m")
		}
		for _, key := range []string{"shadowing", "fading"} {
			if v := n.child(key); v != nil {
				f.add(v.home, "field.%s: %s is not allowed with propagation: disc, which has neither shadowing nor fading; allowed: leave it out", key, v.show())
			}
		}
	}
	if r, cs := n.numberAt("range_m"), n.numberAt("carrier_sense_m"); r != nil && cs != nil && *cs < *r {
		f.add(n.child("carrier_sense_m").at, "field.carrier_sense_m: %s is below range_m %s; allowed: from it on", formatNumber(*cs), formatNumber(*r))
	}
	rician, k := n.textAt("fading.model") == "rician", n.lookup("fading.k_factor_db")
	if fading := n.child("fading"); fading.fine() && rician && k == nil && !fading.strange {
		f.add(fading.home, "field.fading: key %q is missing; allowed: %s", "k_factor_db", number{-20, 40, false, false, "dB"}.allowed())
	} else if k != nil && n.textAt("fading.model") == "rayleigh" {
		f.add(k.home, "field.fading.k_factor_db: %s is not allowed with model rayleigh; allowed: leave it out", k.show())
	}
	if e := n.child("channel_error"); e.fine() && !e.strange && (e.child("burst_frames") == nil) == (e.child("burst_s") == nil) {
		f.add(e.home, "field.channel_error: a burst's length is needed once; allowed: burst_frames or burst_s")
	}
}

// checkChannels holds the nodes' own channels to the standard of the trials.
func (p *parse) checkChannels(root, n *node) {
	standard := root.textAt("trial.radio.standard")
	for _, e := range n.entriesOrNone() {
		if p.schema.nodes != nil {
			reference{"node", p.schema.nodes}.check(&p.findings, "field.channels", textNode(e.key, e.at))
		}
		if e.value.fine() && standard != "" && !slices.Contains(channels(standard), e.value.number) {
			p.findings.add(e.value.at, "field.channels.%s: %s is not a channel of %s; allowed: %s", e.key, e.value.show(), standard, joinNumbers(channels(standard)))
		}
	}
}

func decodeField(n *node) *Field {
	if n == nil {
		return nil
	}
	f := &Field{
		Propagation: n.textAt("propagation"), PathLossExponent: n.numberAt("path_loss_exponent"), ReferenceM: n.numberAt("reference_m"),
		AntennaHeightM: n.numberAt("antenna_height_m"), AntennaGainDbi: n.numberAt("antenna_gain_dbi"),
		NoiseFigureDb: n.numberAt("noise_figure_db"), TxPowerDbm: n.numberAt("tx_power_dbm"),
		RTSThresholdBytes: n.wholeAt("rts_threshold_bytes"), QueueFrames: n.wholeAt("queue_frames"),
		NMEAHz: n.numberAt("nmea_hz"), SpacingM: n.numberAt("spacing_m"),
		SiteLatDeg: n.numberAt("site_lat_deg"), SiteLonDeg: n.numberAt("site_lon_deg"),
		Mobility: decodeMobility(n.child("mobility")), Agents: n.textAt("agents"),
	}
	for _, e := range n.child("channels").entriesOrNone() {
		if f.Channels == nil {
			f.Channels = map[string]int{}
		}
		f.Channels[e.key] = int(e.value.number)
	}
	f.UnitPowerOffsetDb = decodeTable(n.child("unit_power_offset_db"))
	f.UnitGainOffsetDb = decodeTable(n.child("unit_gain_offset_db"))
	f.UnitNoiseOffsetDb = decodeTable(n.child("unit_noise_offset_db"))
	f.decodeRadio(n)
	return f
}

func decodeTable(n *node) map[string]float64 {
	if n == nil {
		return nil
	}
	out := map[string]float64{}
	for _, e := range n.entries {
		out[e.key] = e.value.number
	}
	return out
}

// decodeRadio reads what the radio waves meet with and how the radios work.
func (f *Field) decodeRadio(n *node) {
	f.RangeM, f.CarrierSenseM = n.numberAt("range_m"), n.numberAt("carrier_sense_m")
	f.RateControl, f.CarrierSenseDbm = n.textAt("rate_control"), n.numberAt("carrier_sense_dbm")
	f.ShortRetryLimit, f.LongRetryLimit = n.wholeAt("short_retry_limit"), n.wholeAt("long_retry_limit")
	short, long := n.boolAt("short_preamble"), n.boolAt("long_slot")
	f.ShortPreamble, f.LongSlot = short != nil && *short, long != nil && *long
	lost := n.boolAt("frame_lost")
	f.FrameLost = lost != nil && *lost
	if s := n.child("shadowing"); s != nil {
		f.Shadowing = &Shadowing{orZero(s.numberAt("sigma_db")), orZero(s.numberAt("decorrelation_m"))}
	}
	if s := n.child("fading"); s != nil {
		f.Fading = &Fading{s.textAt("model"), s.numberAt("k_factor_db")}
	}
	if e := n.child("channel_error"); e != nil {
		f.ChannelError = &ChannelError{orZero(e.numberAt("mean")), e.numberAt("burst_frames"), e.numberAt("burst_s")}
	}
}

// Site is the site and vehicle sheet: what a reader must know of the place
// and the car, in the experimenter's words. It is kept and shown, never judged.
type Site struct {
	Place          string   `json:"place,omitempty"`
	Road           string   `json:"road,omitempty"`
	Lane           string   `json:"lane,omitempty"`
	Vehicle        string   `json:"vehicle,omitempty"`
	Antenna        string   `json:"antenna,omitempty"`
	AntennaHeightM *float64 `json:"antenna_height_m,omitempty"`
	Placement      string   `json:"placement,omitempty"`
	Occupants      *int     `json:"occupants,omitempty"`
	Weather        string   `json:"weather,omitempty"`
	TemperatureC   *float64 `json:"temperature_c,omitempty"`
	Traffic        string   `json:"traffic,omitempty"`
	Notes          string   `json:"notes,omitempty"`
}

func decodeSite(n *node) *Site {
	if n == nil {
		return nil
	}
	return &Site{
		Place: n.textAt("place"), Road: n.textAt("road"), Lane: n.textAt("lane"), Vehicle: n.textAt("vehicle"),
		Antenna: n.textAt("antenna"), AntennaHeightM: n.numberAt("antenna_height_m"), Placement: n.textAt("placement"),
		Occupants: n.wholeAt("occupants"), Weather: n.textAt("weather"), TemperatureC: n.numberAt("temperature_c"),
		Traffic: n.textAt("traffic"), Notes: n.textAt("notes"),
	}
}
