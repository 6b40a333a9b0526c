package mobility

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/internal/earth"
)

// Fix is one point of a recorded track.
type Fix struct {
	At             time.Time
	LatDeg, LonDeg float64
}

// Track is a recording of where a receiver was, its times rising.
type Track []Fix

// maxFixes bounds a recording: a day at 10 Hz and more.
const maxFixes = 2_000_000

// Path is the track in the plane of a site, its first fix at begin (the
// track's own when zero): speeds are those that the positions make, so that
// what a receiver reports fits where it is.
func (t Track) Path(site earth.Site, begin time.Time, area Area) (Path, error) {
	if len(t) == 0 {
		return Path{}, errors.New("make path: the track has no fix")
	}
	if begin.IsZero() {
		begin = t[0].At
	}
	var knots []Knot
	for _, f := range t {
		x, y := site.XY(f.LatDeg, f.LonDeg)
		if err := area.Check(x, y); err != nil {
			return Path{}, fmt.Errorf("fix of %s: %w", f.At.Format(time.RFC3339), err)
		}
		knots = append(knots, Knot{f.At.Sub(begin), x, y})
	}
	return Path{knots: knots}, nil
}

// add appends a fix. One of the same instant as the last is left out:
// receivers tell it in several sentences, and recorders repeat it.
func (t *Track) add(f Fix) error {
	switch {
	case !(f.LatDeg >= -80 && f.LatDeg <= 80) || !(f.LonDeg >= -180 && f.LonDeg <= 180):
		return fmt.Errorf("position %g, %g: latitude is -80 to 80 here, longitude -180 to 180", f.LatDeg, f.LonDeg)
	case len(*t) == maxFixes:
		return fmt.Errorf("more than %d fixes", maxFixes)
	}
	if n := len(*t); n > 0 {
		last := (*t)[n-1].At
		if f.At.Before(last) {
			return fmt.Errorf("time goes back from %s to %s", last.Format(time.RFC3339Nano),
				f.At.Format(time.RFC3339Nano))
		}
		if f.At.Equal(last) {
			return nil
		}
		if f.At.Sub((*t)[0].At) > maxTrip {
			return fmt.Errorf("more than %g days after the first fix", maxTrip.Hours()/24)
		}
	}
	*t = append(*t, f)
	return nil
}

// ReadGPX reads the track points of a GPX 1.0 or 1.1 file, all tracks and
// segments one after the other; between two points the node goes straight.
// Faults are FileErrors.
func ReadGPX(file string, r io.Reader) (Track, error) {
	d := xml.NewDecoder(r)
	var out Track
	fault := func(err error) (Track, error) {
		line, _ := d.InputPos()
		var syntax *xml.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &FileError{file, syntax.Line, "syntax error: " + syntax.Msg}
		}
		return nil, &FileError{file, line, err.Error()}
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fault(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "trkpt" {
			continue
		}
		var p gpxPoint
		err = d.DecodeElement(&p, &start)
		var f Fix
		if err == nil {
			f, err = p.fix()
		}
		if err == nil {
			err = out.add(f)
		}
		if err != nil {
			return fault(err)
		}
	}
	if len(out) == 0 {
		return nil, &FileError{file, 1, "no track point (trkpt) in it"}
	}
	return out, nil
}

// gpxPoint is a trkpt as text, so that what is missing is told from 0.
type gpxPoint struct {
	Lat  string `xml:"lat,attr"`
	Lon  string `xml:"lon,attr"`
	Time string `xml:"time"`
}

func (p gpxPoint) fix() (Fix, error) {
	lat, err := decimal("lat", p.Lat)
	if err != nil {
		return Fix{}, err
	}
	lon, err := decimal("lon", p.Lon)
	if err != nil {
		return Fix{}, err
	}
	if strings.TrimSpace(p.Time) == "" {
		return Fix{}, errors.New("a track point without time cannot be played back")
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(p.Time))
	if err != nil {
		return Fix{}, fmt.Errorf("time %.40q is not of the form 2026-03-14T09:30:00Z", p.Time)
	}
	return Fix{at, lat, lon}, nil
}

// ReadNMEA reads the RMC sentences of a recording (NMEA 0183; RMC alone has
// position, time and date). Other sentences, and those of a receiver that has
// no fix, are passed over; a wrong checksum is a fault. Faults are FileErrors.
func ReadNMEA(file string, r io.Reader) (Track, error) {
	var out Track
	err := eachLine(file, r, func(line string) error {
		f, ok, err := rmc(line)
		if err != nil || !ok {
			return err
		}
		return out.add(f)
	})
	if err == nil && len(out) == 0 {
		err = &FileError{file, 1, "no RMC sentence with a fix in it"}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// rmc reads one line; ok is false for what is no RMC with a fix.
func rmc(line string) (f Fix, ok bool, err error) {
	body, sum, summed := strings.Cut(line, "*")
	if line[0] != '$' && line[0] != '!' {
		return f, false, fmt.Errorf("not an NMEA sentence: %.80q", line)
	}
	body = body[1:]
	if summed {
		want, err := strconv.ParseUint(sum, 16, 8)
		var got byte
		for i := range len(body) {
			got ^= body[i]
		}
		if err != nil || byte(want) != got {
			return f, false, fmt.Errorf("checksum %.8q, and the sentence has %02X", sum, got)
		}
	}
	w := strings.Split(body, ",")
	if len(w[0]) != 5 || w[0][2:] != "RMC" {
		return f, false, nil
	}
	if len(w) < 10 {
		return f, false, fmt.Errorf("RMC with %d of at least 10 fields", len(w))
	}
	if w[2] != "A" {
		return f, false, nil
	}
	if f.At, err = nmeaTime(w[9], w[1]); err != nil {
		return f, false, err
	}
	if f.LatDeg, err = nmeaAngle(w[3], w[4], 2, "N", "S"); err != nil {
		return f, false, err
	}
	f.LonDeg, err = nmeaAngle(w[5], w[6], 3, "E", "W")
	return f, err == nil, err
}

// nmeaTime joins ddmmyy and hhmmss.sss. Years have two digits: 00 to 99 of
// this century.
func nmeaTime(date, clock string) (time.Time, error) {
	whole, fraction, _ := strings.Cut(clock, ".")
	at, err := time.Parse("020106 150405", date+" "+whole)
	share := 0.0
	if err == nil && fraction != "" {
		share, err = strconv.ParseFloat("0."+fraction, 64)
	}
	if err != nil || share < 0 || share >= 1 {
		return at, fmt.Errorf("date %.12q and time %.12q are not of the form ddmmyy and hhmmss.sss", date, clock)
	}
	if at.Year() < 2000 { // time.Parse takes 69 to 99 for the last century
		at = at.AddDate(100, 0, 0)
	}
	return at.Add(seconds(share)), nil
}

// nmeaAngle reads dddmm.mmm and its hemisphere.
func nmeaAngle(text, side string, degreeDigits int, plus, minus string) (float64, error) {
	fault := fmt.Errorf("position %.16q %.4q is not of the form degrees, minutes and %s or %s", text, side, plus, minus)
	if len(text) < degreeDigits+2 || (side != plus && side != minus) {
		return 0, fault
	}
	deg, err1 := strconv.ParseUint(text[:degreeDigits], 10, 16)
	minutes, err2 := strconv.ParseFloat(text[degreeDigits:], 64)
	if err1 != nil || err2 != nil || !(minutes >= 0 && minutes < 60) || math.Signbit(minutes) {
		return 0, fault
	}
	v := float64(deg) + minutes/60
	if side == minus {
		v = -v
	}
	return v, nil
}
