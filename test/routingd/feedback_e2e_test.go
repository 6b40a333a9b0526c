//go:build e2e

package routingd

import (
	"encoding/json"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A radio gives up a frame of a flow that has just begun. Its relay has sent the
// flow's RREP that way a moment ago, and does not take the frame for it: AODV would
// refuse the neighbour's requests for seconds.
func TestAFailedFrameOfANewFlowBlacklistsNobody(t *testing.T) {
	a := newAir(t, 3, chain(3)...)
	socket := filepath.Join(testnet.Folder(t), "radio")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	route(t, a.nodes[0], "aodv")
	relay := route(t, a.nodes[1], "aodv", "--feedback", socket)
	route(t, a.nodes[2], "aodv")
	radio, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer radio.Close()
	tell := json.NewEncoder(radio)
	if err := tell.Encode(wire.Feedback{Caps: &wire.Caps{}}); err != nil {
		t.Fatal(err)
	}
	var sender *net.Interface
	a.nodes[0].Do(t, func() (err error) { sender, err = net.InterfaceByName("wlan0"); return err })

	to := echo(t, a.nodes[2], addr(2))
	if ask(t, a.nodes[0], to, 1, patience) != 1 {
		t.Fatal("nothing came through")
	}
	leads := func(s manet.State) bool {
		return slices.ContainsFunc(s.Routes, func(r manet.Route) bool {
			return r.Destination.Addr().String() == addr(0)
		})
	}
	if s, err := relay.state(); err != nil || !leads(s.State) {
		t.Fatalf("the relay has no way back: %+v, %v", s, err)
	}
	if err := tell.Encode(wire.Feedback{TxFailed: &wire.TxFailed{Peer: sender.HardwareAddr.String()}}); err != nil {
		t.Fatal(err)
	}
	testnet.Await(t, patience, "the relay takes the link for broken", func() bool {
		s, err := relay.state()
		return err == nil && !leads(s.State)
	})
	if s, err := relay.state(); err != nil || s.Counters["blacklisted"] != 0 {
		t.Errorf("the relay refuses its neighbour: %v, %v", s.Counters, err)
	}
}

// A frame that the kernel's neighbour table reports as lost breaks a route of DSDV and of OLSR, and without link
// feedback it does not.
func TestWithoutLinkFeedbackALostFrameBreaksNothing(t *testing.T) {
	for _, protocol := range []string{"dsdv", "olsr"} {
		for name, flags := range map[string][]string{"with": nil, "without": {"--no-link-feedback"}} {
			t.Run(protocol+" "+name, func(t *testing.T) {
				lostFrame(t, protocol, flags)
			})
		}
	}
}

func lostFrame(t *testing.T, protocol string, flags []string) {
	a := newAir(t, 3, chain(3)...)
	relay := a.everywhere(t, protocol, append(flags, "--hello", "5s")...)[1]
	leads := func() bool {
		s, err := relay.state()
		return err == nil && slices.ContainsFunc(s.Routes, func(r manet.Route) bool {
			return r.Destination.Addr().String() == addr(0)
		})
	}
	testnet.Await(t, patience, "the relay has a route to the first node", leads)
	fail := func() { // the kernel reports one that was reachable
		for _, state := range []string{"reachable", "failed"} {
			a.nodes[1].Run(t, "ip", "neigh", "replace", addr(0), "lladdr", "02:00:00:00:00:01", "dev", "wlan0",
				"nud", state)
		}
	}
	fail()
	if len(flags) == 0 {
		testnet.Await(t, patience, "the route is broken", func() bool { return !leads() })
		return
	}
	for range 10 {
		fail()
		time.Sleep(100 * time.Millisecond)
		if !leads() {
			t.Fatal("the route is broken")
		}
	}
	if s, err := relay.state(); err != nil || s.Feedback {
		t.Errorf("the daemon says that lost frames are told: %v, %v", s.Feedback, err)
	}
}
