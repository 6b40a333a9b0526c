package mobility

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

const ns2File = `# nodes: 2, pause: 0.00, max speed: 10.00
set god_ [God instance]
$node_(0) set X_ 10.0
$node_(0) set Y_ 20.0
$node_(0) set Z_ 0.000000000000
$node_(1) set X_ 100.0
$node_(1) set Y_ 0
$god_ set-dist 0 1 1
$ns_ at 2.0 "$node_(0) setdest 40.0 60.0 5.0"
$ns_ at 5.5 "$god_ set-dist 0 1 2"
$ns_ at 30 "$node_(0) setdest 10.0 20.0 10.0"
`

func TestNS2File(t *testing.T) {
	paths, err := ReadNS2("m.tcl", strings.NewReader(ns2File), Area{100, 100})
	if err != nil || len(paths) != 2 {
		t.Fatalf("%d paths, %v", len(paths), err)
	}
	for at, want := range map[float64]Place{0: {10, 20}, 7: {25, 40}, 20: {40, 60}, 32: {28, 44}, 99: {10, 20}} {
		if s := paths[0].At(seconds(at)); !near(s.XM, want.XM, 1e-6) || !near(s.YM, want.YM, 1e-6) {
			t.Errorf("at %g s: (%g, %g), want %v", at, s.XM, s.YM, want)
		}
	}
	if paths[1].Moves() {
		t.Error("node 1 moves")
	}
}

const gpxFile = `<?xml version="1.0"?>
<gpx version="1.1" creator="t" xmlns="http://www.topografix.com/GPX/1/1"><trk><name>n</name><trkseg>
<trkpt lat="50.0000" lon="8.0000"><ele>100</ele><time>2026-03-14T09:30:00Z</time></trkpt>
<trkpt lat="50.0009" lon="8.0000"><time>2026-03-14T09:30:10.5Z</time></trkpt>
</trkseg></trk></gpx>
`

const nmeaFile = `$GPGGA,093000.00,5000.0000,N,00800.0000,E,1,09,0.9,100.0,M,48.0,M,,*66
$GPRMC,093000.00,V,,,,,,,140326,,,N*75
$GPRMC,093001.00,A,5000.0000,N,00800.0000,E,0.0,0.0,140326,,,A
$GPRMC,093011.50,A,5000.0540,N,00800.0000,E,0.0,0.0,140326,,,A
$GPRMC,093011.50,A,5000.0540,N,00800.0000,E,0.0,0.0,140326,,,A
`

// Both recordings lead 0.0009° north, 100.1 m on this ellipsoid, in 10.5 s.
func TestTracksArePlayedBack(t *testing.T) {
	for name, read := range map[string]func() (Track, error){
		"gpx":  func() (Track, error) { return ReadGPX("a.gpx", strings.NewReader(gpxFile)) },
		"nmea": func() (Track, error) { return ReadNMEA("a.nmea", strings.NewReader(nmeaFile)) },
	} {
		track, err := read()
		if err != nil || len(track) != 2 {
			t.Fatalf("%s: %d fixes, %v", name, len(track), err)
		}
		p, err := track.Path(earth.Site{LatDeg: 50, LonDeg: 8}, time.Time{}, Area{})
		if err != nil {
			t.Fatal(err)
		}
		s := p.At(5250 * time.Millisecond)
		if !near(s.YM, 50.05, 0.05) || !near(s.XM, 0, 1e-9) || !near(s.SpeedMps, 100.1/10.5, 0.01) || s.TrackDeg != 0 {
			t.Errorf("%s: half way %+v", name, s)
		}
	}
	track, err := ReadNMEA("a", strings.NewReader("$GNRMC,235959.250,A,3354.0,S,15112.5,W,,,311299,,"))
	if err != nil || track[0].At.Format(time.RFC3339Nano) != "2099-12-31T23:59:59.25Z" ||
		!near(track[0].LatDeg, -33.9, 1e-9) || !near(track[0].LonDeg, -151.20833, 1e-4) {
		t.Errorf("%+v %v", track, err)
	}
}

func TestBonnMotionFile(t *testing.T) {
	paths, err := ReadBonnMotion("m.movements", strings.NewReader("0.0 1 2 10 11 2 10 11 2\n\n5 7 7\n"), Area{20, 20})
	if err != nil || len(paths) != 2 {
		t.Fatalf("%d paths, %v", len(paths), err)
	}
	if s := paths[0].At(5 * second); s.XM != 6 || s.YM != 2 || s.SpeedMps != 1 {
		t.Errorf("%+v", s)
	}
	if s := paths[1].At(0); s.XM != 7 {
		t.Errorf("%+v", s)
	}
}

// Every fault is told with its file and line.
//
//attack:file a track whose XML entities unfold without an end, or name another file | entities are not read
//attack:file a movement of a thousand million nodes, or of numbers that are none | nodes are counted, and numbers
//attack:and read strictly
func TestFaultsOfFilesHaveTheirPlace(t *testing.T) {
	area := Area{100, 100}
	ns2 := func(s string) error { _, err := ReadNS2("f", strings.NewReader(s), area); return err }
	bonn := func(s string) error { _, err := ReadBonnMotion("f", strings.NewReader(s), area); return err }
	gpx := func(s string) error { _, err := ReadGPX("f", strings.NewReader(s)); return err }
	nmea := func(s string) error { _, err := ReadNMEA("f", strings.NewReader(s)); return err }
	const start = "$node_(0) set X_ 1\n$node_(0) set Y_ 1\n"
	const p = `<gpx><trk><trkseg>` + "\n"
	const entity = `<gpx><trk><trkseg><trkpt lat="&b;" lon="2">`
	for _, c := range []struct {
		name string
		err  error
		line int
		want string
	}{
		{"ns-2 syntax", ns2(start + "$ns_ at 1 $node_(0) setdest 1 1 1"), 3, "not a line"},
		{"ns-2 number", ns2("\n$node_(0) set X_ 1e"), 2, `"1e" is not a number`},
		{"ns-2 time", ns2(start + "$ns_ at 5 \"$node_(0) setdest 2 2 1\"\n$ns_ at 4 \"$node_(0) setdest 3 3 1\""), 4,
			"back from 5 s to 4 s"},
		{"ns-2 area", ns2(start + `$ns_ at 5 "$node_(0) setdest 2 101 1"`), 3, "outside the area of 100 m × 100 m"},
		{"ns-2 start outside", ns2("$node_(0) set X_ 101\n$node_(0) set Y_ 1"), 2, "outside"},
		{"ns-2 speed", ns2(start + `$ns_ at 5 "$node_(0) setdest 2 1 -3"`), 3, "negative"},
		{"ns-2 unknown node", ns2(`$ns_ at 5 "$node_(3) setdest 2 1 3"`), 1, "before it has a place"},
		{"ns-2 gap", ns2("$node_(1) set X_ 1\n$node_(1) set Y_ 1"), 1, "node 0 has no start"},
		{"ns-2 empty", ns2("# nothing"), 1, "moves no node"},
		{"bonnmotion number", bonn("0 1 1\n0 1 x"), 2, `y "x"`},
		{"bonnmotion count", bonn("0 1 1 2"), 1, "multiple of three"},
		{"bonnmotion time", bonn("0 1 1 9 2 2 8 3 3"), 1, "waypoint 3: time goes back from 9 s to 8 s"},
		{"bonnmotion twice", bonn("0 1 1 0 2 2"), 1, "two places"},
		{"bonnmotion area", bonn("0 1 1 9 -2 2"), 1, "outside"},
		{"gpx entities", gpx("<!DOCTYPE gpx [<!ENTITY a \"xx\"><!ENTITY b \"&a;&a;\">]>\n" + entity), 2,
			"invalid character entity"},
		{"gpx another file", gpx("<!DOCTYPE gpx [<!ENTITY b SYSTEM \"file:///etc/passwd\">]>\n" + entity), 2,
			"invalid character entity"},
		{"ns-2 number beyond numbers", ns2("$node_(0) set X_ 1e999"), 1, "is not a number"},
		{"ns-2 nodes without an end", ns2("$node_(999999999) set X_ 1"), 1, "0 to 9999 are possible"},
		{"gpx syntax", gpx(p + `<trkpt lat="1" lon="2"></trk>`), 2, "syntax error"},
		{"gpx end", gpx(p), 2, "syntax error"},
		{"gpx no time", gpx(p + `<trkpt lat="1" lon="2"></trkpt>`), 2, "without time"},
		{"gpx bad time", gpx(p + `<trkpt lat="1" lon="2"><time>noon</time></trkpt>`), 2, `"noon"`},
		{"gpx no lat", gpx(p + `<trkpt lon="2"><time>2026-03-14T09:30:00Z</time></trkpt>`), 2, "lat"},
		{"gpx pole", gpx(p + `<trkpt lat="91" lon="2"><time>2026-03-14T09:30:00Z</time></trkpt>`), 2, "latitude"},
		{"gpx back", gpx(p + "<trkpt lat='1' lon='2'><time>2026-03-14T09:30:00Z</time></trkpt>\n<trkpt lat='1' " +
			"lon='2'><time>2026-03-14T09:29:00Z</time></trkpt>"), 3, "goes back"},
		{"gpx empty", gpx("<gpx></gpx>"), 1, "no track point"},
		{"nmea words", nmea("$GPGGA,1\nhello"), 2, "not an NMEA sentence"},
		{"nmea checksum", nmea("$GPRMC,093000.00,V,,,,,,,140326,,,N*00"), 1, "checksum"},
		{"nmea short", nmea("$GPRMC,1,A"), 1, "fields"},
		{"nmea time", nmea("$GPRMC,256000,A,5000.0,N,00800.0,E,0,0,140326"), 1, "hhmmss"},
		{"nmea angle", nmea("$GPRMC,093000,A,5060.0,N,00800.0,E,0,0,140326"), 1, "minutes"},
		{"nmea back", nmea("$GPRMC,093000,A,5000.0,N,00800.0,E,0,0,140326\n$GPRMC,092959,A,5000.0,N,00800.0,E,0,0,140326"), 2, "goes back"},
		{"nmea empty", nmea(""), 1, "no RMC"},
	} {
		var fault *FileError
		if !errors.As(c.err, &fault) {
			t.Errorf("%s: %v", c.name, c.err)
			continue
		}
		if fault.File != "f" || fault.Line != c.line || !strings.Contains(fault.Text, c.want) {
			t.Errorf("%s: %v; want line %d and %q", c.name, fault, c.line, c.want)
		}
	}
}

// fuzzed is what every reader promises of whatever it is given.
func fuzzed(t *testing.T, paths []Path, err error) {
	t.Helper()
	var fault *FileError
	if err != nil {
		if !errors.As(err, &fault) || fault.Line < 1 {
			t.Fatalf("no place: %v", err)
		}
		return
	}
	if len(paths) == 0 {
		t.Fatal("nothing read, and no fault")
	}
	for _, p := range paths {
		k := p.knots
		for i := range k {
			if i > 0 && k[i].At <= k[i-1].At {
				t.Fatalf("knots %v", k)
			}
		}
		for _, at := range []time.Duration{0, 1, p.Ends() / 2, p.Ends(), maxTrip} {
			if s := p.At(at); !finite(s.XM) || !finite(s.YM) || !finite(s.SpeedMps) {
				t.Fatalf("at %v: %+v", at, s)
			}
		}
	}
}

func FuzzReadNS2(f *testing.F) {
	f.Add(ns2File)
	f.Add("$node_(0) set X_ 1\n$node_(0) set Y_ 1\n$ns_ at 0 \"$node_(0) setdest 2 2 0.0001\"\n$ns_ at 0 \"$node_(0) " +
		"setdest 0 0 9\"")
	f.Add("$node_(999999999) set X_ 1")
	fuzz.Run(f, func(t *testing.T, s string) {
		paths, err := ReadNS2("f", strings.NewReader(s), Area{})
		fuzzed(t, paths, err)
	})
}

func FuzzReadBonnMotion(f *testing.F) {
	f.Add("0.0 1 2 10 11 2 10 11 2\n5 7 7\n")
	f.Add("0 1e308 1e308 1 -1e308 0")
	fuzz.Run(f, func(t *testing.T, s string) {
		paths, err := ReadBonnMotion("f", strings.NewReader(s), Area{})
		fuzzed(t, paths, err)
	})
}

func FuzzReadGPX(f *testing.F) { fuzzTrack(f, ReadGPX, gpxFile, "<gpx><trkpt lat='nan' lon='2'>") }

func FuzzReadNMEA(f *testing.F) {
	fuzzTrack(f, ReadNMEA, nmeaFile, "$GPRMC,093000.-1,A,-0.0,S,00800.0,E,0,0,140326*")
}

func fuzzTrack(f *testing.F, read func(string, io.Reader) (Track, error), corpus ...string) {
	for _, s := range corpus {
		f.Add(s)
	}
	fuzz.Run(f, func(t *testing.T, s string) {
		track, err := read("f", strings.NewReader(s))
		if err != nil {
			fuzzed(t, nil, err)
			return
		}
		// An error says that a plane cannot hold the places.
		if p, err := track.Path(earth.Site{LatDeg: 50, LonDeg: 8}, time.Time{}, Area{}); err == nil {
			fuzzed(t, []Path{p}, nil)
		}
	})
}
