package gps

import (
	"encoding/json"
	"math"
	"regexp"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// report is one line of gpsd; at most one of the pointers is set.
type report struct {
	tpv *tpv
	sky *sky
}

// tpv is gpsd's time-position-velocity report.
type tpv struct {
	mode   int
	device string
	utc    time.Time // zero when gpsd does not know it
	fix    wire.GPS  // fix fields only
}

func (t *tpv) hasFix() bool {
	return t.fix.SpeedMps != nil || t.fix.LatDeg != nil && t.fix.LonDeg != nil
}

// sky is what gpsd reports about the satellites.
type sky struct {
	device string
	used   *int
	hdop   *float64
}

// with keeps what a newer report does not tell: gpsd sends the satellites and
// the dilution of precision in separate reports at times.
func (s sky) with(newer sky) sky {
	if newer.device == "" {
		newer.device = s.device
	} else if s.device != "" && s.device != newer.device {
		return newer
	}
	if newer.used == nil {
		newer.used = s.used
	}
	if newer.hdop == nil {
		newer.hdop = s.hdop
	}
	return newer
}

// rawReport has each field unparsed, so that one that is not what it should
// be is absent and leaves the others.
type rawReport struct {
	Class      string          `json:"class"`
	Device     json.RawMessage `json:"device"`
	Mode       json.RawMessage `json:"mode"`
	Time       json.RawMessage `json:"time"`
	Lat        json.RawMessage `json:"lat"`
	Lon        json.RawMessage `json:"lon"`
	AltMSL     json.RawMessage `json:"altMSL"` // gpsd 3.20 and later
	Alt        json.RawMessage `json:"alt"`    // before
	Speed      json.RawMessage `json:"speed"`
	Track      json.RawMessage `json:"track"`
	Eps        json.RawMessage `json:"eps"`
	Eph        json.RawMessage `json:"eph"`
	HDOP       json.RawMessage `json:"hdop"`
	USat       json.RawMessage `json:"uSat"`
	Satellites json.RawMessage `json:"satellites"`
}

// bareNaN finds numbers that some versions of gpsd print and JSON does not know.
var bareNaN = regexp.MustCompile(`(?i):\s*[+-]?(nan|inf(inity)?)\b`)

// parse reads one line; false when it is not a JSON object with a class.
func parse(line []byte) (report, bool) {
	var raw rawReport
	if json.Unmarshal(line, &raw) != nil {
		raw = rawReport{}
		if json.Unmarshal(bareNaN.ReplaceAll(line, []byte(":null")), &raw) != nil {
			return report{}, false
		}
	}
	switch raw.Class {
	case "":
		return report{}, false
	case "TPV":
		return report{tpv: raw.tpv()}, true
	case "SKY":
		return report{sky: raw.sky()}, true
	}
	return report{}, true
}

// Bounds beyond which a number is damage and no measurement.
const (
	maxSpeedMps = 1000 // civil receivers stop at 515 m/s
	minAltM     = -1000
	maxAltM     = 100e3
	maxErr      = 1e6
	maxDOP      = 99 // NMEA 0183 receivers write 99.99 for "unknown"
)

func (r *rawReport) tpv() *tpv {
	t := &tpv{}
	if mode := number(r.Mode, 0, 3); mode != nil && *mode == math.Trunc(*mode) {
		t.mode = int(*mode)
	}
	t.device = r.device()
	var stamp string
	if json.Unmarshal(r.Time, &stamp) == nil {
		if utc, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
			t.utc, t.fix.TimeUTC = utc, stamp
		}
	}
	if t.mode < 2 {
		// What gpsd still tells then is of an earlier fix.
		t.fix = wire.GPS{}
		return t
	}
	t.fix.LatDeg, t.fix.LonDeg = number(r.Lat, -90, 90), number(r.Lon, -180, 180)
	if t.fix.LatDeg == nil || t.fix.LonDeg == nil {
		t.fix.LatDeg, t.fix.LonDeg = nil, nil
	}
	if t.mode == 3 {
		if t.fix.AltM = number(r.AltMSL, minAltM, maxAltM); t.fix.AltM == nil {
			t.fix.AltM = number(r.Alt, minAltM, maxAltM)
		}
	}
	t.fix.SpeedMps, t.fix.TrackDeg = number(r.Speed, 0, maxSpeedMps), number(r.Track, 0, 360)
	t.fix.SpeedErrMps, t.fix.HorizErrM = number(r.Eps, 0, maxErr), number(r.Eph, 0, maxErr)
	return t
}

// device is the receiver; empty where gpsd does not name it.
func (r *rawReport) device() (name string) {
	if json.Unmarshal(r.Device, &name) != nil {
		return ""
	}
	return name
}

func (r *rawReport) sky() *sky {
	s := &sky{device: r.device()}
	if h := number(r.HDOP, 0, maxDOP); h != nil && *h > 0 {
		s.hdop = h
	}
	if n := number(r.USat, 0, 1000); n != nil { // gpsd 3.22 and later
		used := int(*n)
		s.used = &used
		return s
	}
	var list []struct {
		Used bool `json:"used"`
	}
	if len(r.Satellites) == 0 || json.Unmarshal(r.Satellites, &list) != nil {
		return s
	}
	used := 0
	for _, one := range list {
		if one.Used {
			used++
		}
	}
	s.used = &used
	return s
}

// number is a JSON number within bounds, else absent.
func number(raw json.RawMessage, low, high float64) *float64 {
	var v *float64
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil || v == nil || !(*v >= low && *v <= high) {
		return nil
	}
	return v
}
