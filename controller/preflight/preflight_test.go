package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// need is a plan of one trial that asks for everything.
func need() wire.RunPlan {
	return wire.RunPlan{
		Run: "a", Nodes: []wire.PlanNode{{Name: "car", MeshPrefix: "10.77.0.1/24"},
			{Name: "road", MeshPrefix: "10.77.0.2/24"}},
		Trials: []wire.Trial{{Number: 1, Car: "car", Roadside: "road", Sender: "car", Receiver: "road",
			Initiator: "car", SpeedMps: new(8.0), DurationS: 10,
			Gate: wire.Gate{TimeoutS: 60}, Radio: wire.Radio{Mode: "adhoc", Standard: "802.11g", Channel: 6,
				RateMbps: new(6.0)}, Routing: wire.Routing{Protocol: "babeld"},
			TCP: wire.TCP{Variant: "reno"}, Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "car",
				To: "road"}}, Acceptance: wire.Acceptance{FixModeMin: new(3), FixAgeMsMax: new(1500.0),
				ClockErrorMsMax: new(20.0)}}},
	}
}

// well is a node that meets all of need.
func well() Told {
	return Told{
		Entry: fleet.Node{Name: "car", Address: "192.168.50.11:7443"},
		Status: wire.NodeStatus{
			Node: "car", Version: "1", Interface: "wlan0", AllowedPrefixes: []string{"10.77.0.0/16"},
			Tools: map[string]string{"iperf3": "3.12", "babeld": "1.12"}, Congestion: []string{"reno"},
			GPS:       &wire.GPS{Mode: 3, Connected: true, FixAgeMs: new(100.0), SatellitesUsed: new(9)},
			GPSRateHz: new(10.0), ControlInterface: "eth0",
			Spool: wire.SpoolStatus{QuotaBytes: 2e9, FreeBytes: 50e9, RoomBytes: new(int64(2e9))},
			Host:  wire.HostStatus{Reached: true},
			Radio: &wire.Caps{Driver: "nl80211", Modes: []string{"adhoc", "mesh"}, Channels: []int{1, 6, 11},
				Country: "DE", RatesMbps: []float64{6, 54}},
			Machine: &wire.Machine{BatteryPercent: new(80.0), BatteryState: "discharging", BatteryLeftS: new(7200.0),
				TemperatureC: new(50.0), HottestZone: "cpu"},
		},
		Clock: &wire.Clock{UncertaintyNs: 300_000, WallOffsetNs: 40_000_000}, Tried: true, Ways: true,
	}
}

// told is what was found of a need: its states and words together.
func told(items []Item, need string) (states []string, words string) {
	for _, i := range items {
		if i.Need == need {
			states, words = append(states, i.State), words+i.Found+"; "+i.Cure+"\n"
		}
	}
	return states, words
}

// A node at no end of a TCP flow may be a relay of a variant that it lacks.
func TestARelayNeedsNoVariant(t *testing.T) {
	p := need()
	p.Trials[0].TCP.Variant, p.Trials[0].Traffic[0].From = "vegas", "elsewhere"
	if states, words := told(Judge(p, "car", 3600, well()), "tcp"); !slices.Equal(states, []string{Unneeded}) ||
		!strings.Contains(words, "no TCP flow") {
		t.Errorf("%v %s", states, words)
	}
}

func TestANodeThatIsWellMeetsEverything(t *testing.T) {
	items := Judge(need(), "car", 3600, well())
	var needs []string
	for _, i := range items {
		needs = append(needs, i.Need)
		if i.State != Met && i.Need != "channel" {
			t.Errorf("%+v", i)
		}
		if i.Node != "car" || i.Found == "" || (i.Cure == "") != (i.State == Met) {
			t.Errorf("%+v", i)
		}
	}
	if got := strings.Join(needs, " "); got != "reach host iperf3 generator radio regulatory channel address route "+
		"routing tcp gps gps_rate clock wall_clock disk battery temperature control" {
		t.Errorf("needs %s", got)
	}
	r := Report{}
	if r.Add(items...); !r.Pass {
		t.Error("the report does not pass")
	}
	if r.Add(Item{Need: "x", State: Unmet}); r.Pass {
		t.Error("the report passes with an unmet need")
	}
}

// Nothing is emulated where a cable is tested.
func TestTheChannelOfACableIsNotEmulated(t *testing.T) {
	p, n := need(), well()
	n.Status.Radio = nil
	_, words := told(Judge(p, "car", 3600, n), "channel")
	if !strings.Contains(words, "wlan0 is not a Wi-Fi interface") {
		t.Errorf("of the channel it says %q", words)
	}
}

func TestEveryNeedCanBeUnmet(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*wire.RunPlan, *Told)
		need  string
		want  string // in its words
	}{
		"another node": {func(_ *wire.RunPlan, n *Told) { n.Status.Node = "road" }, "reach", "says it is road"},
		"another unit": {func(p *wire.RunPlan, n *Told) {
			p.Nodes[0].Unit, n.Entry.Unit = "laptop-1", "phone-1"
		}, "unit", "phone-1 carries it, and the campaign that laptop-1 does"},
		"host":      {problem("host"), "host", "its cure"},
		"iperf3":    {problem("iperf3"), "iperf3", "its cure"},
		"generator": {problem("generator"), "generator", "its cure"},
		"no such mode": {func(_ *wire.RunPlan, n *Told) {
			n.Status.Radio.Modes = []string{"managed"}
		}, "radio", "no mode adhoc, only managed"},
		"no such rate": {func(_ *wire.RunPlan, n *Told) {
			n.Status.Radio.RatesMbps = []float64{1, 2}
		}, "radio", "no rate of 6"},
		"rates of the emulated radio": {func(p *wire.RunPlan, _ *Told) {
			p.Trials[0].Radio.Standard = "802.11n"
		}, "radio", "802.11n is for rehearsals only"},
		"not beside": {beside(0, nil), "radio", "cannot be in adhoc mode beside wlan0, which is managed: at once it " +
			"can have one interface only; name wlan0 itself as `interface`"},
		"mesh beside": {beside(0, map[string]int{"mesh": 1}), "radio", "or plan mode mesh"},
		"one channel": {beside(11, map[string]int{"adhoc": 1}), "channel", "wlan0 is in its own network on channel " +
			"11, the plan wants channel 6, and the radio can be on one channel only; set that network's access point " +
			"to channel 6"},
		"left, and not there": {func(p *wire.RunPlan, n *Told) {
			beside(0, map[string]int{"adhoc": 1})(p, n)
			p.Trials[0].Radio = wire.Radio{Mode: "none"}
		}, "radio", "is made beside wlan0 only for a plan that sets its radio"},
		"no radio": {func(_ *wire.RunPlan, n *Told) {
			n.Status.Radio = nil
		}, "radio", "wlan0 is not a Wi-Fi interface"},
		"not ours to set": {func(_ *wire.RunPlan, n *Told) {
			n.Status.Radio.Driver, n.Status.Radio.Mode = "theirs", "mesh"
		}, "radio", "in mode mesh"},
		"forbidden channel": {func(_ *wire.RunPlan, n *Told) { n.Status.Radio.Channels = []int{1, 11} }, "regulatory",
			"channel 6 in domain DE, only on [1 11]"},
		"another network": {func(_ *wire.RunPlan, n *Told) { n.Status.AllowedPrefixes = []string{"10.78.0.0/16"} },
			"address", "10.77.0.1/24, is outside what its agent may set: 10.78.0.0/16"},
		"a wider network": {func(_ *wire.RunPlan, n *Told) { n.Status.AllowedPrefixes = []string{"10.77.0.0/25"} },
			"address", "outside"},
		"no access point": {func(p *wire.RunPlan, n *Told) {
			infrastructure(p, "car")
			n.Status.Radio.Modes = []string{"ap"}
		}, "radio", "no wpa_supplicant"},
		"no station": {func(p *wire.RunPlan, n *Told) {
			infrastructure(p, "road")
			n.Status.Radio.Modes = []string{"ap"}
		}, "radio", "no mode managed, only ap"},
		"a laptop for a phone": {hotspot("car", 0), "radio", "no Android runs on the node"},
		"too old a station":    {hotspot("road", 29), "radio", "of API level 29, lets no program join"},
		"too old a hotspot":    {hotspot("car", 30), "radio", "of API level 30, lets no program start a hotspot"},
		"a station without its radio": {func(p *wire.RunPlan, n *Told) {
			hotspot("road", 34)(p, n)
			n.Status.InterfaceUp = nil
			problem("radio")(p, n)
		}, "radio", "its cure"},
		"control by the phone's Wi-Fi": {func(p *wire.RunPlan, n *Told) {
			hotspot("road", 34)(p, n)
			n.Status.ReachedBy = "wlan0"
		}, "control", "reached by wlan0"},
		"another way": {problem("route"), "route", "its cure"},
		"no daemon": {func(_ *wire.RunPlan, n *Told) {
			delete(n.Status.Tools, "babeld")
		}, "routing", "no babeld"},
		"no such variant": {func(p *wire.RunPlan, _ *Told) {
			p.Trials[0].TCP.Variant = "vegas"
		}, "tcp", `"vegas" is not available`},
		"gpsd":       {problem("gps"), "gps", "its cure"},
		"a flat fix": {func(_ *wire.RunPlan, n *Told) { n.Status.GPS.Mode = 2 }, "gps", "wants a 3-D one"},
		"an old fix": {func(_ *wire.RunPlan, n *Told) {
			n.Status.GPS.FixAgeMs = new(4000.0)
		}, "gps", "view of the sky"},
		"too slow a GPS": {func(_ *wire.RunPlan, n *Told) {
			n.Status.GPSRateHz = new(0.5)
		}, "gps_rate", "up to 2000 ms old, the limit is 1500"},
		"a slow link": {func(_ *wire.RunPlan, n *Told) {
			n.Clock.UncertaintyNs = 30e6
		}, "clock", "± 30 ms, the limit is 20 ms"},
		"no clock": {func(_ *wire.RunPlan, n *Told) { n.Clock, n.ClockErr = nil, errors.New("cut") }, "reach",
			"cut"},
		"wall clock ahead": {func(_ *wire.RunPlan, n *Told) {
			n.Clock.WallOffsetNs = (wallLimit + time.Second).Nanoseconds()
		}, "wall_clock", "1m1s off the controller's, the limit is 1m0s"},
		"wall clock of 1970": {func(_ *wire.RunPlan, n *Told) {
			n.Clock.WallOffsetNs = -(56 * 365 * 24 * time.Hour).Nanoseconds()
		}, "wall_clock", "-490560h0m0s off"},
		"a clock not set": {problem("wall_clock"), "wall_clock", "its cure"},
		"disk":            {problem("disk"), "disk", "its cure"},
		"a small disk": {func(_ *wire.RunPlan, n *Told) {
			n.Status.Spool.RoomBytes = new(int64(15e6))
		}, "disk", "room for 15 MB of records, a trial may take"},
		"battery alarm": {problem("battery"), "battery", "its cure"},
		"a short battery": {func(_ *wire.RunPlan, n *Told) {
			n.Status.Machine.BatteryLeftS = new(1800.0)
		}, "battery", "80 % last 0 h 30 min, the campaign takes 1 h 00 min"},
		"too hot": {problem("temperature"), "temperature", "its cure"},
		"no link of its own": {func(p *wire.RunPlan, n *Told) {
			p.Control, n.Entry.Address = wire.ControlOwn, "10.77.0.1:7443"
		}, "control", "is on the mesh"},
		"no control device": {func(p *wire.RunPlan, n *Told) {
			p.Control, n.Status.ControlInterface = wire.ControlOwn, ""
		}, "control", "no control interface"},
		"control by the radio under test": {func(_ *wire.RunPlan, n *Told) { n.Status.ReachedBy = "wlan0" }, "control",
			"reached by wlan0, and wlan0 leaves its own network for the run"},
		"what is new": {problem("antenna"), "antenna", "its cure"},
	} {
		p, n := need(), well()
		c.spoil(&p, &n)
		items := Judge(p, "car", 3600, n)
		states, words := told(items, c.need)
		if len(states) != 1 || states[0] != Unmet || !strings.Contains(words, c.want) {
			t.Errorf("%s: %v %s", name, states, words)
		}
		for _, i := range items {
			if i.State == Unmet && (i.Need != c.need || i.Cure == "") {
				t.Errorf("%s: %+v", name, i)
			}
		}
	}
}

// beside makes the node's interface one that is made for the run, while wlan0 is
// on a channel of its own (0: on none).
func beside(channel int, channels map[string]int) func(*wire.RunPlan, *Told) {
	return func(_ *wire.RunPlan, n *Told) {
		n.Scanned = true
		n.Status.Interface, n.Status.Radio.Beside = "mesh0", &wire.Beside{Interface: "wlan0", Mode: "managed",
			Channel: channel, Channels: channels}
	}
}

func TestAnInterfaceBesideTheMachinesOwn(t *testing.T) {
	for name, c := range map[string]struct {
		channel, at int
		state, want string
	}{
		"in no network":      {0, 1, Met, "nobody else was heard"},
		"on the same":        {6, 1, Unknown, "wlan0 is in its own network on channel 6 too"},
		"on another, by two": {11, 2, Unknown, "the radio shares its time between the two"},
	} {
		p, n := need(), well()
		beside(c.channel, map[string]int{"adhoc": c.at})(&p, &n)
		items := Judge(p, "car", 3600, n)
		if states, words := told(items, "radio"); len(states) != 1 || states[0] != Met ||
			!strings.Contains(words, "mesh0, made beside wlan0 for the run") {
			t.Errorf("%s: radio %v %s", name, states, words)
		}
		if states, words := told(items, "channel"); len(states) == 0 || states[0] != c.state ||
			!strings.Contains(words, c.want) {
			t.Errorf("%s: channel %v %s", name, states, words)
		}
	}
}

// hotspot makes the plan's radio a phone's hotspot, which a node keeps, and the car's node
// an Android of an API level.
func hotspot(ap string, api int) func(*wire.RunPlan, *Told) {
	return func(p *wire.RunPlan, n *Told) {
		n.Status.Host.AndroidAPI = api
		for i := range p.Trials {
			p.Trials[i].Radio = wire.Radio{Mode: wire.ModeHotspot, Channel: 6, SSID: "m", AccessPoint: ap}
		}
	}
}

// The hotspot's interface need not be there before the hotspot is.
func TestAPhoneThatCanKeepTheHotspotIsNotMarked(t *testing.T) {
	for ap, want := range map[string]string{"car": "API level 31 will keep the hotspot on wlan0",
		"road": "API level 31 will join the hotspot by wlan0"} {
		p, n := need(), well()
		hotspot(ap, 31)(&p, &n)
		if ap == "car" {
			n.Status.InterfaceUp = nil
			problem("radio")(&p, &n)
		}
		items := Judge(p, "car", 3600, n)
		states, words := told(items, "radio")
		if len(states) != 1 || states[0] != Met || !strings.Contains(words, want) {
			t.Errorf("%s: %v %s", ap, states, words)
		}
		if slices.ContainsFunc(items, func(i Item) bool { return i.State == Unmet }) {
			t.Errorf("%s: %+v", ap, items)
		}
	}
}

func infrastructure(p *wire.RunPlan, ap string) {
	for i := range p.Trials {
		p.Trials[i].Radio.Mode, p.Trials[i].Radio.AccessPoint = wire.ModeInfrastructure, ap
	}
}

func problem(need string) func(*wire.RunPlan, *Told) {
	return func(_ *wire.RunPlan, n *Told) {
		n.Status.Problems = append(n.Status.Problems, wire.Problem{Need: need, Found: "found", Cure: "its cure"})
	}
}

func TestWhatIsNotNeededIsNoFailure(t *testing.T) {
	p, n := need(), well()
	p.Trials[0].SpeedMps, p.Trials[0].Radio.Mode, p.Trials[0].Routing.Protocol, p.Trials[0].Acceptance = nil, "none",
		"none", wire.Acceptance{}
	problem("gps")(&p, &n)
	n.Status.Radio, n.Status.GPSRateHz, n.Status.Machine = nil, nil, nil
	items := Judge(p, "car", 0, n)
	for _, want := range []string{"radio", "regulatory", "channel", "routing", "gps", "gps_rate"} {
		if states, words := told(items, want); len(states) != 1 || states[0] != Unneeded {
			t.Errorf("%s: %v %s", want, states, words)
		}
	}
	for _, i := range items {
		if i.State == Unmet {
			t.Errorf("%+v", i)
		}
	}
}

// Where fixes are judged the car needs them though no speed is planned.
func TestACarWhoseFixesAreJudgedNeedsThem(t *testing.T) {
	p, n := need(), well()
	p.Trials[0].SpeedMps = nil
	p.Trials[0].Acceptance = wire.Acceptance{FixModeMin: new(2)}
	n.Status.GPS = nil
	if states, words := told(Judge(p, "car", 0, n), "gps"); len(states) != 1 || states[0] != Unmet {
		t.Errorf("%v %s", states, words)
	}
}

// Without a planned speed what is measured goes by the distance, which takes both nodes' places.
func TestTheRoadsideNeedsFixesWhereNoSpeedIsPlanned(t *testing.T) {
	p, n := need(), well()
	p.Trials[0].Acceptance = wire.Acceptance{FixModeMin: new(2)}
	n.Status.Node, n.Entry.Name = "road", "road"
	for _, g := range []*wire.GPS{nil, {Connected: true}} {
		n.Status.GPS = g
		p.Trials[0].SpeedMps = nil
		if states, words := told(Judge(p, "road", 0, n), "gps"); !slices.Equal(states, []string{Unmet}) ||
			!strings.Contains(words, "receiver") {
			t.Errorf("no speed planned: %v %s", states, words)
		}
		p.Trials[0].SpeedMps = new(8.0)
		if states, words := told(Judge(p, "road", 0, n), "gps"); !slices.Equal(states, []string{Unneeded}) {
			t.Errorf("a speed planned: %v %s", states, words)
		}
	}
}

// What is reported about a node that is well, in words that a person can go by.
func TestWhatIsToldOfANodeThatIsWell(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*wire.RunPlan, *Told)
		need   string
		want   string
	}{
		"1 Hz": {func(_ *wire.RunPlan, n *Told) {
			n.Status.GPSRateHz = new(1.0)
		}, "gps_rate", "1 Hz: a speed stands for up to 1.0 s"},
		"chrony and GPS": {func(_ *wire.RunPlan, n *Told) {
			n.Status.WallClock = &wire.WallClock{GPSOffsetNs: new(int64(-42e6)), GPSUncertaintyNs: new(int64(100e6)),
				Sync: "synchronised"}
		}, "wall_clock", "40ms off the controller's; GPS time is -42ms ± 100ms from it; chrony: synchronised"},
		"a disk that fills": {func(p *wire.RunPlan, n *Told) {
			n.Status.Spool.RoomBytes = new(int64(44e6))
			p.Trials = append(p.Trials, p.Trials[0], p.Trials[0], p.Trials[0], p.Trials[0], p.Trials[0], p.Trials[0],
				p.Trials[0])
		}, "disk", "alone it can go on for 2 of 8 trials"},
		"control by mesh": {func(p *wire.RunPlan, n *Told) {
			p.Control, n.Entry.Address = wire.ControlMesh, "10.77.0.1:7443"
		}, "control", "silent while measuring"},
		"emulated": {func(_ *wire.RunPlan, n *Told) { n.Status.Radio = &wire.Caps{Driver: "medium"} }, "radio",
			"the emulated field sets it"},
		"no battery": {func(_ *wire.RunPlan, n *Told) { n.Status.Machine = nil }, "battery", "it has none"},
		"on the mains": {func(_ *wire.RunPlan, n *Told) { n.Status.Machine.BatteryState = "charging" }, "battery",
			"80 %, charging"},
	} {
		p, n := need(), well()
		c.change(&p, &n)
		if states, words := told(Judge(p, "car", 3600, n), c.need); len(states) != 1 || states[0] != Met ||
			!strings.Contains(words, c.want) {
			t.Errorf("%s: %v %s", name, states, words)
		}
	}
}

// A stranger is not a node that is out of reach, and a cure is given once.
func TestWhyANodeDidNotAnswer(t *testing.T) {
	stranger := &fleet.NodeError{Node: "car", Address: "a:1", Doing: "ask status",
		Err: errors.New("it has another key"), Cure: "see to it", Stranger: true}
	if p := Unreached(fmt.Errorf("once more: %w", stranger)); p !=
		(wire.Problem{Need: "key", Found: "ask status at a:1: it has another key", Cure: "see to it"}) {
		t.Errorf("a stranger: %+v", p)
	}
	silent := &fleet.NodeError{Node: "car", Address: "a:1", Doing: "ask status", Err: errors.New("nothing")}
	if p := Unreached(silent); p.Need != "reach" || !strings.Contains(p.Cure, "start the agent") {
		t.Errorf("a silent one: %+v", p)
	}
	items := Judge(need(), "car", 0, Told{Err: silent})
	if len(items) != 1 || items[0].Need != "reach" || items[0].State != Unmet {
		t.Errorf("%+v", items)
	}
	missing := Nodes(t.Context(), need(), 0, nil)
	if len(missing) != 2 || missing[0].Node != "car" || missing[1].Node != "road" || missing[0].State != Unmet ||
		!strings.Contains(missing[0].Found, "not in the fleet") {
		t.Errorf("%+v", missing)
	}
}

func TestTimeAndRoad(t *testing.T) {
	c, err := plan.Load("../../campaigns/velocity.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := c.Estimate()
	states := func(g Given) map[string]string {
		out := map[string]string{}
		for _, i := range campaign(c, g, false) {
			out[i.Need] = i.State
		}
		return out
	}
	if got := states(Given{}); got["time"] != Unknown || got["road"] != Unknown || len(got) != 2 {
		t.Errorf("nothing given: %v", got)
	}
	if got := states(Given{Seconds: e.RoadTotalS + 1, RoadM: e.SpanM() + 1}); got["time"] != Met ||
		got["road"] != Met {
		t.Errorf("enough: %v", got)
	}
	if got := states(Given{Seconds: e.RoadTotalS - 60, RoadM: e.SpanM() - 1}); got["time"] != Unmet ||
		got["road"] != Unmet {
		t.Errorf("too little: %v", got)
	}
	// The longest trial has room on 400 m, those on both sides of the mark have not.
	if got := states(Given{RoadM: 400}); e.LongestM > 400 || got["road"] != Unmet {
		t.Errorf("a road for one side: %v", got)
	}
	if c, err = plan.Load("../../campaigns/variants-grid.yaml"); err != nil { // its nodes are still, or move
		t.Fatal(err)
	}
	if got := states(Given{}); got["campaign"] != Unmet {
		t.Errorf("a campaign that is for rehearsals only: %v", got)
	}
	if items := campaign(c, Given{}, true); len(items) != 1 || items[0].State != Unneeded {
		t.Errorf("rehearsed: %+v", items)
	}
}

// Others on the channel, or on one that overlaps it, are named.
func TestOthersOnTheChannelAreNamed(t *testing.T) {
	p, n := need(), well() // on channel 6
	n.Status.Radio.Heard = []wire.HeardCell{
		{SSID: "home", BSSID: "02:00:00:00:00:01", Channel: 6, SignalDbm: new(-71.0)},
		{SSID: "beside", BSSID: "02:00:00:00:00:02", Channel: 9},
		{SSID: "distant", BSSID: "02:00:00:00:00:03", Channel: 11},
		{SSID: p.Trials[0].Radio.SSID, BSSID: "02:00:00:00:00:04", Channel: 6},
	}
	states, words := told(Judge(p, "car", 3600, n), "channel")
	if len(states) != 1 || states[0] != Unknown ||
		!strings.Contains(words, `also used by "home" on channel 6 at -71 dBm, "beside" on channel 9`) ||
		strings.Contains(words, "distant") {
		t.Errorf("%v %s", states, words)
	}
}

// listener is a node whose radio hears a neighbour once it has listened.
type listener struct {
	Told
	refused error
	scanned []int
	tryErr  error
	tried   int
	waysErr error
	mesh    string
}

func (l *listener) Node() fleet.Node { return l.Entry }

func (l *listener) Status(context.Context) (wire.NodeStatus, error) {
	st := l.Told.Status
	if radio := *st.Radio; len(l.scanned) > 0 && l.refused == nil {
		radio.Heard = []wire.HeardCell{{SSID: "home", BSSID: "02:00:00:00:00:01", Channel: l.scanned[0]}}
		st.Radio = &radio
	}
	return st, nil
}

func (l *listener) TryGenerator(ctx context.Context) (wire.NodeStatus, error) {
	l.tried++
	if l.tryErr != nil {
		return wire.NodeStatus{}, l.tryErr
	}
	return l.Status(ctx)
}

func (l *listener) Ways(ctx context.Context, mesh string) (wire.NodeStatus, error) {
	l.mesh = mesh
	if l.waysErr != nil {
		return wire.NodeStatus{}, l.waysErr
	}
	return l.Status(ctx)
}

func (l *listener) ClockOffset(context.Context, int) (wire.Clock, error) { return *l.Clock, nil }

func (l *listener) Scan(_ context.Context, channel int) error {
	l.scanned = append(l.scanned, channel)
	return l.refused
}

// Every node is asked about its ways to those with which it takes part in a trial.
func TestTheWaysToTheOthersAreLookedAt(t *testing.T) {
	alone := need()
	alone.Trials[0].Roadside, alone.Trials[0].Receiver, alone.Trials[0].Traffic[0].To = "", "", "car"
	for name, c := range map[string]struct {
		plan               wire.RunPlan
		err                error
		mesh, state, words string
	}{
		"looked at": {need(), nil, "10.77.0.1/24,10.77.0.2", Met, "elsewhere than to wlan0"},
		"an older agent": {need(), errors.New("unknown parameter"), "10.77.0.1/24,10.77.0.2", Unknown,
			"unknown parameter"},
		"nobody else": {alone, nil, "", Unneeded, "no other node"},
	} {
		l := &listener{Told: well(), waysErr: c.err}
		states, words := told(Nodes(t.Context(), c.plan, 3600, map[string]Node{"car": l}), "route")
		if !slices.Equal(states, []string{c.state}) || !strings.Contains(words, c.words) || l.mesh != c.mesh {
			t.Errorf("%s: %v %s, asked for %q", name, states, words, l.mesh)
		}
	}
}

// The generator is tried where a flow begins or ends, and nowhere else; a node
// that cannot be asked to is not refused for it.
func TestTheGeneratorIsTriedAtTheEndsOfFlows(t *testing.T) {
	relays := need()
	relays.Trials[0].Traffic[0].From = "elsewhere"
	for name, c := range map[string]struct {
		plan  wire.RunPlan
		err   error
		state string
		words string
		tried int
	}{
		"tried":         {need(), nil, Met, "sent to itself", 1},
		"a trial is on": {need(), errors.New("trial 3 is under way"), Unknown, "trial 3 is under way", 1},
		"a relay":       {relays, nil, Unneeded, "no flow", 0},
	} {
		l := &listener{Told: well(), tryErr: c.err}
		states, words := told(Nodes(t.Context(), c.plan, 3600, map[string]Node{"car": l}), "generator")
		if !slices.Equal(states, []string{c.state}) || !strings.Contains(words, c.words) || l.tried != c.tried {
			t.Errorf("%s: %v %s, tried %d times", name, states, words, l.tried)
		}
	}
}

// Asked to, radios listen first: who is heard is named, and that nobody is
// heard is known then.
func TestRadiosListenOnDemand(t *testing.T) {
	channel := func(ask Node) (state, words string) {
		states, words := told(Nodes(t.Context(), need(), 3600, map[string]Node{"car": ask}), "channel")
		return strings.Join(states, " "), words
	}
	l := &listener{Told: well()}
	if state, words := channel(l); state != Unknown || !strings.Contains(words, "--scan") || len(l.scanned) != 0 {
		t.Errorf("not asked to: %s %s, listened on %v", state, words, l.scanned)
	}
	if state, words := channel(withScan(l, need())); state != Unknown ||
		!strings.Contains(words, `"home" on channel 6`) || len(l.scanned) != 1 {
		t.Errorf("asked to: %s %s, listened on %v", state, words, l.scanned)
	}
	l = &listener{Told: well()}
	if state, words := channel(withScan(&quietListener{l}, need())); state != Met ||
		!strings.Contains(words, "nobody else") {
		t.Errorf("alone: %s %s", state, words)
	}
	l = &listener{Told: well(), refused: errors.New("wlan0 is down")}
	if state, words := channel(withScan(l, need())); state != Unknown || !strings.Contains(words, "wlan0 is down") {
		t.Errorf("refused: %s %s", state, words)
	}
}

// quietListener hears nobody.
type quietListener struct{ *listener }

func (q *quietListener) Status(context.Context) (wire.NodeStatus, error) {
	return q.listener.Told.Status, nil
}

func (q *quietListener) Ways(ctx context.Context, _ string) (wire.NodeStatus, error) {
	return q.Status(ctx)
}

// counted sees how many had answered when its clock was compared.
type counted struct {
	*listener
	told *atomic.Int32
	seen atomic.Int32
}

func (c *counted) Status(ctx context.Context) (wire.NodeStatus, error) {
	time.Sleep(10 * time.Millisecond)
	c.told.Add(1)
	return c.listener.Status(ctx)
}

func (c *counted) ClockOffset(ctx context.Context, n int) (wire.Clock, error) {
	c.seen.Store(c.told.Load())
	return c.listener.ClockOffset(ctx, n)
}

// What nodes do to report about themselves would make clocks uncertain.
func TestClocksAreComparedWhenAllHaveTold(t *testing.T) {
	var told atomic.Int32
	plan, nodes := need(), map[string]Node{}
	for _, n := range plan.Nodes {
		nodes[n.Name] = &counted{listener: &listener{Told: well()}, told: &told}
	}
	Nodes(t.Context(), plan, 3600, nodes)
	for name, n := range nodes {
		if seen := n.(*counted).seen.Load(); int(seen) != len(nodes) || len(nodes) < 2 {
			t.Errorf("%s: clock compared when %d of %d had answered", name, seen, len(nodes))
		}
	}
}
