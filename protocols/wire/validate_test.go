package wire_test

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

func TestValidPlan(t *testing.T) {
	if err := samplePlan().Validate(); err != nil {
		t.Error(err)
	}
}

//attack:network unknown fields, wrong types, absurd numbers
func TestPlanIsRefusedWithThePlaceOfTheFault(t *testing.T) {
	first := func(change func(*wire.Trial)) func(*wire.RunPlan) {
		return func(plan *wire.RunPlan) { change(&plan.Trials[0]) }
	}
	flow := func(change func(*wire.Flow)) func(*wire.RunPlan) {
		return func(plan *wire.RunPlan) { change(&plan.Trials[0].Traffic[0]) }
	}
	delayed := func(change func(*wire.Flow)) func(*wire.RunPlan) {
		return func(plan *wire.RunPlan) { change(&plan.Trials[0].Traffic[2]) }
	}
	constant := func(change func(*wire.Flow)) func(*wire.RunPlan) {
		return func(plan *wire.RunPlan) {
			f := wire.Flow{Name: "cbr", Kind: wire.KindCBR, Background: true, From: "car", To: "roadside", Port: 5003,
				Streams: 1, PayloadBytes: p(512), BitrateBps: p(5000.0), DurationS: 10, ClientPort: 53000}
			change(&f)
			plan.Trials[0].Traffic = append(plan.Trials[0].Traffic, f)
		}
	}
	cases := map[string]struct {
		change func(*wire.RunPlan)
		want   string
	}{
		"run":         {func(plan *wire.RunPlan) { plan.Run = "../etc" }, `run: "../etc"`},
		"short key":   {func(plan *wire.RunPlan) { plan.Key = plan.Key[:16] }, "key: 16 bytes, want 32"},
		"hash":        {func(plan *wire.RunPlan) { plan.CampaignSHA256 = "abc" }, "campaign_sha256"},
		"no nodes":    {func(plan *wire.RunPlan) { plan.Nodes = nil }, "nodes: 0"},
		"no trials":   {func(plan *wire.RunPlan) { plan.Trials = nil }, "trials: 0"},
		"attempts":    {func(plan *wire.RunPlan) { plan.AttemptsMax = 0 }, "attempts_max: 0"},
		"shard":       {func(plan *wire.RunPlan) { plan.Shard.Number = 3 }, "shard: there is no shard 3/2"},
		"no shards":   {func(plan *wire.RunPlan) { plan.Shard.Of = 0 }, "shard.of: 0"},
		"double node": {func(plan *wire.RunPlan) { plan.Nodes[1].Name = "car" }, `nodes[1].name: "car" is there twice`},
		"prefix": {func(plan *wire.RunPlan) { plan.Nodes[1].MeshPrefix = "10.77.0.2" },
			"nodes[1].mesh_prefix"},
		"multicast": {func(plan *wire.RunPlan) { plan.Nodes[1].MeshPrefix = "224.0.0.1/24" },
			"nodes[1].mesh_prefix: 224.0.0.1"},
		"double address":  {func(plan *wire.RunPlan) { plan.Nodes[1].MeshPrefix = "10.77.0.1/16" }, `10.77.0.1 is "car"'s already`},
		"low GO port":     {func(plan *wire.RunPlan) { plan.Nodes[0].GoPort = 53 }, "nodes[0].go_port: 53"},
		"control address": {func(plan *wire.RunPlan) { plan.Nodes[0].ControlAddr = "a b" }, "nodes[0].control_addr"},
		"numbering":       {func(plan *wire.RunPlan) { plan.Trials[1].Number = 3 }, "trials[1].number: 3, want 2"},
		"unknown node":    {first(func(t *wire.Trial) { t.Receiver = "bus" }), `trials[0].receiver: "bus" is not a node`},
		"own receiver":    {first(func(t *wire.Trial) { t.Receiver = t.Sender }), "trials[0].receiver"},
		"unknown relay":   {first(func(t *wire.Trial) { t.Relays = []string{"bus"} }), "trials[0].relays[0]"},
		"speed":           {first(func(t *wire.Trial) { t.SpeedMps = p(-1.0) }), "trials[0].speed_mps: -1"},
		"speed NaN":       {first(func(t *wire.Trial) { t.SpeedMps = p(math.NaN()) }), "trials[0].speed_mps: NaN"},
		"duration":        {first(func(t *wire.Trial) { t.DurationS = math.Inf(1) }), "trials[0].duration_s: +Inf"},
		"no duration":     {first(func(t *wire.Trial) { t.DurationS = 0 }), "trials[0].duration_s: 0"},
		"direction":       {first(func(t *wire.Trial) { t.Direction = "north" }), "not one of outbound, inbound"},
		"course":          {first(func(t *wire.Trial) { t.Course.Kind = "slalom" }), "trials[0].course.kind"},
		"segment": {first(func(t *wire.Trial) { t.Course.LengthM = nil }),
			"trials[0].course.length_m: missing"},
		"half a site": {first(func(t *wire.Trial) { t.Course.SiteLonDeg = nil }),
			"latitude and longitude go together"},
		"gate": {first(func(t *wire.Trial) { t.Gate.TimeoutS = 0 }), "trials[0].gate.timeout_s"},
		"gate's band": {first(func(t *wire.Trial) { t.Acceptance.SpeedBandMps = nil }),
			"needs acceptance.speed_band_mps"},
		"access point": {first(func(t *wire.Trial) { t.Radio.AccessPoint = "roadside" }),
			"trials[0].radio.access_point"},
		"two hotspots": {func(p *wire.RunPlan) {
			p.Trials[0].Radio = wire.Radio{Mode: wire.ModeHotspot, Channel: 6, SSID: "m", AccessPoint: "roadside"}
		}, "with mode hotspot all trials of a run have one radio"},
		"infrastructure": {first(func(t *wire.Trial) { t.Radio.Mode = wire.ModeInfrastructure }),
			"trials[0].radio.access_point"},
		"channel": {first(func(t *wire.Trial) { t.Radio.Channel = 0 }), "trials[0].radio.channel: 0"},
		"BSSID":   {first(func(t *wire.Trial) { t.Radio.BSSID = "02:11" }), "trials[0].radio.bssid"},
		"SSID": {first(func(t *wire.Trial) { t.Radio.SSID = strings.Repeat("ä", 17) }),
			"trials[0].radio.ssid: 34 bytes"},
		"routing": {first(func(t *wire.Trial) { t.Routing.Protocol = "rm -rf" }), "trials[0].routing.protocol"},
		"variant": {first(func(t *wire.Trial) { t.TCP.Variant = "reno;reboot" }), "trials[0].tcp.variant"},
		"share": {first(func(t *wire.Trial) { t.Acceptance.InBandShareMin = p(1.01) }),
			"in_band_share_min: 1.01"},
		"no traffic": {first(func(t *wire.Trial) { t.Traffic = nil }), "trials[0].traffic: 0"},
		"none measured": {first(func(t *wire.Trial) { t.Traffic[0].Background, t.Traffic = true, t.Traffic[:2] }),
			"one must be measured"},
		"wrong way": {first(func(t *wire.Trial) {
			t.Traffic[0].From, t.Traffic[0].To, t.Traffic = t.Traffic[0].To, t.Traffic[0].From, t.Traffic[:2]
		}), "no measured flow goes from the sender"},
		"flow's name": {flow(func(f *wire.Flow) { f.Name = "a/b" }), "trials[0].traffic[0].name"},
		"same name":   {flow(func(f *wire.Flow) { f.Name = "cross" }), `traffic[1].name: "cross" is there twice`},
		"low port":    {flow(func(f *wire.Flow) { f.Port = 80 }), "trials[0].traffic[0].port: 80"},
		"same server": {flow(func(f *wire.Flow) { f.Reverse, f.Port = false, 5001 }), "traffic[1].port: 5001"},
		"streams":     {flow(func(f *wire.Flow) { f.Streams = 129 }), "trials[0].traffic[0].streams: 129"},
		"client ports": {flow(func(f *wire.Flow) { f.ClientPort = 65533 }),
			"trials[0].traffic[0].client_port: 65533"},
		"no bit rate": {first(func(t *wire.Trial) { t.Traffic[1].BitrateBps = nil }),
			"traffic[1].bitrate_bps: missing"},
		"no interval": {delayed(func(f *wire.Flow) { f.IntervalMs = nil }), "traffic[2].interval_ms: goes with kind"},
		"an interval of TCP": {first(func(t *wire.Trial) { t.Traffic[1].IntervalMs = p(20.0) }),
			"traffic[1].interval_ms: goes with kind"},
		"short interval": {delayed(func(f *wire.Flow) { f.IntervalMs = p(0.5) }), "traffic[2].interval_ms: 0.5"},
		"no size": {delayed(func(f *wire.Flow) { f.PayloadBytes = nil }),
			"traffic[2].payload_bytes: missing"},
		"small datagrams": {delayed(func(f *wire.Flow) { f.PayloadBytes = p(47) }), "traffic[2].payload_bytes: 47"},
		"datagrams in pieces": {delayed(func(f *wire.Flow) { f.PayloadBytes = p(1473) }),
			"traffic[2].payload_bytes: 1473"},
		"delay without a client port": {delayed(func(f *wire.Flow) { f.ClientPort = 0 }),
			"traffic[2].client_port: 0"},
		"delay in the background": {delayed(func(f *wire.Flow) { f.Background = true }), "traffic[2].background: true"},
		"delay in reverse":        {delayed(func(f *wire.Flow) { f.Reverse = true }), "traffic[2].reverse: true"},
		"delay in streams":        {delayed(func(f *wire.Flow) { f.Streams = 2 }), "traffic[2].streams: 2"},
		"cbr without its rate": {constant(func(f *wire.Flow) { f.BitrateBps = nil }),
			"traffic[3].bitrate_bps: missing"},
		"cbr without its size": {constant(func(f *wire.Flow) { f.PayloadBytes = nil }),
			"traffic[3].payload_bytes: missing"},
		"cbr with an interval": {constant(func(f *wire.Flow) { f.IntervalMs = p(20.0) }),
			"traffic[3].interval_ms: goes"},
		"cbr that is measured": {constant(func(f *wire.Flow) { f.Background = false }),
			"traffic[3].background: false"},
		"cbr too often": {constant(func(f *wire.Flow) { f.BitrateBps = p(1e6) }), "traffic[3].bitrate_bps: with " +
			"payload_bytes it has a datagram every 4.096 ms; kind cbr has one every 5 to 60000 ms"},
		"cbr too seldom": {constant(func(f *wire.Flow) { f.BitrateBps = p(64.0) }), "a datagram every 64000 ms"},
		"cbr on a client port of delay": {constant(func(f *wire.Flow) { f.ClientPort = 52000 }),
			`traffic[3].client_port: 52000 to 52000 on "car" meet those of flow "delay"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan := samplePlan()
			c.change(plan)
			err := plan.Validate()
			var refused *wire.Error
			if !errors.As(err, &refused) || refused.Code != wire.CodeBadRequest {
				t.Fatalf("got %v, want a bad_request", err)
			}
			if !strings.Contains(refused.Message, c.want) {
				t.Errorf("got %q, want it to say %q", refused.Message, c.want)
			}
		})
	}
}

func TestLeaseAndKeysAreChecked(t *testing.T) {
	bad := map[string]interface{ Validate() error }{
		"lease without holder": wire.Lease{TTLS: 1},
		"endless lease":        wire.Lease{Holder: "a", TTLS: math.Inf(1)},
		"NaN lease":            wire.Lease{Holder: "a", TTLS: math.NaN()},
		"trial 0":              wire.TrialKey{Attempt: 1},
		"attempt -1":           wire.TrialKey{Trial: 1, Attempt: -1},
		"long reason": wire.AbortRequest{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1},
			Reason: strings.Repeat("ä", 2001)},
		"abort of nothing":       wire.AbortRequest{},
		"outcome":                wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: "good"},
		"epoch":                  wire.Confirmation{Run: "r", Epoch: "a/b"},
		"run":                    wire.Confirmation{Run: "a b", Epoch: "a"},
		"seq":                    wire.Confirmation{Run: "r", Epoch: "a", Seq: math.MaxUint64},
		"decision without a run": wire.Note{ID: "a", Note: "skip", Trial: 1},
		"note's run":             wire.Note{ID: "a", Note: "mark", Run: "../etc"},
		"note of 32 days ago":    wire.Note{ID: "a", Note: "mark", AgeMs: p(32 * 24 * 3600e3)},
	}
	for name, v := range bad {
		if err := v.Validate(); err == nil {
			t.Errorf("%s is not refused", name)
		}
	}
	good := []interface{ Validate() error }{
		wire.Lease{Holder: "a"}, wire.TrialKey{Trial: 1, Attempt: 1}, wire.Confirmation{Run: "r", Epoch: "a"},
		wire.AbortRequest{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Reason: strings.Repeat("ä", 2000)},
		wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: "failed"},
		wire.Note{ID: "a", Note: "mark"}, wire.Note{ID: "a", Note: "skip", Run: "velocity-1", Trial: 1},
		wire.Note{ID: "a", Note: "mark", AgeMs: p(31 * 24 * 3600e3)},
	}
	for _, v := range good {
		if err := v.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// Android's word for an unknown signal is none, and what no radio has is refused.
func TestAReadingOfAWiFiIsChecked(t *testing.T) {
	good := wire.WiFiReading{AgeMs: 2, RenewedWithinMs: 500, SignalDbm: p(-61.0), TxBitrateMbps: p(286.0),
		RxBitrateMbps: p(6.5), FrequencyMHz: p(2412)}
	for name, c := range map[string]struct {
		change func(*wire.WiFiReading)
		fault  string // in the words; "": none
	}{
		"as it is": {func(*wire.WiFiReading) {}, ""},
		"only the signal": {func(w *wire.WiFiReading) {
			*w = wire.WiFiReading{RenewedWithinMs: 3000, SignalDbm: p(-126.0)}
		}, ""},
		"no signal":                 {func(w *wire.WiFiReading) { w.SignalDbm = nil }, "signal_dbm"},
		"an unknown one":            {func(w *wire.WiFiReading) { w.SignalDbm = p(-127.0) }, "signal_dbm"},
		"one above a milliwatt":     {func(w *wire.WiFiReading) { w.SignalDbm = p(1.0) }, "signal_dbm"},
		"an unknown rate":           {func(w *wire.WiFiReading) { w.TxBitrateMbps = p(-1.0) }, "tx_bitrate_mbps"},
		"no rate":                   {func(w *wire.WiFiReading) { w.RxBitrateMbps = p(0.0) }, "rx_bitrate_mbps"},
		"a channel's number":        {func(w *wire.WiFiReading) { w.FrequencyMHz = p(36) }, "frequency_mhz"},
		"of the future":             {func(w *wire.WiFiReading) { w.AgeMs = -1 }, "age_ms"},
		"of a minute ago":           {func(w *wire.WiFiReading) { w.AgeMs = 60_001 }, "age_ms"},
		"renewed nobody knows when": {func(w *wire.WiFiReading) { w.RenewedWithinMs = 3001 }, "renewed_within_ms"},
		"renewed at the same look":  {func(w *wire.WiFiReading) { w.RenewedWithinMs = 0 }, "renewed_within_ms"},
	} {
		w := good
		c.change(&w)
		err := w.Validate()
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEncodeWritesNoNull(t *testing.T) {
	for _, body := range []any{wire.NodeStatus{}, wire.CampaignView{}, &wire.RestoreReport{}, wire.TrialView{},
		[]wire.Verdict(nil), wire.Provenance{}} {
		data, err := wire.Encode(body)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "null") {
			t.Errorf("%T: %s", body, data)
		}
	}
}

// FuzzPlan: whatever a plan says, Validate answers and does not panic, and what
// it lets through has nodes for every role.
func FuzzPlan(f *testing.F) {
	data, err := os.ReadFile("golden/body_run_plan.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"trials":[{"number":1,"traffic":[{}]}],"nodes":[{}]}`))
	fuzz.Run(f, func(t *testing.T, data []byte) {
		var plan wire.RunPlan
		if json.Unmarshal(data, &plan) != nil || plan.Validate() != nil {
			return
		}
		names := map[string]bool{}
		for _, n := range plan.Nodes {
			names[n.Name] = true
		}
		for _, trial := range plan.Trials {
			for _, n := range trial.Nodes() {
				if !names[n] {
					t.Errorf("trial %d lets in %q, which is not a node", trial.Number, n)
				}
			}
		}
	})
}

func TestALongReasonIsCutToWhatABodyCarries(t *testing.T) {
	short := wire.Reason{Code: "short", Text: "of it"}
	if got := short.Fit(); got != short {
		t.Errorf("got %q", got)
	}
	fit := wire.Reason{Text: strings.Repeat("ä", 26583)}.Fit()
	got := fit.String()
	v := wire.Verdict{TrialKey: wire.TrialKey{Trial: 1, Attempt: 1}, Outcome: wire.Failed, Reason: fit}
	if err := v.Validate(); err != nil {
		t.Error(err)
	}
	if !strings.HasSuffix(got, "ä … (24623 characters more)") {
		t.Errorf("got …%q", got[len(got)-60:])
	}
}
