package radio

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// failingRadio gives up one more frame each time that it is asked.
type failingRadio struct {
	fakeRadio
	asked *atomic.Uint64
}

func (f failingRadio) Stations(int) ([]nl80211.Station, error) {
	return []nl80211.Station{{MAC: "02:00:00:00:00:02", TxFailed: ptr(f.asked.Add(1))}}, nil
}

// A reader of the socket learns what the radio is, what it gave up and who
// came, whichever driver is behind it.
func TestServerTellsWhatAMediumWould(t *testing.T) {
	s := NewServer("wlan0")
	s.kernel.open = func() (reader, error) { return failingRadio{asked: &atomic.Uint64{}}, nil }
	s.watch = func(ctx context.Context, _ func(nl80211.Event)) error { <-ctx.Done(); return ctx.Err() }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	socket := filepath.Join(t.TempDir(), "radio.sock")
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, socket) }()
	heard := make(chan net.HardwareAddr, 1)
	go func() {
		_ = Failures(ctx, socket, func(peer net.HardwareAddr) {
			select {
			case heard <- peer:
			default:
			}
		})
	}()
	if peer := <-heard; peer.String() != "02:00:00:00:00:02" {
		t.Errorf("a frame to %s was given up", peer)
	}
	client := New(socket)
	go func() { _ = client.Run(ctx) }()
	for caps, ok := client.Caps(); ; caps, ok = client.Caps() {
		if !ok {
			time.Sleep(time.Millisecond)
			continue
		}
		if caps.Driver != "nl80211" || caps.BSSID == "" {
			t.Errorf("caps %+v", caps)
		}
		break
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}
