//go:build e2e && guest

//guest:kernel 6.12

package realtime

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"fieldmesh.dev/fieldmesh/rehearsal/hwsim"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
	"fieldmesh.dev/fieldmesh/test/testnet"
	guest "fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

// Two of the kernel's own radios join an ad hoc cell over the emulated air, reach each
// other, and report the signal that the air has; a third, out of reach, hears nobody.
func TestGuestAirBetweenTheKernelsRadios(t *testing.T) {
	guest.Load(t, 0)
	air, err := hwsim.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := air.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg := medium.Config{Seed: 1, Standard: phy.Standard80211g, Channel: 6, LongSlot: true,
		BasicRatesMbps: []float64{1, 2, 5.5, 11},
		Propagation:    propagation.Config{Model: "log_distance", Exponent: 3}}
	var nodes []*testnet.NS
	for i := range 3 {
		mac := net.HardwareAddr{2, 'F', 'M', 0, 0, byte(i + 1)}
		cfg.Nodes = append(cfg.Nodes, medium.NodeConfig{Name: fmt.Sprint(i), MAC: mac.String(), TxPowerDbm: 20,
			NoiseFigureDb: 7, HeightM: 1.5})
		ns := testnet.NewNS(t, "radio")
		handle, err := netns.GetFromName(ns.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := air.NewRadio(mac, int(handle)); err != nil {
			t.Fatal(err)
		}
		if err := handle.Close(); err != nil {
			t.Fatal(err)
		}
		ns.Run(t, "iw", "dev", "wlan0", "set", "type", "ibss")
		ns.Run(t, "ip", "link", "set", "wlan0", "up")
		ns.Run(t, "ip", "addr", "add", fmt.Sprintf("10.77.0.%d/24", i+1), "dev", "wlan0")
		nodes = append(nodes, ns)
	}
	places := []float64{0, 20, 1e5}
	c, err := New(cfg, func(node int, _ time.Duration) (xM, yM float64) { return places[node], 0 }, nil,
		Options{Air: air, NoFIFO: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for _, ns := range nodes {
		ns.Run(t, "iw", "dev", "wlan0", "ibss", "join", "road", "2437", "NOHT", "fixed-freq", "02:11:22:33:44:66")
	}
	f := &field{nodes: nodes}
	replies := 0
	for range 20 { // the cell is joined some time after iw has returned
		if replies += f.ping(t, 0, "10.77.0.2", 1, 2*time.Second); replies == 5 {
			break
		}
	}
	if replies < 5 {
		t.Errorf("%d of 20 echoes came back", replies)
	}
	if lost := f.ping(t, 0, "10.77.0.3", 1, time.Second); lost != 0 {
		t.Error("a node answers from 100 km away")
	}
	var signalDbm float64
	c.do(func() { signalDbm, _ = c.core.Strength(1, 0) })
	stations := nodes[0].Run(t, "iw", "dev", "wlan0", "station", "dump")
	if want := fmt.Sprintf("signal:  \t%d ", int(math.Round(signalDbm))); !strings.Contains(stations, want) ||
		!strings.Contains(stations, "Station 02:46:4d:00:00:02") || strings.Contains(stations, "02:46:4d:00:00:03") {
		t.Errorf("node 0 should hear node 1 alone, with %q:\n%s", want, stations)
	}
	if n := c.Counters(1); n.Delivered < uint64(replies) || n.OnAir[medium.Management]+n.OnAir[medium.ARP] == 0 {
		t.Errorf("the air counts %+v at node 1", n)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	// What comes while a radio joins is for a radio that is on no channel.
	if n := c.Counters(1); air.Refused > n.Delivered {
		t.Errorf("the kernel did not take %d messages, and node 1 got %d frames", air.Refused, n.Delivered)
	}
}
