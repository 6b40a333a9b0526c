// Package nmea writes what a GPS receiver says: the sentences RMC, VTG, GGA
// and GSA of NMEA 0183 (version 3.01, as receivers at 5 and 10 Hz send them),
// consistent with each other. It is pure; ports, rates and the truth that is
// reported stay out.
package nmea

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Fix is what a receiver knows at one epoch. Without Valid only the time is
// reported: the receiver's clock runs on when it has lost its satellites.
type Fix struct {
	Time     time.Time // UTC; sentences carry hundredths of a second
	Valid    bool
	LatDeg   float64 // -90 … 90
	LonDeg   float64 // -180 … 180
	AltM     float64 // above mean sea level
	GeoidM   float64 // of mean sea level above the ellipsoid
	SpeedMps float64
	TrackDeg float64 // true
	// Satellites lists the PRN numbers in use, 1 to 32, at most twelve.
	Satellites       []int
	PDOP, HDOP, VDOP float64
}

// knots are international: 1852 m in an hour.
const (
	knotsPerMps = 3600.0 / 1852.0
	kmhPerMps   = 3.6
)

// Epoch is one epoch's sentences, each ended by CR LF. RMC comes first because
// it alone carries the date; GSA last, so that a reader that waits for the
// end of the cycle gets the accuracy with it.
func Epoch(f Fix) []byte {
	var b strings.Builder
	for _, s := range []string{rmc(f), vtg(f), gga(f), gsa(f)} {
		b.WriteString(Sentence(s))
	}
	return []byte(b.String())
}

// Sentence frames a body ("GPRMC,…"): $, body, *, checksum, CR LF. The
// checksum is the exclusive or of the body's bytes (NMEA 0183, 5.3.1.4).
func Sentence(body string) string {
	var sum byte
	for i := range len(body) {
		sum ^= body[i]
	}
	return fmt.Sprintf("$%s*%02X\r\n", body, sum)
}

func rmc(f Fix) string {
	clock, date := f.Time.UTC().Format("150405.00"), f.Time.UTC().Format("020106")
	if !f.Valid {
		return fmt.Sprintf("GPRMC,%s,V,,,,,,,%s,,,N", clock, date)
	}
	return fmt.Sprintf("GPRMC,%s,A,%s,%.3f,%s,%s,,,A", clock, position(f), f.SpeedMps*knotsPerMps, degrees(f.TrackDeg),
		date)
}

func vtg(f Fix) string {
	if !f.Valid {
		return "GPVTG,,T,,M,,N,,K,N"
	}
	return fmt.Sprintf("GPVTG,%s,T,,M,%.3f,N,%.3f,K,A", degrees(f.TrackDeg), f.SpeedMps*knotsPerMps,
		f.SpeedMps*kmhPerMps)
}

func gga(f Fix) string {
	clock := f.Time.UTC().Format("150405.00")
	if !f.Valid {
		return fmt.Sprintf("GPGGA,%s,,,,,0,00,99.99,,,,,,", clock)
	}
	return fmt.Sprintf("GPGGA,%s,%s,1,%02d,%.2f,%.2f,M,%.1f,M,,", clock, position(f), len(f.Satellites), f.HDOP, f.AltM,
		f.GeoidM)
}

func gsa(f Fix) string {
	if !f.Valid {
		return "GPGSA,A,1,,,,,,,,,,,,,99.99,99.99,99.99"
	}
	var sats [12]string
	for i, prn := range f.Satellites[:min(len(f.Satellites), len(sats))] {
		sats[i] = fmt.Sprintf("%02d", prn)
	}
	return fmt.Sprintf("GPGSA,A,3,%s,%.2f,%.2f,%.2f", strings.Join(sats[:], ","), f.PDOP, f.HDOP, f.VDOP)
}

// position is latitude and longitude with their hemispheres; five decimals of
// a minute are 1.9 cm.
func position(f Fix) string {
	return minutes(f.LatDeg, 2, 'N', 'S') + "," + minutes(f.LonDeg, 3, 'E', 'W')
}

// minutes rounds before it splits, so that 59.999999 minutes become the next
// degree and never 60.
func minutes(deg float64, width int, positive, negative byte) string {
	side := positive
	if deg < 0 {
		side = negative
	}
	const perMinute = 100_000
	total := int64(math.Round(math.Abs(deg) * 60 * perMinute))
	whole, part := total/(60*perMinute), total%(60*perMinute)
	return fmt.Sprintf("%0*d%02d.%05d,%c", width, whole, part/perMinute, part%perMinute, side)
}

// degrees is a bearing of two decimals, below 360 after rounding too.
func degrees(deg float64) string {
	return fmt.Sprintf("%.2f", math.Mod(math.Round(deg*100)/100, 360))
}
