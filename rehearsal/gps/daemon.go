package gps

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"time"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
)

// Port is gpsd's registered port; each node has its own loopback.
const Port = "2947"

// Report is what is read of gpsd's answers: TPV only.
type Report struct {
	Class string   `json:"class"`
	Mode  int      `json:"mode"`
	Time  string   `json:"time"`
	Lat   *float64 `json:"lat"`
	Lon   *float64 `json:"lon"`
	Speed *float64 `json:"speed"`
}

// decodeReport reads one line of gpsd's; ok is false for what is no TPV.
func decodeReport(line []byte) (r Report, ok bool, err error) {
	if err := json.Unmarshal(line, &r); err != nil {
		return Report{}, false, fmt.Errorf("decode gpsd's %.80q: %w", line, err)
	}
	return r, r.Class == "TPV", nil
}

// At reports whether the report shows the node where it is: a full fix, the
// speed within 0.3 m/s, the place within 5 m on either axis.
func (r Report) At(site earth.Site, s mobility.State) bool {
	if r.Mode < 3 || r.Lat == nil || r.Lon == nil || r.Speed == nil {
		return false
	}
	lat, lon := site.LatLon(s.XM, s.YM)
	const perDegree = 111_000 // metres, roughly, which is enough here
	return math.Abs(*r.Speed-s.SpeedMps) < 0.3 &&
		math.Abs(*r.Lat-lat)*perDegree < 5 &&
		math.Abs(*r.Lon-lon)*perDegree*math.Cos(lat*math.Pi/180) < 5
}

// Watch subscribes to gpsd's reports over a connection and calls f with each
// TPV until f says that it has seen enough.
func Watch(ctx context.Context, conn net.Conn, f func(Report) (done bool)) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := conn.Write([]byte("?WATCH={\"enable\":true,\"json\":true};\n")); err != nil {
		return fmt.Errorf("watch gpsd: %w", err)
	}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		r, ok, err := decodeReport(lines.Bytes())
		if err != nil {
			return err
		}
		if ok && f(r) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("watch gpsd: %w", err)
	}
	return fmt.Errorf("watch gpsd: it closed the connection")
}
