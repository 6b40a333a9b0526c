package places

import (
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"

	"fieldmesh.dev/fieldmesh/controller/metrics"
)

// WriteCSV writes a line a second. What is not known is an empty cell.
func (l Log) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"run", "trial", "attempt", "s", "time_utc", "lat_deg", "lon_deg", "distance_m",
		"speed_mps", "signal_dbm", "throughput_bps", "datagrams_sent", "datagrams_lost_percent",
		"wifi_signal_dbm", "outcome", "counts"}); err != nil {
		return fmt.Errorf("write places: %w", err)
	}
	for _, s := range l.Seconds {
		line := []string{metrics.Cell(l.Run), strconv.Itoa(s.Trial), strconv.Itoa(s.Attempt), strconv.Itoa(s.S),
			metrics.Cell(s.TimeUTC)}
		for _, v := range []*float64{s.LatDeg, s.LonDeg, s.DistanceM, s.SpeedMps, s.SignalDbm, s.ThroughputBps} {
			line = append(line, cell(v))
		}
		sent := ""
		if s.Sent > 0 {
			sent = strconv.Itoa(s.Sent)
		}
		if err := out.Write(append(line, sent, cell(s.LostPercent()), cell(s.WiFiDbm),
			metrics.Cell(s.Outcome), s.Counts)); err != nil {
			return fmt.Errorf("write places: %w", err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write places: %w", err)
	}
	return nil
}

func cell(v *float64) string {
	if v == nil {
		return ""
	}
	return metrics.Number(*v)
}

// Namespace is that of what GPX has no element for, as in tracks.gpx.
const Namespace = "https://fieldmesh.dev/gpx/1"

type gpx struct {
	XMLName   xml.Name   `xml:"gpx"`
	Version   string     `xml:"version,attr"`
	Creator   string     `xml:"creator,attr"`
	XMLNS     string     `xml:"xmlns,attr"`
	Fieldmesh string     `xml:"xmlns:fm,attr"`
	Run       string     `xml:"metadata>name"`
	Tracks    []gpxTrack `xml:"trk"`
}

type gpxTrack struct {
	Name   string  `xml:"name"`
	Points []point `xml:"trkseg>trkpt"`
}

type point struct {
	Lat        float64 `xml:"lat,attr"`
	Lon        float64 `xml:"lon,attr"`
	Time       string  `xml:"time,omitempty"`
	Extensions struct {
		DistanceM     *float64 `xml:"fm:distance_m,omitempty"`
		SpeedMps      *float64 `xml:"fm:speed_mps,omitempty"`
		SignalDbm     *float64 `xml:"fm:signal_dbm,omitempty"`
		WiFiDbm       *float64 `xml:"fm:wifi_signal_dbm,omitempty"`
		ThroughputBps *float64 `xml:"fm:throughput_bps,omitempty"`
		LostPercent   *float64 `xml:"fm:datagrams_lost_percent,omitempty"`
	} `xml:"extensions"`
}

// WriteGPX writes GPX 1.1, a track an attempt and a point a second whose place is known.
func (l Log) WriteGPX(w io.Writer) error {
	out := gpx{Version: "1.1", Creator: "Fieldmesh", XMLNS: "http://www.topografix.com/GPX/1/1", Fieldmesh: Namespace,
		Run: l.Run}
	for i, s := range l.Seconds {
		if i == 0 || s.TrialKey != l.Seconds[i-1].TrialKey {
			out.Tracks = append(out.Tracks, gpxTrack{Name: fmt.Sprintf("trial %d attempt %d", s.Trial, s.Attempt)})
		}
		if s.LatDeg == nil || s.LonDeg == nil {
			continue
		}
		p := point{Lat: *s.LatDeg, Lon: *s.LonDeg, Time: s.TimeUTC}
		p.Extensions.DistanceM, p.Extensions.SpeedMps, p.Extensions.SignalDbm = s.DistanceM, s.SpeedMps, s.SignalDbm
		p.Extensions.WiFiDbm = s.WiFiDbm
		p.Extensions.ThroughputBps, p.Extensions.LostPercent = s.ThroughputBps, s.LostPercent()
		last := &out.Tracks[len(out.Tracks)-1]
		last.Points = append(last.Points, p)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("write places: %w", err)
	}
	if err := xml.NewEncoder(w).Encode(out); err != nil {
		return fmt.Errorf("write places: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}
