package gps

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

//attack:local a program of another user in gpsd's place, which tells places beyond the Earth, or has no end | such
//attack:and values are absent, and a line has 64 KiB at most
func TestParseQuirks(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"full", `{"class":"TPV","device":"/dev/x","mode":3,"time":"2025-06-01T12:00:00.200Z","lat":1.5,"lon":-2.5,"altMSL":30,"alt":31,"speed":0,"track":360,"eps":0.1,"eph":4}`,
			`{"mode":3,"time_utc":"2025-06-01T12:00:00.200Z","lat_deg":1.5,"lon_deg":-2.5,"alt_m":30,"speed_mps":0,"track_deg":360,"speed_err_mps":0.1,"horiz_err_m":4,"connected":false}`},
		{"old altitude", `{"class":"TPV","mode":3,"alt":31,"speed":1}`,
			`{"mode":3,"alt_m":31,"speed_mps":1,"connected":false}`},
		{"2-D has no altitude", `{"class":"TPV","mode":2,"altMSL":31,"lat":1,"lon":2}`,
			`{"mode":2,"lat_deg":1,"lon_deg":2,"connected":false}`},
		{"no fix has nothing", `{"class":"TPV","mode":1,"time":"2025-06-01T12:00:00Z","lat":1,"lon":2,"speed":3}`,
			`{"mode":1,"connected":false}`},
		{"no mode", `{"class":"TPV","lat":1,"lon":2,"speed":3}`, `{"mode":0,"connected":false}`},
		{"odd mode", `{"class":"TPV","mode":7,"speed":3}`, `{"mode":0,"connected":false}`},
		{"out of range", `{"class":"TPV","mode":3,"lat":91,"lon":2,"speed":-1,"track":400,"altMSL":1e9,"eps":-4}`,
			`{"mode":3,"connected":false}`},
		{"half a position", `{"class":"TPV","mode":3,"lat":1,"speed":4}`, `{"mode":3,"speed_mps":4,"connected":false}`},
		{"NaN", `{"class":"TPV","mode":3,"lat":nan,"lon":-nan,"speed":4,"track": NaN,"eps":inf}`,
			`{"mode":3,"speed_mps":4,"connected":false}`},
		{"wrong types", `{"class":"TPV","mode":3,"time":1.5e9,"speed":"fast","lat":null,"track":[1],"device":7,"eph":3}`, `{"mode":3,"horiz_err_m":3,"connected":false}`},
	} {
		r, ok := parse([]byte(c.line))
		if !ok || r.tpv == nil {
			t.Errorf("%s: not read", c.name)
			continue
		}
		got := r.tpv.fix
		got.Mode = r.tpv.mode
		text, err := json.Marshal(&got)
		if err != nil || string(text) != c.want {
			t.Errorf("%s:\ngot  %s (%v)\nwant %s", c.name, text, err, c.want)
		}
	}
}

func TestParseSky(t *testing.T) {
	for line, want := range map[string]string{
		`{"class":"SKY","hdop":0.9,"uSat":7,"satellites":[{"used":true}]}`: `{"mode":0,"satellites_used":7,"hdop":0.9,"connected":false}`,
		`{"class":"SKY","hdop":99.99,"satellites":[{"used":true},{}]}`:     `{"mode":0,"satellites_used":1,"connected":false}`,
		`{"class":"SKY","satellites":[]}`:                                  `{"mode":0,"satellites_used":0,"connected":false}`,
		`{"class":"SKY","satellites":3}`:                                   `{"mode":0,"connected":false}`,
	} {
		r, ok := parse([]byte(line))
		if !ok || r.sky == nil {
			t.Errorf("%s: not read", line)
			continue
		}
		text, err := json.Marshal(&wire.GPS{SatellitesUsed: r.sky.used, HDOP: r.sky.hdop})
		if err != nil || string(text) != want {
			t.Errorf("%s: got %s (%v)", line, text, err)
		}
	}
	used, hdop := 5, 1.5
	if s := (sky{used: &used}).with(sky{hdop: &hdop}); s.used == nil || s.hdop == nil {
		t.Error("a report in two halves lost one")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		string(fixAt(0, 1)), `{"class":"SKY","uSat":3,"hdop":1}`, `{"class":"VERSION"}`,
		`{"class":"TPV","mode":3,"lat":nan}`,
		`{"class":"TPV","mode":1e400,"speed":-0}`, `{"class":"TPV","mode":2,"time":"0000-01-01T00:00:00Z","speed":1}`,
		`[]`, `null`, ``, `{"class":1}`,
	} {
		f.Add([]byte(seed))
	}
	fuzz.Run(f, func(t *testing.T, line []byte) {
		clk := &handClock{}
		c := primed(clk)
		c.take(line, 1)
		clk.set(time.Second)
		g := c.Tick()
		if _, err := json.Marshal(&g); err != nil {
			t.Fatalf("a tick that cannot be recorded: %v", err)
		}
		if g.Mode < 0 || g.Mode > 3 || g.Mode < 2 && (g.SpeedMps != nil || g.LatDeg != nil) {
			t.Fatalf("tick %+v", g)
		}
		if g.SpeedMps != nil && !(*g.SpeedMps >= 0 && *g.SpeedMps <= maxSpeedMps) || g.LatDeg != nil &&
			(g.LonDeg == nil || *g.LatDeg > 90 || *g.LatDeg < -90) {
			t.Fatalf("tick %+v", g)
		}
	})
}

// gpsd's own reports of a receiver's recording (quectel-eg25-g.nmea), and what
// makes a speed its own.
func TestDerivedSpeeds(t *testing.T) {
	const (
		first  = `{"class":"TPV","mode":3,"time":"2022-09-11T19:15:04.990Z","lat":36.764546633,"lon":31.411003567,"speed":14.723}`
		second = `{"class":"TPV","mode":3,"time":"2022-09-11T19:15:05.990Z","lat":36.764560883,"lon":31.410932367,"speed":%s}`
	)
	for rest, want := range map[string]bool{
		`6.551`:              true,
		`6.551,"track":10.0`: false, // the receiver has told both
		`6.561`:              false, // standing, by the receiver
		`0.000`:              false,
	} {
		var d derived
		for i, line := range []string{first, fmt.Sprintf(second, rest), fmt.Sprintf(second, rest)} {
			r, ok := parse([]byte(line))
			if !ok {
				t.Fatal(line)
			}
			if got := d.speed(r.tpv); got != (want && i > 0) {
				t.Errorf("report %d with speed %s: derived %v", i, rest, got)
			}
		}
	}
}
