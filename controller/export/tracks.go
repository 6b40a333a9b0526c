package export

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// track is where one node was in one attempt, or outside of any, in one boot: its
// fixes with a position, in order of time, each once.
type track struct {
	wire.TrialKey
	Node, Outcome string
	fixes         []*wire.GPS
	newest        wire.Header // of their records
}

func (t track) name() string {
	if t.Trial == 0 {
		return "outside trials " + t.Node
	}
	return fmt.Sprintf("trial %d attempt %d %s", t.Trial, t.Attempt, t.Node)
}

// fixesMax bounds the fixes of a node that are held: what a node noted between
// the trials of a long campaign becomes several tracks.
const fixesMax = 50_000

// disorderMax is by how much a record may be earlier, by the boot clock, than one that
// its node wrote before it, and be of the same boot.
const disorderMax = time.Second

// began reports whether a record is of another boot than the track's, or of a spool of
// its own: a boot's clock does not go back.
func (t track) began(h wire.Header) bool {
	return h.Epoch != t.newest.Epoch ||
		h.Seq > t.newest.Seq && h.TBootNs < t.newest.TBootNs-disorderMax.Nanoseconds()
}

// trackFormat writes tracks one after another.
type trackFormat interface {
	begin(w io.Writer, run string) error
	track(w io.Writer, t track) error
	end(w io.Writer) error
}

// writeTracks writes every track to two formats' files at once.
func writeTracks(toGPX, toGeoJSON io.Writer, from lines) error {
	formats := []struct {
		trackFormat
		to io.Writer
	}{{gpx{}, toGPX}, {&geoJSON{}, toGeoJSON}}
	for _, f := range formats {
		if err := f.begin(f.to, from.a.Info().Run); err != nil {
			return err
		}
	}
	attempts, err := from.a.Trials()
	if err != nil {
		return err
	}
	for _, at := range append(attempts, archive.Attempt{}) {
		err := eachTrack(from, at, func(t track) error {
			for _, f := range formats {
				if err := f.track(f.to, t); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, f := range formats {
		if err := f.end(f.to); err != nil {
			return err
		}
	}
	return nil
}

// eachTrack gives an attempt's tracks by node's name, but those that are full, or after
// which the node booted, as they become so. A fix without a position is none.
func eachTrack(from lines, at archive.Attempt, do func(track) error) error {
	byNode := map[string]*track{}
	err := eachOf(from, at.TrialKey, func(h wire.Header, g *wire.GPS) error {
		if g.LatDeg == nil || g.LonDeg == nil || g.FixBootNs == nil {
			return nil
		}
		t := byNode[h.Node]
		if t != nil && t.began(h) {
			if err := do(t.ordered()); err != nil {
				return err
			}
			t = nil
		}
		if t == nil {
			t = &track{TrialKey: at.TrialKey, Node: h.Node, newest: h}
			if at.Verdict != nil {
				t.Outcome = string(at.Verdict.Outcome)
			}
			byNode[h.Node] = t
		}
		if h.Seq > t.newest.Seq {
			t.newest = h
		}
		if t.fixes = append(t.fixes, g); len(t.fixes) < fixesMax {
			return nil
		}
		delete(byNode, h.Node)
		return do(t.ordered())
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(byNode)) {
		if err := do(byNode[name].ordered()); err != nil {
			return err
		}
	}
	return nil
}

// ordered is the track in order of time; a fix that came twice, late for
// instance, counts once.
func (t track) ordered() track {
	slices.SortStableFunc(t.fixes, func(a, b *wire.GPS) int { return cmp.Compare(*a.FixBootNs, *b.FixBootNs) })
	t.fixes = slices.CompactFunc(t.fixes, func(a, b *wire.GPS) bool { return *a.FixBootNs == *b.FixBootNs })
	return t
}

// gpx writes GPX 1.1. Speed has no element of its own there; it stands in the
// extensions, as m/s.
type gpx struct{}

const gpxNamespace = "https://fieldmesh.dev/gpx/1"

type gpxTrack struct {
	XMLName xml.Name   `xml:"trk"`
	Name    string     `xml:"name"`
	Type    string     `xml:"type,omitempty"` // the attempt's outcome
	Points  []gpxPoint `xml:"trkseg>trkpt"`
}

type gpxPoint struct {
	Lat        float64        `xml:"lat,attr"`
	Lon        float64        `xml:"lon,attr"`
	Ele        *float64       `xml:"ele,omitempty"`
	Time       string         `xml:"time,omitempty"`
	Satellites *int           `xml:"sat,omitempty"`
	HDOP       *float64       `xml:"hdop,omitempty"`
	Extensions *gpxExtensions `xml:"extensions,omitempty"`
}

type gpxExtensions struct {
	SpeedMps *float64 `xml:"fm:speed_mps,omitempty"`
	TrackDeg *float64 `xml:"fm:track_deg,omitempty"`
}

func (gpx) begin(w io.Writer, run string) error {
	var name strings.Builder
	if err := xml.EscapeText(&name, []byte(run)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s<gpx version=\"1.1\" creator=\"Fieldmesh\" "+
		"xmlns=\"http://www.topografix.com/GPX/1/1\" xmlns:fm=%q>\n"+
		"<metadata><name>%s</name></metadata>\n", xml.Header, gpxNamespace, name.String())
	return err
}

func (gpx) track(w io.Writer, t track) error {
	out := gpxTrack{Name: t.name(), Type: t.Outcome}
	for _, f := range t.fixes {
		p := gpxPoint{Lat: *f.LatDeg, Lon: *f.LonDeg, Ele: f.AltM, Time: f.TimeUTC, Satellites: f.SatellitesUsed,
			HDOP: f.HDOP}
		if f.SpeedMps != nil || f.TrackDeg != nil {
			p.Extensions = &gpxExtensions{SpeedMps: f.SpeedMps, TrackDeg: f.TrackDeg}
		}
		out.Points = append(out.Points, p)
	}
	if err := xml.NewEncoder(w).Encode(out); err != nil {
		return fmt.Errorf("write track of %s: %w", t.name(), err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (gpx) end(w io.Writer) error {
	_, err := io.WriteString(w, "</gpx>\n")
	return err
}

// geoJSON writes a feature collection (RFC 7946), a line a track. Times and
// speeds are arrays beside the coordinates, one value a position.
type geoJSON struct{ features int }

type feature struct {
	Type       string      `json:"type"`
	Properties properties  `json:"properties"`
	Geometry   *lineString `json:"geometry"`
}

type properties struct {
	Trial    int        `json:"trial"`
	Attempt  int        `json:"attempt"`
	Node     string     `json:"node"`
	Outcome  string     `json:"outcome,omitempty"`
	TimesUTC []string   `json:"times_utc"`
	SpeedMps []*float64 `json:"speed_mps"` // null where a fix had none
}

type lineString struct {
	Type        string      `json:"type"`
	Coordinates [][]float64 `json:"coordinates"` // longitude, latitude, altitude where known
}

func (g *geoJSON) begin(w io.Writer, run string) error {
	name, err := json.Marshal(run)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `{"type":"FeatureCollection","name":%s,"features":[`, name)
	return err
}

// track leaves out what is no line: RFC 7946 wants two positions at least.
func (g *geoJSON) track(w io.Writer, t track) error {
	if len(t.fixes) < 2 {
		return nil
	}
	f := feature{Type: "Feature", Geometry: &lineString{Type: "LineString"},
		Properties: properties{Trial: t.Trial, Attempt: t.Attempt, Node: t.Node, Outcome: t.Outcome}}
	for _, g := range t.fixes {
		at := []float64{*g.LonDeg, *g.LatDeg}
		if g.AltM != nil {
			at = append(at, *g.AltM)
		}
		f.Geometry.Coordinates = append(f.Geometry.Coordinates, at)
		f.Properties.TimesUTC = append(f.Properties.TimesUTC, g.TimeUTC)
		f.Properties.SpeedMps = append(f.Properties.SpeedMps, g.SpeedMps)
	}
	line, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("write track of %s: %w", t.name(), err)
	}
	comma := ",\n"
	if g.features == 0 {
		comma = "\n"
	}
	g.features++
	_, err = w.Write(append([]byte(comma), line...))
	return err
}

func (g *geoJSON) end(w io.Writer) error {
	_, err := io.WriteString(w, "\n]}\n")
	return err
}
