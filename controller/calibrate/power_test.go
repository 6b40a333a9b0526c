package calibrate

import (
	"math"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/plan/environment"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The power of trials that do not say theirs is the rehearsal's, or what the radios told.
func TestPowerOfTrialsThatDoNotSayTheirs(t *testing.T) {
	campaign := func(field string) []byte {
		text := testnet.Brief("velocity", 10, "acceptance: {attempts_max: 1}\nfield: "+field+"\n")
		return []byte(strings.Replace(text, "{mode: none}",
			`{mode: adhoc, standard: 802.11b, channel: 6, ssid: x, bssid: "02:0a:5e:00:00:06"}`, 1))
	}
	told := func(dbm map[string]float64) func(string, *wire.Record) {
		return func(node string, r *wire.Record) {
			if p, ok := r.Body.(*wire.Provenance); ok {
				p.Radio = &wire.Caps{TxPowerDbm: new(dbm[node])}
			}
		}
	}
	const as = " are taken, as in the rehearsal"
	var first *float64
	usual := func(radio string) float64 { return map[string]float64{"": 20, "dsss_orinoco": 15}[radio] }
	for name, c := range map[string]struct {
		place, field string
		change       func(string, *wire.Record)
		want         float64
		note         string
	}{
		"field": {"rehearsal", "{tx_power_dbm: 12}", unchanged, 12, "12.0 dBm" + as},
		"radio": {"rehearsal", "{radio: dsss_orinoco}", unchanged, 15, "15.0 dBm" + as},
		"none":  {"rehearsal", "{nmea_hz: 5}", unchanged, 20, "20.0 dBm" + as},
		"road": {"road", "{tx_power_dbm: 12}", unchanged, 20,
			"20.0 dBm are taken, as no radio told its own"},
		"told": {"road", "{tx_power_dbm: 12}", told(map[string]float64{"car": 18, "roadside": 14}), 16,
			"16.0 dBm are taken, the mean of what the radios told"},
		"strong": {"road", "{nmea_hz: 5}", told(map[string]float64{"car": 33, "roadside": 33}), 30,
			"30.0 dBm are taken, the mean of what the radios told"},
		"zero": {"road", "{nmea_hz: 5}", told(map[string]float64{"car": 0, "roadside": 14}), 14,
			"14.0 dBm are taken, the mean of what the radios told"},
	} {
		info := synthetic.Info(synthetic.Options{Seed: 1, Speeds: []float64{10}, Repetitions: 1, Place: c.place,
			Raw:    campaign(c.field),
			Change: func(t *wire.Trial) { t.Radio.TxPowerDbm = nil }})
		s, err := gather(driven(t, info, c.change), 0, usual)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// The signal is the same whatever is taken.
		signal := s.samples[0].gainDb + c.want
		if first == nil {
			first = &signal
		}
		if math.Abs(signal-*first) > 1e-6 {
			t.Errorf("%s: %g dB of gain and power, another had %g", name, signal, *first)
		}
		r := &Result{Survey: *s, Exponent: &Estimate{Value: 2.5}, GainDbi: &Estimate{}}
		f, err := r.field(&environment.Field{})
		if err != nil || f.TxPowerDbm == nil || *f.TxPowerDbm != c.want {
			t.Errorf("%s: the scenario's power is %v (%v), want %g dBm", name, f.TxPowerDbm, err, c.want)
		}
		if notes := strings.Join(r.notes(), "\n"); !strings.Contains(notes, c.note) {
			t.Errorf("%s: said: %s", name, notes)
		}
	}
}
