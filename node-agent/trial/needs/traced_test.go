package needs

import (
	"reflect"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
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
		if got := TracedFlows(flows, node); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", node, got, want)
		}
	}
}
