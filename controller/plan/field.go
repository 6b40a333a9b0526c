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
	Propagation       string             `json:"propagation,omitempty"`        // free_space | log_distance | two_ray_ground
	PathLossExponent  *float64           `json:"path_loss_exponent,omitempty"` // log_distance
	ReferenceM        *float64           `json:"reference_m,omitempty"`        // log_distance
	AntennaHeightM    *float64           `json:"antenna_height_m,omitempty"`   // over the road
	AntennaGainDbi    *float64           `json:"antenna_gain_dbi,omitempty"`
	NoiseFigureDb     *float64           `json:"noise_figure_db,omitempty"`
	TxPowerDbm        *float64           `json:"tx_power_dbm,omitempty"`         // for trials that do not say
	UnitPowerOffsetDb map[string]float64 `json:"unit_power_offset_db,omitempty"` // hardware unit → dB added to its power
	RTSThresholdBytes *int               `json:"rts_threshold_bytes,omitempty"`
	QueueFrames       *int               `json:"queue_frames,omitempty"`
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

func (s schema) fieldModel() object {
	return object{[]field{
		{"propagation", choice{"free_space", "log_distance", "two_ray_ground"}, false},
		{"path_loss_exponent", number{1, 8, false, false, ""}, false},
		{"reference_m", number{0, 100, true, false, "m"}, false},
		{"antenna_height_m", number{0, 100, true, false, "m"}, false},
		{"antenna_gain_dbi", number{-20, 20, false, false, "dBi"}, false},
		{"noise_figure_db", number{0, 30, true, false, "dB"}, false},
		{"tx_power_dbm", number{0, 30, false, false, "dBm"}, false},
		{"unit_power_offset_db", table{what: "unit", name: regexp.MustCompile(nameForm), names: nameWords, row: number{-30, 30, false, false, "dB"}}, false},
		{"rts_threshold_bytes", number{1, 2347, false, true, "bytes"}, false}, // a legacy MPDU has at most 2346, so 2347 turns RTS off
		{"queue_frames", number{1, 10000, false, true, ""}, false},
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
	for _, key := range []string{"path_loss_exponent", "reference_m"} {
		if v := n.child(key); v != nil && n.textAt("propagation") != "log_distance" && !n.child("propagation").atFault() {
			f.add(v.home, "field.%s: %s is not allowed without propagation: log_distance; allowed: leave it out", key, v.show())
		}
	}
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
	for _, e := range n.child("unit_power_offset_db").entriesOrNone() {
		reference{"unit", p.schema.units}.check(f, "field.unit_power_offset_db", textNode(e.key, e.at))
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
	for _, e := range n.child("unit_power_offset_db").entriesOrNone() {
		if f.UnitPowerOffsetDb == nil {
			f.UnitPowerOffsetDb = map[string]float64{}
		}
		f.UnitPowerOffsetDb[e.key] = e.value.number
	}
	return f
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
