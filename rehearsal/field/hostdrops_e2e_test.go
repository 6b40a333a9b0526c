//go:build e2e

package field

import (
	"net"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// relayed is a field of three nodes in a row, the second forwarding between
// the others, with a trial placed.
func relayed(t *testing.T, change func(*Config)) *Field {
	t.Helper()
	cfg := sleeper(t)
	cfg.Nodes = append(cfg.Nodes, Node{Name: "relay", Bare: true, MeshAddress: "10.77.0.3/24"})
	change(&cfg)
	f := mustCreate(t, cfg)
	if f.hosts.watch == nil {
		t.Skipf("single packets cannot be told here: %v", f.takeEvents()[0].Body)
	}
	mustInNode(t, f, "alpha", "ip", "address", "add", "10.77.0.1/24", "dev", radioLink)
	mustInNode(t, f, "beta", "ip", "address", "add", "10.77.0.2/24", "dev", radioLink)
	mustInNode(t, f, "alpha", "ip", "route", "add", "10.78.0.0/16", "via", "10.77.0.3")
	trial := depart(5)
	trial.Radio = wire.Radio{Standard: "802.11b", Channel: 6}
	if err := f.Place(t.Context(), trial, 1); err != nil {
		t.Fatal(err)
	}
	if err := f.Drive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// lostFor are the records of losses for a cause, and each node's count of it.
func lostFor(records []wire.Record, cause string) (told []*wire.Loss, counted map[string]uint64) {
	counted = map[string]uint64{}
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.Loss:
			if b.Cause == cause {
				told = append(told, b)
			}
		case *wire.MediumCount:
			if n := b.Lost[cause]; n > 0 {
				counted[b.Of] = n
			}
		}
	}
	return told, counted
}

// A relay whose route goes while the window is open loses what it should have
// forwarded for lack of a route, and the records say so, packet by packet; a
// sender's own datagrams, refused before they were packets, are in its count.
func TestARouteThatGoesInTheWindowIsTheCause(t *testing.T) {
	f := relayed(t, func(*Config) {})
	mustInNode(t, f, "relay", "ip", "route", "add", "10.78.0.0/16", "via", "10.77.0.2")
	mustInNode(t, f, "beta", "ip", "address", "add", "10.78.0.2/32", "dev", "lo")
	mustInNode(t, f, "beta", "ip", "route", "add", "10.77.0.1/32", "via", "10.77.0.3")
	far := listenAt(t, f, "beta", "10.78.0.2")
	if err := reaches(t, f, "alpha", far); err != nil {
		t.Fatalf("with its route the relay does not forward: %v", err)
	}
	mustInNode(t, f, "relay", "ip", "route", "del", "10.78.0.0/16")
	open := bootOf(t)
	if err := reach(t, f, "alpha", far); err == nil {
		t.Fatal("without its route the relay forwards")
	}
	mustInNode(t, f, "alpha", "ip", "route", "del", "10.78.0.0/16")
	for range 4 {
		if err := f.thread.in(f.nodes[f.find("alpha")].netns, func() error {
			_, err := net.Dial("udp4", far.String())
			return err
		}); err == nil {
			t.Fatal("a datagram has a destination without a route")
		}
	}
	records, err := f.Settle(t.Context(), int64(open), int64(bootOf(t)))
	if err != nil {
		t.Fatal(err)
	}
	told, counted := lostFor(records, "no_route")
	if len(told) == 0 || counted["relay"] != uint64(len(told)) || counted["alpha"] != 4 || len(counted) != 2 {
		t.Fatalf("%d packets told, %v counted: want the relay's, and 4 of alpha's counted only", len(told), counted)
	}
	for _, l := range told {
		if l.Of != "relay" || l.Peer != "" || !strings.HasPrefix(l.Flow, "10.77.0.1:") ||
			!strings.HasSuffix(l.Flow, ">"+far.String()+"/udp") {
			t.Errorf("%+v", l)
		}
	}
	// A new placing begins a new count.
	if err := f.Place(t.Context(), depart(5), 2); err != nil {
		t.Fatal(err)
	}
	if err := f.Drive(t.Context()); err != nil {
		t.Fatal(err)
	}
	open = bootOf(t)
	records, err = f.Settle(t.Context(), int64(open), int64(bootOf(t)))
	if told, counted := lostFor(records, "no_route"); err != nil || len(told)+len(counted) != 0 {
		t.Errorf("of the window before it tells %v, %v (%v)", told, counted, err)
	}
}

// Nobody has the address: ARP is not answered, and the kernel gives the
// datagrams up. On the feedback socket of the sender the same is told.
func TestAnAddressThatNobodyHasIsTheCause(t *testing.T) {
	f := relayed(t, func(c *Config) { c.Field.FrameLost = true })
	next := testnet.Feedback(t, f.nodes[0].feedback)
	open := bootOf(t)
	mustInNode(t, f, "alpha", "bash", "-c", "echo -n lost >/dev/udp/10.77.0.99/4242")
	for {
		line, ok := next()
		if !ok {
			t.Fatal("the feedback socket does not tell")
		}
		if l := line.FrameLost; l != nil && l.Cause == "no_neighbour" {
			if !strings.HasSuffix(l.Flow, ">10.77.0.99:4242/udp") {
				t.Errorf("%+v", l)
			}
			break
		}
	}
	records, err := f.Settle(t.Context(), int64(open), int64(bootOf(t)))
	if err != nil {
		t.Fatal(err)
	}
	if told, counted := lostFor(records, "no_neighbour"); len(told) != 1 || counted["alpha"] != 1 || len(counted) != 1 {
		t.Errorf("told %v, counted %v, want alpha's datagram", told, counted)
	}
}
