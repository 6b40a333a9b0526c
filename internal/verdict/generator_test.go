package verdict

import (
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// generated is an attempt whose two iperf3 ended as given; nil leaves no record.
func generated(server, client *wire.Iperf3) (wire.Trial, []wire.Record) {
	tr, records := trial(), good()
	tr.Traffic = []wire.Flow{{Name: "main", Kind: "iperf3_tcp", From: "car", To: "roadside", DurationS: 10}}
	for side, b := range map[string]*wire.Iperf3{"server": server, "client": client} {
		if b == nil {
			continue
		}
		told := *b
		told.Flow, told.Side = "main", side
		records = append(records, at(map[string]string{"server": "roadside", "client": "car"}[side], 12, &told))
	}
	return tr, records
}

// lived ended s seconds after the window had opened.
func lived(ended string, s float64) *wire.Iperf3 {
	return &wire.Iperf3{Ended: ended, StartedBootNs: new(openNs), EndedBootNs: new(openNs + int64(s*1e9))}
}

func with(b *wire.Iperf3, change func(*wire.Iperf3)) *wire.Iperf3 { change(b); return b }

func erred(s float64, cause, text string) *wire.Iperf3 {
	return with(lived(wire.EndedItself, s), func(b *wire.Iperf3) { b.Cause, b.Error = cause, text })
}

func TestTheGeneratorIsACovariate(t *testing.T) {
	well := lived(wire.EndedItself, 10.1)
	late := lived(wire.EndedDeadline, 12)
	killed := func(s float64) *wire.Iperf3 {
		return with(lived(wire.EndedSignal, s),
			func(b *wire.Iperf3) { b.Signal, b.Killed = "SIGKILL", "signal: killed" })
	}
	const (
		server = "generator: on roadside: iperf3's server of flow main "
		client = "generator: on car: iperf3's client of flow main "
	)
	for name, c := range map[string]struct {
		server, client *wire.Iperf3
		reason         string // empty: accepted
	}{
		"both lived":             {well, well, ""},
		"the link cut for ever":  {late, late, ""},
		"nobody in reach":        {late, erred(9, wire.CauseUnreachable, "No route to host"), ""},
		"silence":                {late, erred(9.5, wire.CauseTimeout, "timed out"), ""},
		"broken off":             {erred(4, wire.CausePeerGone, "x"), erred(4, wire.CauseReset, "x"), ""},
		"killed after the close": {killed(10.01), killed(11), ""},
		"stopped after the close": {with(lived(wire.EndedDeadline, 12),
			func(b *wire.Iperf3) { b.StoppedBootNs = new(openNs + 11e9) }), late, ""},
		"refused after the close": {late, erred(10.5, wire.CauseRefused, "refused"), ""},
		"client killed": {erred(3.1, wire.CausePeerGone, "x"), killed(3),
			client + "was ended by SIGKILL 3.0 s into the window"},
		"server killed": {killed(3), erred(3.1, wire.CausePeerGone, "x"),
			server + "was ended by SIGKILL 3.0 s"},
		"server killed before": {killed(-1), erred(0.1, wire.CauseRefused, "refused"),
			server + "was ended by SIGKILL before the window opened"},
		"a signal that it took": {lived(wire.EndedSignal, 3), late, server + "was ended by a signal 3.0 s"},
		"stopped": {with(lived(wire.EndedDeadline, 12),
			func(b *wire.Iperf3) { b.StoppedBootNs = new(openNs + 2e9) }), late,
			server + "was stopped by a signal 2.0 s"},
		"refused": {late, erred(0.1, wire.CauseRefused, "Connection refused"),
			client + "was refused 0.1 s into the window: Connection refused"},
		"refused by a server that the network had ended": {erred(6, wire.CausePeerGone, "x"),
			erred(6.1, wire.CauseRefused, "Connection refused"), ""},
		"refused by a server that failed": {erred(6, wire.CauseTool, "x"),
			erred(6.1, wire.CauseRefused, "refused"), server + "ended 6.0 s"},
		"refused while the server lived": {erred(9, wire.CausePeerGone, "x"),
			erred(6, wire.CauseRefused, "refused"), client + "was refused 6.0 s"},
		"left by a client that the network silenced": {lived(wire.EndedItself, 7),
			erred(6.1, wire.CauseTimeout, "unable to read from stream socket: Resource temporarily unavailable"), ""},
		"left by a client that failed": {lived(wire.EndedItself, 7), erred(6.1, wire.CauseTool, "x"),
			client + "ended 6.1 s"},
		"ended before the client that the network silenced": {lived(wire.EndedItself, 5),
			erred(6.1, wire.CauseTimeout, "timed out"), server + "ended 5.0 s into the window, before its time"},
		"a tool's error near the end": {late, erred(9.9, wire.CauseTool, "Too many open files"),
			client + "ended 9.9 s into the window: Too many"},
		"a client that ends early": {late, lived(wire.EndedItself, 9.99),
			client + "ended 10.0 s into the window, before its time"},
		"a server by its own window": {lived(wire.EndedItself, 9.9992), well, ""},
		"a server before that":       {lived(wire.EndedItself, 9.9), well, server + "ended 9.9 s"},
		"a stranger's test at the server": {late, erred(0.1, wire.CauseServerBusy, "busy"),
			client + "was refused 0.1 s into the window: busy"},
		"no place for its files": {erred(0.2, wire.CausePeerGone, "x"),
			erred(0.1, wire.CauseTool, "unable to create a new stream"),
			client + "ended 0.1 s into the window: unable to create"},
		"not started": {late,
			&wire.Iperf3{Ended: wire.EndedUnstarted, Error: "no such file"}, client + "could not start: no such file"},
		"ended by its agent": {with(lived(wire.EndedDeadline, -5),
			func(b *wire.Iperf3) { b.Killed = "time-out" }), late,
			server + "was ended by its agent before the window opened: time-out"},
		"ended too soon without an error": {lived(wire.EndedItself, 7), well,
			server + "ended 7.0 s into the window, before its time"},
		"no record": {nil, well, server + "left no record"},
		"an older agent's": {&wire.Iperf3{Killed: "the window closed 2s ago"},
			&wire.Iperf3{Error: "unable to connect to server: Connection refused"}, ""},
		"an older agent's, killed": {&wire.Iperf3{Killed: "signal: killed"}, &wire.Iperf3{},
			server + "was ended by a signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			tr, records := generated(c.server, c.client)
			v := Judge(tr, 2, records, Scope{Final: true})
			if c.reason == "" && v.Outcome != wire.Accepted ||
				c.reason != "" && (v.Outcome != wire.Failed || !strings.HasPrefix(v.Reason.String(), c.reason)) {
				t.Errorf("got %s %q, want %q", v.Outcome, v.Reason, c.reason)
			}
		})
	}
}

// A flow may end before the window does. What its processes wait for then, the
// network keeps from them.
func TestAShortFlowsGeneratorMayEndLate(t *testing.T) {
	for name, c := range map[string]struct {
		client  *wire.Iperf3
		outcome wire.Outcome
	}{
		"by itself": {lived(wire.EndedItself, 3.1), wire.Accepted},
		"by its deadline": {with(lived(wire.EndedDeadline, 8),
			func(b *wire.Iperf3) { b.Killed = "time-out" }), wire.Accepted},
		"by its deadline, too soon": {with(lived(wire.EndedDeadline, 2),
			func(b *wire.Iperf3) { b.Killed = "time-out" }), wire.Failed},
		"refused by an ended peer": {erred(6, wire.CauseRefused, "Connection refused"), wire.Accepted},
		"too soon":                 {lived(wire.EndedItself, 2), wire.Failed},
		"by a signal": {with(lived(wire.EndedSignal, 6), func(b *wire.Iperf3) { b.Signal = "SIGKILL" }),
			wire.Failed},
		"stopped by a signal": {with(lived(wire.EndedDeadline, 8),
			func(b *wire.Iperf3) { b.StoppedBootNs = new(openNs + 4e9) }), wire.Failed},
	} {
		tr, records := generated(lived(wire.EndedItself, 3.1), c.client)
		tr.Traffic[0].DurationS = 3
		if v := Judge(tr, 2, records, Scope{Final: true}); v.Outcome != c.outcome {
			t.Errorf("%s: %s %q, want %s", name, v.Outcome, v.Reason, c.outcome)
		}
	}
}

func TestTheInitiatorJudgesItsOwnGenerator(t *testing.T) {
	killed := with(lived(wire.EndedSignal, 3), func(b *wire.Iperf3) { b.Signal = "SIGKILL" })
	for _, c := range []struct {
		server, client *wire.Iperf3
		outcome        wire.Outcome
	}{
		{nil, lived(wire.EndedItself, 10.1), wire.Accepted},
		{killed, lived(wire.EndedItself, 10.1), wire.Accepted}, // the controller's to find
		{nil, killed, wire.Failed},
		{nil, nil, wire.Failed},
	} {
		tr, records := generated(c.server, c.client)
		if v := Judge(tr, 2, records, Scope{}); v.Outcome != c.outcome {
			t.Errorf("server %+v, client %+v: %s %q", c.server, c.client, v.Outcome, v.Reason)
		}
	}
}

// An initiator that has a flow's server cannot know whether the client left it.
func TestTheInitiatorLeavesALonelyServerToTheController(t *testing.T) {
	early := lived(wire.EndedItself, 7)
	early.Flow, early.Side = "main", "server"
	tr, records := generated(nil, nil)
	tr.Traffic[0].From, tr.Traffic[0].To = "roadside", "car"
	records = append(records, at("car", 12, early))
	if v := Judge(tr, 2, records, Scope{}); v.Outcome != wire.Accepted {
		t.Errorf("by itself: %s %q", v.Outcome, v.Reason)
	}
	early.Ended, early.Killed = wire.EndedDeadline, "time-out"
	if v := Judge(tr, 2, records, Scope{}); v.Outcome != wire.Failed {
		t.Errorf("by its agent: %s %q", v.Outcome, v.Reason)
	}
}

// The initiator's own judgement gives way to that by all records, which may
// know the cause: the server had been killed.
func TestTheCauseStandsOverItsEffect(t *testing.T) {
	tr, records := generated(with(lived(wire.EndedSignal, -1), func(b *wire.Iperf3) { b.Signal = "SIGKILL" }),
		erred(0.1, wire.CauseRefused, "refused"))
	own := Judge(tr, 2, records, Scope{})
	if own.Outcome != wire.Failed || !strings.Contains(own.Reason.String(), "was refused") {
		t.Errorf("the initiator: %s %q", own.Outcome, own.Reason)
	}
	v := Judge(tr, 2, append([]wire.Record{kept("car", own.Outcome, own.Reason.String())}, records...),
		Scope{Final: true})
	if v.Outcome != wire.Failed ||
		!strings.HasPrefix(v.Reason.String(),
			"generator: on roadside: iperf3's server of flow main was ended by SIGKILL before") {
		t.Errorf("finally: %s %q", v.Outcome, v.Reason)
	}
}

// A flow of the reverse kind has its server where the data comes from; one in
// the background is judged like the others.
func TestEveryFlowsGeneratorIsJudged(t *testing.T) {
	tr, records := generated(lived(wire.EndedItself, 10.1), lived(wire.EndedItself, 10.1))
	tr.Traffic = append(tr.Traffic, wire.Flow{Name: "load", Kind: "iperf3_udp", Background: true, From: "car",
		To: "roadside", Reverse: true, StartS: 2, DurationS: 3})
	add := func(node, side string, b *wire.Iperf3) {
		told := *b
		told.Flow, told.Side = "load", side
		records = append(records, at(node, 12, &told))
	}
	add("car", "server", lived(wire.EndedItself, 5.1))
	if v := Judge(tr, 2, records, Scope{Final: true}); v.Outcome != wire.Failed ||
		!strings.HasPrefix(v.Reason.String(), "generator: on roadside: iperf3's client of flow load left no record") {
		t.Errorf("%s %q", v.Outcome, v.Reason)
	}
	add("roadside", "client", lived(wire.EndedItself, 5.1))
	for _, kind := range []string{"", wire.KindDelay, wire.KindCBR} { // two have no iperf3
		if kind != "" {
			tr.Traffic = append(tr.Traffic, wire.Flow{Name: kind, Kind: kind, From: "car", To: "roadside"})
		}
		if v := Judge(tr, 2, records, Scope{Final: true}); v.Outcome != wire.Accepted {
			t.Errorf("%s: %s %q", kind, v.Outcome, v.Reason)
		}
	}
}

// Where GO does not tell by how much windows differ, a server may end with its
// client by any window that could be.
func TestAServersEndIsPlacedAsGOAllows(t *testing.T) {
	tr, records := generated(lived(wire.EndedItself, 9.8), lived(wire.EndedItself, 10.1))
	for i, r := range records {
		if r.Node == "roadside" && r.Body.Kind() == "window" {
			records[i] = window("roadside", nil)
		}
	}
	if v := Judge(tr, 2, records, Scope{Final: true}); v.Outcome != wire.Accepted {
		t.Errorf("%s %q", v.Outcome, v.Reason)
	}
}

// A flow of a part of a second sends for a whole one, as iperf3 takes no other.
func TestAFlowsTimeIsIperf3s(t *testing.T) {
	tr, records := generated(lived(wire.EndedItself, 3.1), lived(wire.EndedItself, 2.7))
	tr.Traffic[0].DurationS = 2.5
	if v := Judge(tr, 2, records, Scope{Final: true}); v.Outcome != wire.Failed {
		t.Errorf("%s %q", v.Outcome, v.Reason)
	}
}
