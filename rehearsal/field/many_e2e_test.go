//go:build e2e

package field

import (
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// inNode runs a command in a node's namespace.
func inNode(t *testing.T, f *Field, name string, command ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ip", append([]string{"netns", "exec", f.nodes[f.find(name)].netns},
		command...)...).CombinedOutput()
	return string(out), err
}

func mustInNode(t *testing.T, f *Field, name string, command ...string) {
	t.Helper()
	if out, err := inNode(t, f, name, command...); err != nil {
		t.Fatalf("%s: %v: %v\n%s", name, command, err, out)
	}
}

// listen answers datagrams at a bare node until the test ends.
func listen(t *testing.T, f *Field, name string) net.Addr {
	t.Helper()
	host, _, _ := strings.Cut(f.nodes[f.find(name)].MeshAddress, "/")
	return listenAt(t, f, name, host)
}

func listenAt(t *testing.T, f *Field, name, host string) net.Addr {
	t.Helper()
	var c net.PacketConn
	err := f.thread.in(f.nodes[f.find(name)].netns, func() (err error) {
		c, err = net.ListenPacket("udp4", net.JoinHostPort(host, "0"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	testnet.Echo(t, c)
	return c.LocalAddr()
}

// reach sends a datagram from a node until it is answered, for 2 s at most.
func reach(t *testing.T, f *Field, name string, to net.Addr) error {
	t.Helper()
	var c net.Conn
	err := f.thread.in(f.nodes[f.find(name)].netns, func() (err error) {
		c, err = net.Dial("udp4", to.String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 10 {
		if _, err = c.Write([]byte("hello")); err != nil {
			continue
		}
		if err = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err = c.Read(make([]byte, 100)); err == nil {
			return nil
		}
	}
	return err
}

// reaches tries that again and again, where a node should answer.
func reaches(t *testing.T, f *Field, name string, to net.Addr) (err error) {
	t.Helper()
	for range 10 {
		if err = reach(t, f, name, to); err == nil {
			break
		}
	}
	return err
}

// Nodes without agents forward for each other over the emulated radio; one
// that walks away is out of range, and the records say which frames were lost
// for it.
func TestBareNodesForwardAlongAChain(t *testing.T) {
	cfg := crowd(t, 4)
	cfg.Field.Mobility = &MobilityConfig{Model: "chain", SpacingM: 200,
		Moves: []MoveConfig{{Node: "n003", AtS: 1, XM: 600, YM: 9000, SpeedMps: 3000}}}
	f := mustCreate(t, cfg)
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
			mustInNode(t, f, fmt.Sprintf("n%03d", i), "ip", "route", "add", fmt.Sprintf("10.77.1.%d/32", k+1), "via",
				fmt.Sprintf("10.77.1.%d", via+1), "dev", "wlan0", "onlink")
		}
	}
	trial := wire.Trial{Number: 3, Sender: "n000", Receiver: "n003", Course: wire.Course{Kind: "none"},
		Radio: wire.Radio{Standard: "802.11b", Channel: 1}, DurationS: 2}
	if err := f.Place(t.Context(), trial, 1); err != nil {
		t.Fatal(err)
	}
	echo := listen(t, f, "n003") // 600 m away, where the radios reach 250 m
	if err := reaches(t, f, "n000", echo); err != nil {
		t.Fatalf("over three hops: %v", err)
	}
	if err := f.Drive(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := bootOf(t)
	time.Sleep(5 * time.Second) // 1 s of standing, 3 s on the way
	if reach(t, f, "n000", echo) == nil {
		t.Error("a node 9 km away answers")
	}
	records, err := f.Settle(t.Context(), int64(open), int64(bootOf(t)))
	if err != nil {
		t.Fatal(err)
	}
	lost, counted, far := 0, map[string]*wire.MediumCount{}, 0.0
	for _, r := range records {
		switch b := r.Body.(type) {
		case *wire.Loss:
			if b.Of == "n002" && b.Peer == "n003" && b.Cause == "out_of_range" && strings.HasSuffix(b.Flow, "/udp") &&
				b.RetryLimit {
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
	if c := counted["n002"]; c == nil || c.Lost["out_of_range"] < uint64(lost) || c.Delivered < 2 ||
		c.Attempts < c.Delivered {
		t.Errorf("the last router counted %+v", c)
	}
}

// Nodes on channels of their own neither hear nor disturb the others.
func TestNodesOnTheirOwnChannels(t *testing.T) {
	cfg := crowd(t, 4)
	cfg.Field.Channels = map[string]int{"n002": 11, "n003": 11}
	f := mustCreate(t, cfg)
	if err := f.Place(t.Context(), wire.Trial{Course: wire.Course{Kind: "none"}}, 1); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"n000": "n001", "n002": "n003"} {
		if err := reaches(t, f, from, listen(t, f, to)); err != nil {
			t.Errorf("%s and %s: %v", from, to, err)
		}
	}
	if reach(t, f, "n001", listen(t, f, "n002")) == nil {
		t.Error("channel 6 hears channel 11")
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
		err = reaches(t, f, "n199", listen(t, f, "n198"))
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
