package trial

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What is followed are the data connections of this node's flows of TCP, as its
// own sockets show them.
func TestTracedFlowsAreThisNodes(t *testing.T) {
	flows := []wire.Flow{
		{Name: "main", Kind: "iperf3_tcp", From: "car", To: "roadside", Port: 5000, ClientPort: 20000, Streams: 6},
		{Name: "back", Kind: "iperf3_tcp", From: "car", To: "roadside", Reverse: true, Port: 5001, ClientPort: 20100,
			Streams: 1},
		{Name: "noise", Kind: "iperf3_udp", From: "car", To: "roadside", Port: 5002, ClientPort: 20200, Streams: 1},
	}
	for node, want := range map[string][]change.TracedFlow{
		"car": {{Port: 5000, ClientPort: 20000, Streams: 6},
			{Port: 5001, ClientPort: 20100, Streams: 1, Server: true}},
		"roadside": {{Port: 5000, ClientPort: 20000, Streams: 6, Server: true},
			{Port: 5001, ClientPort: 20100, Streams: 1}},
		"relay": nil,
	} {
		if got := tracedFlows(flows, node); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", node, got, want)
		}
	}
}

// A kernel that does not tell keeps no trial from being made: a record says so.
func TestATrialGoesOnWithoutTheKernelsEvents(t *testing.T) {
	_, road, plan := pair(t, 1)
	road.deps.Events = func(context.Context) (measure.Events, error) { return nil, errors.New("no ring") }
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	told := road.spool.kinds(k, "event")
	if len(told) != 1 || !strings.Contains(told[0].Body.(*wire.Event).Text, "told from samples: no ring") {
		t.Errorf("told %+v", told)
	}
	if _, err := road.Abort(ctx, plan.Run, wire.AbortRequest{TrialKey: k, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	await(t, "kept", func() bool { return road.kept(k) })
}
