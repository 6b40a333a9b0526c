//go:build e2e

package world

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// inNode runs a command in a node's namespace.
func inNode(t *testing.T, f *Field, name string, command ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ip", append([]string{"netns", "exec", f.nodes[f.find(name)].netns}, command...)...).CombinedOutput()
	return string(out), err
}

func mustInNode(t *testing.T, f *Field, name string, command ...string) {
	t.Helper()
	if out, err := inNode(t, f, name, command...); err != nil {
		t.Fatalf("%s: %v: %v\n%s", name, command, err, out)
	}
}

// Nodes without agents forward for each other over the emulated radio; one
// that walks away is out of range, and the records say which frames were lost
// for it.
func TestBareNodesForwardAlongAChain(t *testing.T) {
	cfg := crowd(t, 4)
	cfg.Field.Mobility = &MobilityConfig{Model: "chain", SpacingM: 200,
		Moves: []MoveConfig{{Node: "n003", AtS: 1, XM: 600, YM: 9000, SpeedMps: 3000}}}
	f, err := Create(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	// There and back, hop by hop.
	for i := range 4 {
		for k := range 4 {
			if k == i {
				continue
			}
			via := i + 1
			if k < i {
				via = i - 1
			}
			mustInNode(t, f, fmt.Sprintf("n%03d", i), "ip", "route", "add", fmt.Sprintf("10.77.1.%d/32", k+1), "via", fmt.Sprintf("10.77.1.%d", via+1), "dev", "wlan0", "onlink")
		}
	}
	trial := wire.Trial{Number: 3, Sender: "n000", Receiver: "n003", Course: wire.Course{Kind: "none"},
		Radio: wire.Radio{Standard: "802.11b", Channel: 1}, DurationS: 2}
	if err := f.Place(t.Context(), trial, 1); err != nil {
		t.Fatal(err)
	}
	out, err := inNode(t, f, "n000", "ping", "-c", "3", "-i", "0.2", "-W", "2", "10.77.1.4")
	if err != nil || !strings.Contains(out, "ttl=62") { // two routers on the way
		t.Fatalf("ping over three hops: %v\n%s", err, out)
	}
	if err := f.Drive(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := bootOf(t)
	time.Sleep(5 * time.Second) // 1 s of standing, 3 s on the way
	if out, err := inNode(t, f, "n000", "ping", "-c", "2", "-i", "0.2", "-W", "1", "10.77.1.4"); err == nil {
		t.Errorf("a node 9 km away answers:\n%s", out)
	}
	records, err := f.Settle(t.Context(), int64(open), int64(bootOf(t)))
	if err != nil {
		t.Fatal(err)
	}
	lost, counted, far := 0, map[string]*wire.MediumCount{}, 0.0
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.Loss:
			if b.Of == "n002" && b.Peer == "n003" && b.Cause == "out_of_range" && strings.HasSuffix(b.Flow, "/icmp") && b.RetryLimit {
				lost++
			}
		case *wire.MediumCount:
			counted[b.Of] = b
		case *wire.Truth:
			if b.Of == "n003" {
				far = max(far, b.YM)
			}
		}
		if r.Trial != 3 || r.Node != "field" {
			t.Fatalf("header %+v", r.Header)
		}
	}
	if lost == 0 || far != 9000 {
		t.Errorf("%d frames lost for the node that left; it got %g m far", lost, far)
	}
	if c := counted["n002"]; c == nil || c.Lost["out_of_range"] < uint64(lost) || c.Delivered < 6 || c.Attempts < c.Delivered {
		t.Errorf("the last router counted %+v", c)
	}
}

// Nodes on channels of their own neither hear nor disturb the others.
func TestNodesOnTheirOwnChannels(t *testing.T) {
	cfg := crowd(t, 4)
	cfg.Field.Channels = map[string]int{"n002": 11, "n003": 11}
	f, err := Create(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := f.Place(t.Context(), wire.Trial{Course: wire.Course{Kind: "none"}}, 1); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"n000": "10.77.1.2", "n002": "10.77.1.4"} {
		mustInNode(t, f, from, "ping", "-c", "1", "-W", "2", to)
	}
	if out, err := inNode(t, f, "n000", "ping", "-c", "1", "-W", "1", "10.77.1.3"); err == nil {
		t.Errorf("channel 1 hears channel 11:\n%s", out)
	}
}

// 200 nodes are there at once, and gone without a trace.
func TestTwoHundredNodesComeAndGo(t *testing.T) {
	f, err := Create(t.Context(), crowd(t, 200))
	if err != nil {
		t.Fatal(err)
	}
	err = f.Place(t.Context(), wire.Trial{Course: wire.Course{Kind: "none"}}, 1)
	if err == nil {
		// The grid's far corner, a hop from its neighbour.
		mustInNode(t, f, "n199", "ping", "-c", "1", "-W", "2", "10.77.1.199")
	}
	spaces := f.Info().Netns
	if closing := f.Close(); err != nil || closing != nil {
		t.Fatal(err, closing)
	}
	left, err := exec.CommandContext(t.Context(), "ip", "netns", "list").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range spaces {
		if strings.Contains(string(left), name+"\n") || strings.Contains(string(left), name+" ") {
			t.Fatalf("namespace %s is left", name)
		}
	}
}
