package field

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

func testField(t *testing.T, names ...string) *Field {
	t.Helper()
	c, err := Settings{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	f := &Field{cfg: Config{Field: c, Run: "r"}}
	for i, n := range names {
		f.nodes = append(f.nodes, &node{Node: Node{Name: n, Unit: "unit-" + n}, index: i})
	}
	if f.stage, err = newStage(c, names, 1, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestArrangePutsEveryNodeInItsPlace(t *testing.T) {
	f := testField(t, "a", "b", "c", "d")
	speed, lat, lon := 10.0, -33.0, -70.0
	trial := wire.Trial{
		Car: "a", Roadside: "c", SpeedMps: &speed, Direction: "inbound",
		Course: wire.Course{Kind: "depart", StartM: 5, AccelMps2: 2, BrakeMps2: 3, HeadingDeg: 90, SiteLatDeg: &lat,
			SiteLonDeg: &lon},
	}
	s, err := f.stage.arrange(trial)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{-5, 20, 0, 40} {
		if got := s.at(i, 0); math.Abs(got.XM-want) > 1e-9 || math.Abs(got.YM) > 1e-9 {
			t.Errorf("%s is at %g, %g; want %g, 0", f.nodes[i].Name, got.XM, got.YM, want)
		}
	}
	if s.site != (earth.Site{LatDeg: lat, LonDeg: lon}) {
		t.Errorf("site %+v", s.site)
	}
	s.drive = s.drive.Depart(time.Second)
	got := s.truth(f.stage.names, "a", 6*time.Second, 7*time.Second)
	last := got[10].Body.(*wire.Truth)
	// The car ten times a second, the three others at the window's edges.
	if len(got) != 11+3*2 || got[11].Body.(*wire.Truth).Of != "b" || last.Of != "a" ||
		math.Abs(last.DistanceM-(5+25+10)) > 1e-9 || last.SpeedMps != 10 {
		t.Errorf("%d truths, the last %+v", len(got), last)
	}
	// The close is told to the moment, also where it is not a multiple of the
	// step.
	got = s.truth(f.stage.names, "a", 6*time.Second, 7*time.Second+30*time.Millisecond)
	if last := got[11]; last.TBootNs != int64(7030*time.Millisecond) ||
		math.Abs(last.Body.(*wire.Truth).DistanceM-(5+25+10.3)) > 1e-9 {
		t.Errorf("the car at the close: %+v %+v", last.Header, last.Body)
	}
	trial.Car = "z"
	if _, err := f.stage.arrange(trial); err == nil || !strings.Contains(err.Error(), `"z"`) {
		t.Errorf("unknown car: %v", err)
	}
	still, err := f.stage.arrange(wire.Trial{Course: wire.Course{Kind: "none"}})
	if err != nil || len(still.truth(f.stage.names, "", 0, time.Second)) != 8 || still.at(1, 0).DistanceM != 20 {
		t.Errorf("nobody moves: %+v %v", still, err)
	}
}

func TestUnitsDifferInPower(t *testing.T) {
	f := testField(t, "a", "b")
	f.cfg.Field.UnitPowerOffsetDb = map[string]float64{"unit-b": -6}
	for _, n := range f.nodes {
		n.mac = []byte{2, 0, 0, 0, 0, byte(n.index + 1)}
	}
	power := 17.0
	m := f.mediumConfig(wire.Radio{TxPowerDbm: &power, Standard: "802.11b", Channel: 11})
	if m.Nodes[0].TxPowerDbm != 17 || m.Nodes[1].TxPowerDbm != 11 || m.Standard != "802.11b" || m.Channel != 11 {
		t.Errorf("%+v", m)
	}
	open := f.mediumConfig(wire.Radio{})
	if open.Nodes[0].TxPowerDbm != 20 || open.Channel != 6 || sameChannel(m, open) || !sameChannel(m, m) {
		t.Errorf("defaults %+v", open)
	}
}

// ns-2's radio reaches 250 m by its own power, and 200 m at the power or by the range
// that P2's campaigns give it.
func TestRadioByNameHasItsPowerAndReach(t *testing.T) {
	lower := 20.62
	for _, v := range []struct {
		powerDbm       *float64
		rangeM, reachM float64
	}{{nil, 0, 250}, {&lower, 0, 200}, {nil, 200, 200}} {
		s, err := NewSketch(Config{Nodes: []Node{{Name: "a"}, {Name: "b"}},
			Field: Settings{Radio: phy.RadioNS2WaveLAN, TxPowerDbm: v.powerDbm, RangeM: v.rangeM}},
			wire.Trial{Radio: wire.Radio{Standard: "802.11b"}, DurationS: 1, Course: wire.Course{Kind: "none"}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if a := s.Nodes[0]; math.Abs(a.LowReachM-v.reachM) > 0.1 || a.HighReachM != a.LowReachM {
			t.Errorf("reaches of %g and %g m, want %g", a.LowReachM, a.HighReachM, v.reachM)
		}
	}
	f := testField(t, "a", "b")
	f.cfg.Field.Radio = "orinoco"
	if _, err := medium.NewCore(f.mediumConfig(wire.Radio{Standard: "802.11b"}), f.locate, nil); err == nil ||
		!strings.Contains(err.Error(), "ns2_wavelan") {
		t.Errorf("an unknown radio: %v", err)
	}
}

func TestImpossibleFieldsAreRefused(t *testing.T) {
	ok := Config{Dir: "/tmp/x", Agent: "/bin/agent", Nodes: []Node{{Name: "a"}, {Name: "b"}}}
	if c, err := ok.withDefaults(); err != nil || c.FaceUser != "nobody" || c.Field.NMEAHz != 10 {
		t.Fatalf("%+v %v", c, err)
	}
	lat := 91.0
	for want, spoil := range map[string]func(*Config){
		"absolute":  func(c *Config) { c.Dir = "x" },
		"agent":     func(c *Config) { c.Agent = "agent" },
		"1 nodes":   func(c *Config) { c.Nodes = c.Nodes[:1] },
		"twice":     func(c *Config) { c.Nodes = []Node{{Name: "a"}, {Name: "a"}} },
		"itself":    func(c *Config) { c.Nodes = []Node{{Name: "a"}, {Name: "ctl"}} },
		"allowed":   func(c *Config) { c.Nodes = []Node{{Name: "a"}, {Name: "../b"}} },
		"nmea_hz 7": func(c *Config) { c.Field.NMEAHz = 7 },
		"together":  func(c *Config) { c.Field.SiteLatDeg = &lat },
		"latitude":  func(c *Config) { c.Field.SiteLatDeg, c.Field.SiteLonDeg = &lat, &lat },
		"control links": func(c *Config) {
			c.Nodes = []Node{{Name: "a", MeshAddress: "10.213.4.1/24"}, {Name: "b"}}
		},
		"spacing_m ": func(c *Config) { c.Field.SpacingM = -1 },
	} {
		c := ok
		spoil(&c)
		if _, err := c.withDefaults(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Each of a hardware unit's offsets is added to what all units have, and to no other unit's.
func TestUnitsDifferByTheirOffsets(t *testing.T) {
	f, power := testField(t, "a", "b"), 15.0
	f.nodes[0].Unit, f.nodes[1].Unit = "u1", "u2"
	c, err := Settings{TxPowerDbm: &power, AntennaGainDbi: 2, NoiseFigureDb: 7,
		UnitPowerOffsetDb: map[string]float64{"u1": -6}, UnitGainOffsetDb: map[string]float64{"u1": 1.5},
		UnitNoiseOffsetDb: map[string]float64{"u1": 3}}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	f.cfg.Field = c
	got := f.mediumConfig(wire.Radio{Standard: "802.11b"}).Nodes
	for i, want := range [][3]float64{{9, 3.5, 10}, {15, 2, 7}} {
		if n := got[i]; [3]float64{n.TxPowerDbm, n.AntennaGainDbi, n.NoiseFigureDb} != want {
			t.Errorf("%s: power %g dBm, gain %g dBi, noise figure %g dB, want %v", n.Name, n.TxPowerDbm,
				n.AntennaGainDbi, n.NoiseFigureDb, want)
		}
	}
}

func TestFolderThatIsClosedToOthersIsRefused(t *testing.T) {
	dir := t.TempDir()
	closed := filepath.Join(dir, "closed")
	if err := os.MkdirAll(filepath.Join(closed, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := reachable(filepath.Join(closed, "run")); err == nil || !strings.Contains(err.Error(), "chmod o+x ") {
		t.Errorf("closed folder: %v", err)
	}
}

func TestNodesFilesAreKeptByASecondField(t *testing.T) {
	dir := t.TempDir()
	_, _, pin, err := keys.New("desk")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Authorized: []keys.Peer{{Name: "desk", Role: wire.RoleController, Pin: pin}}, FaceUser: "nobody",
		QuotaBytes: 1 << 30, Nodes: []Node{{MeshAddress: "192.168.5.1/24"}, {MeshAddress: "192.168.5.2/24"}}}
	n := &node{Node: Node{Name: "alpha", Unit: "u"}, dir: filepath.Join(dir, "alpha"), feedback: "/run/x.sock",
		control: controlAddr(3, 11)}
	first, err := n.prepare(c, os.Getuid(), os.Getgid())
	if err != nil {
		t.Fatal(err)
	}
	second, err := n.prepare(c, os.Getuid(), os.Getgid())
	if err != nil || first != second || first.Address != "10.213.3.11:7443" {
		t.Errorf("%+v then %+v (%v)", first, second, err)
	}
	text, err := os.ReadFile(n.agentFile())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"node: alpha", "listen: 10.213.3.11:7443", "interface: wlan0", "gpsd: 127.0.0.1:2947",
		"  - 10.77.0.0/16\n  - 192.168.5.0/24\n", "quota_bytes: 1073741824"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	list, err := keys.LoadAuthorized(filepath.Join(n.dir, "keys", "authorized.json"))
	if _, ok := list.Find(pin); err != nil || !ok {
		t.Errorf("the controller is not let in: %v", err)
	}
}

func FuzzDecodeRequest(f *testing.F) {
	f.Add([]byte(`{"id":1,"call":"place","trial":{"number":1,"car":"a"},"attempt":1}`))
	f.Add([]byte(`{"id":2,"call":"settle","open_boot_ns":5,"close_boot_ns":6}`))
	f.Add([]byte(`{"id":3,"call":"fault","fault":{"kind":"radio_dead"}}`))
	fuzz.Run(f, func(t *testing.T, line []byte) {
		r, err := decodeRequest(line)
		if err == nil && r.ID == 0 {
			t.Errorf("accepted %q", line)
		}
	})
}

func TestAnswersCarryRecordsWhole(t *testing.T) {
	line, err := json.Marshal(response{ID: 4, OK: true, Records: []wire.Record{
		{Header: wire.Header{Node: "field", TBootNs: 7}, Body: &wire.Truth{Of: "a", SpeedMps: 3}}}})
	if err != nil {
		t.Fatal(err)
	}
	var back response
	if err := json.Unmarshal(line, &back); err != nil || len(back.Records) != 1 {
		t.Fatalf("%s: %v", line, err)
	}
	if tr, ok := back.Records[0].Body.(*wire.Truth); !ok || tr.SpeedMps != 3 || back.Records[0].TBootNs != 7 {
		t.Errorf("%+v", back.Records[0])
	}
}

func TestADeviceThatMakesNoInterfacesIsRefused(t *testing.T) {
	for _, device := range []string{"/dev/null", "/dev/no-such"} {
		if err := checkTun(device); err == nil || !strings.Contains(err.Error(), "sudo modprobe tun") {
			t.Errorf("%s: %v", device, err)
		}
	}
}

// Trials of one repetition have one channel, those of another one their own; unless all have
// the campaign's.
func TestRepetitionsDrawTheirChannels(t *testing.T) {
	f := &Field{cfg: Config{Seed: 7, Field: mustSettings(t, Settings{})}}
	seed := func(repetition int) uint64 {
		return f.trialConfig(wire.Trial{Number: 10 * repetition, Repetition: repetition}).Seed
	}
	if seed(1) == seed(2) || seed(1) != f.trialConfig(wire.Trial{Number: 5, Repetition: 1}).Seed {
		t.Errorf("repetitions 1 and 2 have the seeds %d and %d", seed(1), seed(2))
	}
	first := f.trialConfig(wire.Trial{Repetition: 1})
	overhearing := f.trialConfig(wire.Trial{Repetition: 1, Routing: wire.Routing{Protocol: "dsr-ns2"}})
	if !overhearing.Promiscuous || first.Promiscuous || sameChannel(first, overhearing) {
		t.Error("nodes overhear one another in a trial with dsr-ns2, and in no other")
	}
	if sameChannel(first, f.trialConfig(wire.Trial{Repetition: 2})) {
		t.Error("another repetition has the channel of the one before")
	}
	f.cfg.Field.ChannelDraws = DrawsPerCampaign
	if seed(1) != 7 || seed(2) != 7 {
		t.Errorf("one draw for all: repetitions 1 and 2 have the seeds %d and %d", seed(1), seed(2))
	}
	if _, err := (Settings{ChannelDraws: "per_trial"}).WithDefaults(); err == nil {
		t.Error("channel_draws: per_trial is taken")
	}
}

func mustSettings(t *testing.T, s Settings) Settings {
	t.Helper()
	s, err := s.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return s
}
