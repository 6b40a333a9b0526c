package nmea_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/nmea"
)

// reading is what a reader that follows the standard's field tables gets out
// of one epoch; it shares nothing with the writer.
type reading struct {
	t      *testing.T
	fields map[string][]string // by sentence
}

func read(t *testing.T, epoch []byte) reading {
	t.Helper()
	r := reading{t: t, fields: map[string][]string{}}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(epoch), "\r\n"), "\r\n") {
		body, sum, ok := strings.Cut(strings.TrimPrefix(line, "$"), "*")
		want, err := strconv.ParseUint(sum, 16, 8)
		if !ok || err != nil || line[0] != '$' || len(line) > 82-2 {
			t.Fatalf("not a sentence: %q", line)
		}
		var got uint64
		for _, c := range []byte(body) {
			got ^= uint64(c)
		}
		if got != want {
			t.Fatalf("checksum of %q is %02X", line, got)
		}
		f := strings.Split(body, ",")
		r.fields[f[0]] = f
	}
	return r
}

func (r reading) number(sentence string, i int) float64 {
	r.t.Helper()
	v, err := strconv.ParseFloat(r.fields[sentence][i], 64)
	if err != nil {
		r.t.Fatalf("%s field %d: %v", sentence, i, err)
	}
	return v
}

func (r reading) angle(sentence string, i, degreeDigits int) float64 {
	r.t.Helper()
	s := r.fields[sentence][i]
	d, err1 := strconv.ParseFloat(s[:degreeDigits], 64)
	m, err2 := strconv.ParseFloat(s[degreeDigits:], 64)
	if err1 != nil || err2 != nil || m >= 60 {
		r.t.Fatalf("%s field %d: %q", sentence, i, s)
	}
	v := d + m/60
	if h := r.fields[sentence][i+1]; h == "S" || h == "W" {
		v = -v
	}
	return v
}

func TestSentencesSayWhatTheFixSaysAndAgree(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range 2000 {
		f := nmea.Fix{
			Time:  time.Date(2026, 2, 28, 23, 59, 50, 0, time.UTC).Add(time.Duration(i) * 100 * time.Millisecond),
			Valid: true, LatDeg: 180*rng.Float64() - 90, LonDeg: 360*rng.Float64() - 180, AltM: 120.5, GeoidM: 47.9,
			SpeedMps: 40 * rng.Float64(), TrackDeg: 360 * rng.Float64(),
			Satellites: []int{2, 5, 7, 13, 15, 18, 21, 24, 29}, PDOP: 1.6, HDOP: 0.9, VDOP: 1.3,
		}
		r := read(t, nmea.Epoch(f))
		for what, pair := range map[string][3]float64{
			"RMC latitude":  {r.angle("GPRMC", 3, 2), f.LatDeg, 1e-7},
			"RMC longitude": {r.angle("GPRMC", 5, 3), f.LonDeg, 1e-7},
			"RMC speed":     {r.number("GPRMC", 7) * 1852 / 3600, f.SpeedMps, 3e-4},
			"VTG speed":     {r.number("GPVTG", 7) / 3.6, f.SpeedMps, 2e-4},
			"VTG knots":     {r.number("GPVTG", 5), r.number("GPRMC", 7), 0},
			"VTG track":     {r.number("GPVTG", 1), r.number("GPRMC", 8), 0},
			"GGA latitude":  {r.angle("GPGGA", 2, 2), r.angle("GPRMC", 3, 2), 0},
			"GGA longitude": {r.angle("GPGGA", 4, 3), r.angle("GPRMC", 5, 3), 0},
			"GGA altitude":  {r.number("GPGGA", 9), 120.5, 0},
			"GGA used":      {r.number("GPGGA", 7), 9, 0},
			"GSA mode":      {r.number("GPGSA", 2), 3, 0},
			"GSA HDOP":      {r.number("GPGSA", 16), r.number("GPGGA", 8), 0},
		} {
			if math.Abs(pair[0]-pair[1]) > pair[2] {
				t.Fatalf("seed %d: %s is %.9f, want %.9f of %+v", seed, what, pair[0], pair[1], f)
			}
		}
		d := math.Abs(r.number("GPRMC", 8) - f.TrackDeg)
		if min(d, 360-d) > 0.006 || r.number("GPRMC", 8) >= 360 {
			t.Fatalf("seed %d: track %v of %v", seed, r.number("GPRMC", 8), f.TrackDeg)
		}
		at, err := time.Parse("020106 150405.00", r.fields["GPRMC"][9]+" "+r.fields["GPRMC"][1])
		if err != nil || !at.Equal(f.Time) || r.fields["GPGGA"][1] != r.fields["GPRMC"][1] {
			t.Fatalf("time %v (%v), want %v", at, err, f.Time)
		}
	}
}

func TestMinutesCarryIntoDegrees(t *testing.T) {
	r := read(t, nmea.Epoch(nmea.Fix{Valid: true, LatDeg: 49.99999999999, LonDeg: -179.99999999999}))
	if r.fields["GPRMC"][3] != "5000.00000" || r.fields["GPRMC"][5] != "18000.00000" || r.fields["GPRMC"][6] != "W" {
		t.Errorf("%v", r.fields["GPRMC"])
	}
}

func TestWithoutAFixNothingButTheTimeIsSaid(t *testing.T) {
	r := read(t, nmea.Epoch(nmea.Fix{Time: time.Unix(1_800_000_000, 0), LatDeg: 50, LonDeg: 8, SpeedMps: 9}))
	if r.fields["GPRMC"][2] != "V" || r.fields["GPGGA"][6] != "0" || r.fields["GPGSA"][2] != "1" ||
		r.fields["GPVTG"][9] != "N" {
		t.Errorf("a fix is claimed: %v", r.fields)
	}
	for _, f := range []string{r.fields["GPRMC"][3], r.fields["GPRMC"][7], r.fields["GPGGA"][2], r.fields["GPVTG"][5]} {
		if f != "" {
			t.Errorf("a value without a fix: %q", f)
		}
	}
}

// The standard's customary example.
func TestChecksumOfAKnownSentence(t *testing.T) {
	const body = "GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,"
	if got := nmea.Sentence(body); got != "$"+body+"*47\r\n" {
		t.Errorf("%q", got)
	}
}
