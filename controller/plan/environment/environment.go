// Package environment is what a campaign says of the road: the field that a rehearsal assumes
// in its place, how nodes move in it, and the site and vehicle sheet.
package environment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// What an antenna's gain can be in a field, dBi.
const GainLeastDbi, GainMostDbi = -20, 20

// Field is what a rehearsal assumes of the road: how radio waves spread, what
// the radios are like, and how the GPS receivers report. On a road it is
// ignored. A key that is absent leaves the choice to the rehearsal's default.
// Its JSON has the keys of the file.
type Field struct {
	// a radio by name; absent: an ideal receiver with noise_figure_db
	Radio string `json:"radio,omitempty"`
	// free_space | log_distance | two_ray_ground | disc
	Propagation      string   `json:"propagation,omitempty"`
	PathLossExponent *float64 `json:"path_loss_exponent,omitempty"` // log_distance
	ReferenceM       *float64 `json:"reference_m,omitempty"`        // log_distance
	RangeM           *float64 `json:"range_m,omitempty"`            // disc, ns2_wavelan: radius of reception
	// disc: radius of carrier sense and interference
	CarrierSenseM  *float64 `json:"carrier_sense_m,omitempty"`
	AntennaHeightM *float64 `json:"antenna_height_m,omitempty"` // over the road
	AntennaGainDbi *float64 `json:"antenna_gain_dbi,omitempty"`
	NoiseFigureDb  *float64 `json:"noise_figure_db,omitempty"`
	TxPowerDbm     *float64 `json:"tx_power_dbm,omitempty"` // for trials that do not say
	// hardware unit → dB added to its power
	UnitPowerOffsetDb map[string]float64 `json:"unit_power_offset_db,omitempty"`
	// hardware unit → dB added to its antenna's gain
	UnitGainOffsetDb map[string]float64 `json:"unit_gain_offset_db,omitempty"`
	// hardware unit → dB added to its noise figure
	UnitNoiseOffsetDb map[string]float64 `json:"unit_noise_offset_db,omitempty"`
	Shadowing         *Shadowing         `json:"shadowing,omitempty"`
	Fading            *Fading            `json:"fading,omitempty"`
	ChannelError      *ChannelError      `json:"channel_error,omitempty"`
	// minstrel | genie_snr; where the trial fixes no rate
	RateControl string `json:"rate_control,omitempty"`
	// at which control and broadcast frames go
	BasicRatesMbps []float64 `json:"basic_rates_mbps,omitempty"`
	// power at which a frame whose start is noticed keeps the channel busy
	CarrierSenseDbm *float64 `json:"carrier_sense_dbm,omitempty"`
	// summed power of any kind that does
	EnergyDetectDbm   *float64 `json:"energy_detect_dbm,omitempty"`
	ShortRetryLimit   *int     `json:"short_retry_limit,omitempty"`
	LongRetryLimit    *int     `json:"long_retry_limit,omitempty"`
	ShortPreamble     bool     `json:"short_preamble,omitempty"` // 802.11b
	LongSlot          *bool    `json:"long_slot,omitempty"`      // 802.11g
	RTSThresholdBytes *int     `json:"rts_threshold_bytes,omitempty"`
	QueueFrames       *int     `json:"queue_frames,omitempty"`
	// every lost frame on the nodes' feedback sockets
	FrameLost bool     `json:"frame_lost,omitempty"`
	NMEAHz    *float64 `json:"nmea_hz,omitempty"`   // fixes a second
	SpacingM  *float64 `json:"spacing_m,omitempty"` // between nodes that no course places
	// of the roadside node, where the course does not say
	SiteLatDeg *float64 `json:"site_lat_deg,omitempty"`
	SiteLonDeg *float64 `json:"site_lon_deg,omitempty"`
	// absent: nodes that no course places stand in a row
	Mobility *Mobility      `json:"mobility,omitempty"`
	Channels map[string]int `json:"channels,omitempty"` // node → channel, where it is not the trial's
	// which trials have the same shadowing, fading and back-off
	ChannelDraws string `json:"channel_draws,omitempty"` // per_repetition | per_campaign
	// Agents is "participants" where a node that takes part in no trial only
	// forwards: it has no agent, no GPS receiver and no records.
	Agents       string       `json:"agents,omitempty"` // all | participants
	CalibratedBy *Calibration `json:"calibrated_by,omitempty"`
}

// Calibration is what a field was calibrated by.
type Calibration struct {
	Run     string `json:"run"`
	HeldOut []int  `json:"held_out,omitempty"` // its repetitions that were not used
}

// The trials of a rehearsal that share one draw of the channel.
const (
	DrawsPerRepetition = "per_repetition"
	DrawsPerCampaign   = "per_campaign"
)

// Draws says which trials share one draw of the channel.
func (f *Field) Draws() string {
	if f == nil {
		return DrawsPerRepetition
	}
	return cmp.Or(f.ChannelDraws, DrawsPerRepetition)
}

// DrawsText is what a way to draw channels means for a rehearsal's intervals.
func DrawsText(draws string) string {
	switch draws {
	case DrawsPerRepetition:
		return "each repetition has its own draw of shadowing, fading and back-off: intervals hold for channels of " +
			"this kind"
	case DrawsPerCampaign:
		return "all repetitions have one draw of shadowing, fading and back-off: intervals hold for this draw only, " +
			"and not for channels of its kind"
	}
	return draws
}

// Shadowing is a log-normal loss that is correlated over distance.
type Shadowing struct {
	SigmaDb        float64 `json:"sigma_db"`
	DecorrelationM float64 `json:"decorrelation_m"` // after which 1/e of the correlation is left
	// of two links that have one node in common
	NodeCorrelation float64 `json:"node_correlation,omitempty"`
}

// Fading is small-scale fading, as fast as the nodes move.
type Fading struct {
	Model     string   `json:"model"`                 // rayleigh | rician
	KFactorDb *float64 `json:"k_factor_db,omitempty"` // rician: line of sight to scattered power
	// how fast scatterers move
	ScattererMps float64 `json:"scatterer_mps,omitempty"`
}

// ChannelError loses data frames in bursts on top of all else: two states.
type ChannelError struct {
	Mean        float64  `json:"mean"`                   // share of frames lost
	BurstFrames *float64 `json:"burst_frames,omitempty"` // mean length of a burst, in frames
	BurstS      *float64 `json:"burst_s,omitempty"`      // or in seconds
}

// Mobility says how the nodes move in a rehearsal where no trial's course
// places them. Its JSON has the keys of the file.
type Mobility struct {
	Model       string            `json:"model"`
	Area        *Area             `json:"area,omitempty"`
	SpacingM    *float64          `json:"spacing_m,omitempty"` // chain, grid
	Columns     *int              `json:"columns,omitempty"`   // grid
	Start       *Place            `json:"start,omitempty"`     // of the first node of chain or grid
	Positions   map[string]Place  `json:"positions,omitempty"` // node → where it stands or starts
	Moves       []Move            `json:"moves,omitempty"`
	SpeedMinMps *float64          `json:"speed_min_mps,omitempty"` // random_waypoint
	SpeedMaxMps *float64          `json:"speed_max_mps,omitempty"` // and setdest
	PauseS      *float64          `json:"pause_s,omitempty"`
	File        string            `json:"file,omitempty"`   // ns2, bonnmotion; beside the campaign
	Tracks      map[string]string `json:"tracks,omitempty"` // node → a .gpx or .nmea file beside the campaign
	Align       string            `json:"align,omitempty"`  // tracks: start | clock
}

// Area is a rectangle with a corner at the origin; x points east, y north.
type Area struct {
	WidthM  float64 `json:"width_m"`
	HeightM float64 `json:"height_m"`
}

// Place is a point of the field's plane.
type Place struct {
	XM float64 `json:"x_m"`
	YM float64 `json:"y_m"`
}

// Move sends a node to a place in a straight line at a constant speed.
type Move struct {
	Node     string  `json:"node"`
	AtS      float64 `json:"at_s"`
	XM       float64 `json:"x_m"`
	YM       float64 `json:"y_m"`
	SpeedMps float64 `json:"speed_mps"`
}

// Files are the movement files that a campaign names, by paths beside it.
func (f *Field) Files() []string {
	if f == nil || f.Mobility == nil {
		return nil
	}
	var out []string
	if f.Mobility.File != "" {
		out = append(out, f.Mobility.File)
	}
	for _, path := range f.Mobility.Tracks {
		out = append(out, path)
	}
	slices.Sort(out)
	return slices.Compact(out)
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

// Sheet is the site and vehicle sheet as words.
func (s *Site) Sheet() map[string]string {
	if s == nil {
		return nil
	}
	fields := map[string]any{}
	b, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(b, &fields)
	}
	if err != nil { // cannot be: a Site is strings and numbers
		return map[string]string{"error": err.Error()}
	}
	out := map[string]string{}
	for k, v := range fields {
		out[k] = fmt.Sprint(v)
	}
	return out
}
