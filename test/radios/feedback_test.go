//go:build guest

//guest:timed

package radios

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/radio"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A routing driver that reads the socket of a real radio's feedback learns in
// less than 100 ms (the median of 20) that a neighbour no longer acknowledges:
// counted from the first frame that is lost.
func TestGuestFeedback(t *testing.T) {
	r := newRig(t, "fox", "owl")
	fox, owl := r.nodes[0], r.nodes[1]
	for i, n := range r.nodes {
		n.joins(t, "02:11:22:33:44:66")
		n.ns.Up(t, "wlan0", fmt.Sprintf("10.77.0.%d/24", i+1))
	}
	peer := macOf(t, owl.ns)
	fox.ns.Run(t, "ip", "neigh", "replace", "10.77.0.2", "lladdr", peer, "dev", "wlan0", "nud", "permanent")
	fox.add(t, "radio_feedback: true\n")
	fox.start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	socket := filepath.Join(fox.dir, "state", "host", "radio.sock")
	heard := make(chan time.Time, 100)
	go func() {
		_ = radio.Failures(ctx, socket, func(mac net.HardwareAddr, _ []byte) {
			if mac.String() == peer {
				heard <- time.Now()
			}
		})
	}()
	var sender *net.UDPConn
	fox.ns.Do(t, func() (err error) { sender, err = net.ListenUDP("udp", nil); return err })
	defer func() { _ = sender.Close() }()
	send := func() {
		if _, err := sender.WriteToUDP([]byte("x"), &net.UDPAddr{IP: net.IPv4(10, 77, 0, 2), Port: 9}); err != nil {
			t.Fatal(err)
		}
	}
	testnet.Await(t, time.Minute, "the two to hear each other, and fox's agent", func() bool {
		send()
		if _, err := os.Stat(socket); err != nil {
			return false
		}
		return len(fox.radio.IW(t, "dev", "wlan0", "station", "dump")) > 0
	})
	owl.radio.Hear(t, 2) // out of reach
	testnet.Await(t, time.Minute, "the driver to read the feedback", func() bool {
		send()
		return len(heard) > 0
	})
	owl.radio.Hear(t, 1)
	// A machine that others use may be late; a driver that is always late is not.
	var median time.Duration
	for range 3 {
		took := make([]time.Duration, 20)
		for i := range took {
			owl.radio.Hear(t, 2)
			time.Sleep(300 * time.Millisecond) // what was sent before is told by now
			for len(heard) > 0 {
				<-heard
			}
			start := time.Now()
			send()
			select {
			case at := <-heard:
				took[i] = at.Sub(start)
			case <-time.After(20 * time.Second):
				t.Fatalf("nothing was heard from a lost frame, after %v", took[:i])
			}
			owl.radio.Hear(t, 1)
		}
		slices.Sort(took)
		median = took[len(took)/2]
		t.Logf("from a lost frame to the driver: median %s, all %v", median, took)
		if median < 100*time.Millisecond {
			return
		}
	}
	t.Errorf("the median of 20 is %s, want less than 100 ms", median)
}

// add gives a node's agent.yaml one more line.
func (n *node) add(t *testing.T, line string) {
	t.Helper()
	path := filepath.Join(n.dir, "agent.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(text, line...), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func macOf(t *testing.T, ns *testnet.NS) (mac string) {
	t.Helper()
	ns.Do(t, func() error {
		i, err := net.InterfaceByName("wlan0")
		if err == nil {
			mac = i.HardwareAddr.String()
		}
		return err
	})
	return mac
}
