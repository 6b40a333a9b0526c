package plan

import "regexp"

// Field is what a rehearsal needs to know beyond the trials: how radio waves
// spread, what the units' radios are like, and how the GPS receivers report.
// On a road it is ignored. A key that is absent leaves the choice to the
// rehearsal's own default.
type Field struct {
	Propagation       *Propagation         `json:"propagation,omitempty"`
	RTSThresholdBytes *int                 `json:"rts_threshold_bytes,omitempty"`
	QueueFrames       *int                 `json:"queue_frames,omitempty"`
	CarrierSenseDbm   *float64             `json:"carrier_sense_dbm,omitempty"`
	NMEAHz            *float64             `json:"nmea_hz,omitempty"`
	Units             map[string]FieldUnit `json:"units,omitempty"` // by the unit's name
}

// Propagation is the loss of power with distance.
type Propagation struct {
	Model      string   `json:"model"`              // free_space | log_distance | two_ray_ground
	Exponent   *float64 `json:"exponent,omitempty"` // log_distance only
	ReferenceM *float64 `json:"reference_m,omitempty"`
}

// FieldUnit is how one hardware unit's radio departs from what is asked of it.
type FieldUnit struct {
	TxPowerOffsetDb *float64 `json:"tx_power_offset_db,omitempty"` // added to radio.tx_power_dbm
	AntennaGainDbi  *float64 `json:"antenna_gain_dbi,omitempty"`
	NoiseFigureDb   *float64 `json:"noise_figure_db,omitempty"`
	HeightM         *float64 `json:"height_m,omitempty"` // of the antenna over the road
}

func (s schema) fieldModel() object {
	unit := object{[]field{
		{"tx_power_offset_db", number{-30, 30, false, false, "dB"}, false},
		{"antenna_gain_dbi", number{-20, 20, false, false, "dBi"}, false},
		{"noise_figure_db", number{0, 30, false, false, "dB"}, false},
		{"height_m", number{0, 100, true, false, "m"}, false},
	}}
	return object{[]field{
		{"propagation", object{[]field{
			{"model", choice{"free_space", "log_distance", "two_ray_ground"}, true},
			{"exponent", number{1, 8, false, false, ""}, false},
			{"reference_m", number{0, 100, true, false, "m"}, false},
		}}, false},
		{"rts_threshold_bytes", number{0, 2347, false, true, "bytes"}, false}, // 2347 is aMPDUMaxLength + 1: off
		{"queue_frames", number{1, 10000, false, true, ""}, false},
		{"carrier_sense_dbm", number{-120, 0, false, false, "dBm"}, false},
		{"nmea_hz", numberChoice{[]float64{1, 2, 5, 10}, "fixes a second"}, false},
		{"units", table{what: "unit", name: regexp.MustCompile(nameForm), names: nameWords, row: unit}, false},
	}}
}

// checkField judges what one rule alone cannot see.
func (p *parse) checkField(root *node) {
	model := root.lookup("field.propagation.model")
	if exponent := root.lookup("field.propagation.exponent"); exponent != nil && model != nil && !model.bad && model.text != "log_distance" {
		p.findings.add(exponent.home, "field.propagation.exponent belongs to log_distance, and the model is %s; allowed: leave it out", model.text)
	}
	if exponent := root.lookup("field.propagation.exponent"); exponent == nil && model != nil && model.text == "log_distance" {
		p.findings.add(model.at, `field.propagation: key "exponent" is missing; allowed: a number from 1 up to 8`)
	}
	units := root.lookup("field.units")
	if units == nil || p.schema.units == nil {
		return
	}
	for _, e := range units.entries {
		ref := textNode(e.key, e.at)
		reference{"unit", p.schema.units}.check(&p.findings, "field.units", ref)
	}
}

func decodeField(n *node) *Field {
	if n == nil {
		return nil
	}
	f := &Field{
		RTSThresholdBytes: n.wholeAt("rts_threshold_bytes"), QueueFrames: n.wholeAt("queue_frames"),
		CarrierSenseDbm: n.numberAt("carrier_sense_dbm"), NMEAHz: n.numberAt("nmea_hz"),
	}
	if p := n.child("propagation"); p != nil {
		f.Propagation = &Propagation{Model: p.textAt("model"), Exponent: p.numberAt("exponent"), ReferenceM: p.numberAt("reference_m")}
	}
	if units := n.child("units"); units != nil {
		f.Units = map[string]FieldUnit{}
		for _, e := range units.entries {
			f.Units[e.key] = FieldUnit{
				TxPowerOffsetDb: e.value.numberAt("tx_power_offset_db"), AntennaGainDbi: e.value.numberAt("antenna_gain_dbi"),
				NoiseFigureDb: e.value.numberAt("noise_figure_db"), HeightM: e.value.numberAt("height_m"),
			}
		}
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
