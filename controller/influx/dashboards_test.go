//go:build e2e

package influx

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/dashboards"
)

// panel is what a panel's query answers, by the dashboard's name and the panel's title and letter.
func (d *influxd) panel(name string, fill *strings.Replacer) []map[string]any {
	d.t.Helper()
	all, err := dashboards.All()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, board := range all {
		for _, q := range board.Panels {
			if board.Name+"/"+q.Name == name {
				return d.admin(fill.Replace(q.Text))
			}
		}
	}
	d.t.Fatalf("there is no panel %s", name)
	return nil
}

// A node's row in Fleet is its newest record of each kind: a reason, an alarm and a fix that are over are not in it.
func TestFleetShowsWhatIsNotWhatWas(t *testing.T) {
	d := newInfluxd(t)
	refused, err := d.prepare().Write(t.Context(), []byte(
		`fm_trial,run=r,trial=1,attempt=1,node=a seq=1i,state="kept",reason="gate_timeout: late" 1000000001
fm_trial,run=r,trial=1,attempt=2,node=a seq=5i,state="armed" 1000000005
fm_trial,run=r,trial=1,attempt=1,node=b seq=1i,state="armed" 1000000001
fm_trial,run=r,trial=1,attempt=1,node=b seq=5i,state="kept",reason="stalled" 1000000005
fm_machine,run=r,node=a seq=2i,battery_percent=4,alarm="battery: 4 %" 1000000002
fm_machine,run=r,node=a seq=6i,battery_percent=80 1000000006
fm_gps,run=r,trial=1,attempt=1,node=a seq=3i,mode=3i,fix_age_ms=80 1000000003
fm_gps,run=r,trial=1,attempt=2,node=a seq=7i,mode=1i 1000000007
fm_provenance,run=r,node=a seq=4i,agent="1",machine="X",tested_interface="wlan0",driver="ath9k" 1000000004
fm_provenance,run=r,node=a seq=8i,agent="2",tested_interface="wlan1" 1000000008
`))
	if err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	fill := dashboards.Macros(map[string]string{"run": "r"}, "1000000000", "1999999999", "1s")
	for _, want := range []struct{ panel, columns, rows string }{
		{"fleet/Nodes A", "node mode fix_age_ms", "[a 1 <nil>]"},
		{"fleet/Nodes C", "node battery_percent alarm", "[a 80 <nil>]"},
		{"fleet/Nodes D", "node agent tested_interface", "[a 2 wlan1]"},
		{"fleet/Nodes E", "node state reason", "[a armed <nil>] [b kept stalled]"},
		{"fleet/Agents A", "node agent machine tested_interface driver", "[a 2 <nil> wlan1 <nil>]"},
	} {
		var got []string
		for _, row := range d.panel(want.panel, fill) {
			var values []any
			for column := range strings.FieldsSeq(want.columns) {
				values = append(values, row[column])
			}
			got = append(got, fmt.Sprint(values))
		}
		slices.Sort(got)
		if all := strings.Join(got, " "); all != want.rows {
			t.Errorf("%s shows %s, want %s", want.panel, all, want.rows)
		}
	}
}

// The link of a row in Campaign and in Results opens a time in which the curves show the trial, as Grafana reads
// `time` and `time.window`: so many milliseconds with that moment in the middle. In the page's own time they are empty.
func TestALinkToATrialShowsItsCurves(t *testing.T) {
	const ms, opened, closed, month = int64(1e6), int64(1_790_000_000e9), int64(1_790_000_010e9), int64(30 * 86400e9)
	points := fmt.Appendf(nil, "fm_result,run=r,trial=7,attempt=1,section=A,variant=cubic outcome=\"accepted\","+
		"counts=1i,throughput_bps=8e6,window_ms=%di %d\n", (closed-opened)/ms, opened)
	for at := opened; at < closed; at += 100 * ms {
		points = fmt.Appendf(points, "fm_tcp,run=r,trial=7,attempt=1,node=b,flow=bulk,stream=1 "+
			"t_boot_ns=%di,bytes_received=%di,retransmits_total=%di %d\n", at-opened, (at-opened)/ms*1000,
			(at-opened)/ms/500, at)
	}
	d := newInfluxd(t)
	if refused, err := d.prepare().Write(t.Context(), points); err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	drawn := func(curve string, from, to int64, interval string) (n int) {
		for _, row := range d.panel(curve, dashboards.Macros(map[string]string{"run": "r", "trial": "7"},
			fmt.Sprint(from), fmt.Sprint(to), interval)) {
			if row["sum"] != nil {
				n++
			}
		}
		return n
	}
	from, to := opened-month/2, opened+month/2
	curves := []string{"live/Throughput A", "live/Retransmissions A"}
	for _, curve := range curves {
		if n := drawn(curve, from, to, "1h"); n != 0 {
			t.Errorf("%s has %d values in a month: the link may keep the page's time", curve, n)
		}
	}
	for _, page := range []string{"campaign/Attempts A", "results/Attempts A"} {
		rows := d.panel(page, dashboards.Macros(map[string]string{"run": "r"}, fmt.Sprint(from), fmt.Sprint(to), "1h"))
		if len(rows) != 1 {
			t.Fatalf("%s has the rows %v", page, rows)
		}
		at, err := rows[0]["time"].(json.Number).Int64()
		if err != nil {
			t.Fatal(err)
		}
		width, _ := rows[0]["view_ms"].(json.Number)
		half, err := width.Int64()
		if half *= ms / 2; err != nil || half <= closed-opened {
			t.Errorf("%s: view_ms is %v (%v)", page, rows[0]["view_ms"], err)
		}
		for _, curve := range curves {
			if n := drawn(curve, at-half, at+half, "100ms"); n != 99 {
				t.Errorf("%s, by the link of %s, has %d values, want 99 of 100 samples", curve, page, n)
			}
		}
	}
}

// A campaign of several weekends is one: what was accepted before the range of time in view is not left to be driven.
// Another run of the same name, which would be counted with it, is told.
func TestACampaignIsCountedWhole(t *testing.T) {
	const month = int64(30 * 86400e9)
	first := int64(1_790_000_000e9)
	d := newInfluxd(t)
	write := func(format string, args ...any) {
		t.Helper()
		if refused, err := d.prepare().Write(t.Context(), fmt.Appendf(nil, format, args...)); err != nil ||
			len(refused) > 0 {
			t.Fatal(refused, err)
		}
	}
	const result = "fm_result,run=r,trial=%d,attempt=1,section=A,speed=14,variant=cubic,routing=aodv accepted=1i,counts=1i,planned_trials=3i," +
		"outcome=\"accepted\",place=\"road\",begun=%q,throughput_bps=%de6,window_ms=10000i %d\n"
	write(result, 1, "monday", 2, first)
	write(result, 2, "monday", 4, first+40*month/30)
	now := first + 41*month/30
	fill := dashboards.Macros(map[string]string{"run": "r", "other": "r"}, fmt.Sprint(now-month), fmt.Sprint(now), "1h")
	for panel, want := range map[string]string{
		"campaign/Accepted A": "sum 2", "campaign/Left A": "max_sum 1", "campaign/Runs of this name A": "count 1",
		"campaign/Mean throughput by speed and section A": "throughput_bps 3000000",
		"results/$outcome by $factor A":                   "mean 3000000",
		"compare/Both runs A":                             "throughput_bps 3000000",
		"compare/Mean throughput by speed A":              "throughput_bps 3000000",
	} {
		column, value, _ := strings.Cut(want, " ")
		if rows := d.panel(panel, fill); len(rows) != 1 || fmt.Sprint(rows[0][column]) != value {
			t.Errorf("%s shows %v, want %s", panel, rows, want)
		}
	}
	for panel, want := range map[string]int{"campaign/Attempts A": 2, "results/Attempts A": 2,
		"campaign/Throughput against speed A": 2, "compare/Throughput against speed A": 2} {
		if rows := d.panel(panel, fill); len(rows) != want {
			t.Errorf("%s has %d rows, want %d", panel, len(rows), want)
		}
	}
	write(result, 1, "tuesday", 9, now)
	if rows := d.panel("campaign/Runs of this name A", fill); len(rows) != 1 || fmt.Sprint(rows[0]["count"]) != "2" {
		t.Errorf("of two runs of one name it shows %v", rows)
	}
}

// A log that nodes kept by themselves has no trials, and can be chosen and drawn all the same.
func TestALogIsDrawn(t *testing.T) {
	d := newInfluxd(t)
	if refused, err := d.prepare().Write(t.Context(), []byte("fm_gps,run=log-1,node=phone "+
		"seq=1i,lat_deg=52,lon_deg=13,speed_mps=10 1000000001\n")); err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	all, err := dashboards.All()
	if err != nil {
		t.Fatal(err)
	}
	fill := dashboards.Macros(map[string]string{"run": "log-1"}, "1000000000", "1999999999", "1s")
	for _, board := range all {
		if rows := d.admin(fill.Replace(board.Variables[0].Text)); len(rows) != 1 || rows[0]["value"] != "log-1" {
			t.Errorf("%s offers the runs %v", board.Name, rows)
		}
	}
	for panel, column := range map[string]string{"live/Speed A": "last",
		"map/Tracks, coloured by throughput A": "lat_deg"} {
		if rows := d.panel(panel, fill); len(rows) != 1 || rows[0][column] == nil {
			t.Errorf("%s has %v", panel, rows)
		}
	}
}

// A rate is that of the time in which the counter was seen to grow, however the panel's intervals lie: two streams of
// 40 kbit/s each, in windows of 10 s, are 80 kbit/s in every view that shows them.
func TestRatesAreTheSameInEveryView(t *testing.T) {
	const ms, begun = int64(1e6), int64(1_790_000_000e9)
	var points []byte
	for trial := range int64(6) {
		opened := begun + trial*14_300*ms // nothing comes for 4.3 s
		for at := int64(0); at < 10_000; at += 100 {
			for stream := range 2 {
				points = fmt.Appendf(points, "fm_tcp,run=r,trial=%d,attempt=1,node=b,flow=bulk,stream=%d "+
					"t_boot_ns=%di,bytes_received=%di,retransmits_total=%di %d\n", trial+1, stream,
					opened-begun+at*ms, at*5, at/100, opened+at*ms)
			}
			sent := at * 10
			if at >= 9700 { // the interface came up again
				sent -= 97_000
			}
			points = fmt.Appendf(points, "fm_interface,run=r,trial=%d,attempt=1,node=b,interface=wlan0 "+
				"t_boot_ns=%di,tx_bytes=%di,rx_bytes=%[3]di %d\n", trial+1, opened-begun+at*ms, sent, opened+at*ms)
			if at%500 == 400 { // the radio did not answer
				points = fmt.Appendf(points, "fm_survey,run=r,trial=%d,attempt=1,node=b "+
					"t_boot_ns=%di,queue_drops=0i %d\n", trial+1, opened-begun+at*ms, opened+at*ms)
				continue
			}
			points = fmt.Appendf(points, "fm_survey,run=r,trial=%d,attempt=1,node=b t_boot_ns=%di,busy_ms=%d %d\n",
				trial+1, opened-begun+at*ms, at/4, opened+at*ms)
		}
		points = fmt.Appendf(points, "fm_tcp,run=r,trial=%d,attempt=1,node=b,flow=bulk,stream=0,edge=open "+
			"t_boot_ns=%di,bytes_received=0i %d\n", trial+1, opened-begun+ms, opened+ms)
	}
	d := newInfluxd(t)
	if refused, err := d.prepare().Write(t.Context(), points); err != nil || len(refused) > 0 {
		t.Fatal(refused, err)
	}
	want := map[string]float64{"live/Throughput A": 80_000, "compare/Throughput, $run A": 80_000,
		"live/Retransmissions A": 20, "live/Channel busy A": 25,
		"fleet/Sent and received on the tested interface A": 10_000}
	for _, interval := range []int64{100, 250, 1000, 2000, 5000, 10_000, 20_000} {
		fill := dashboards.Macros(map[string]string{"run": "r", "other": "r"}, fmt.Sprint(begun-30_000*ms),
			fmt.Sprint(begun+120_000*ms), fmt.Sprintf("%dms", interval))
		for curve, want := range want {
			shown := 0
			for _, row := range d.panel(curve, fill) {
				if row["sum"] == nil {
					continue
				}
				shown++
				if got, err := row["sum"].(json.Number).Float64(); err != nil || math.Abs(got-want) > want/1e6 {
					t.Errorf("%s by %d ms: %v, want %v", curve, interval, row["sum"], want)
				}
			}
			if shown == 0 && interval <= 5000 {
				t.Errorf("%s by %d ms: nothing is drawn", curve, interval)
			}
		}
	}
}
