package radio

import (
	"bufio"
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// failingRadio gives up one more frame each time that it is asked.
type failingRadio struct {
	fakeRadio
	asked *atomic.Uint64
}

func (f failingRadio) Stations(int) ([]nl80211.Station, error) {
	return []nl80211.Station{{MAC: "02:00:00:00:00:02", TxFailed: new(f.asked.Add(1))}}, nil
}

// serveFailing serves a failing radio at a socket until the test ends.
func serveFailing(t *testing.T) (socket string) {
	t.Helper()
	s := NewServer("wlan0")
	s.kernel.open = func() (reader, error) { return failingRadio{asked: &atomic.Uint64{}}, nil }
	s.watch = func(ctx context.Context, _ func(nl80211.Event)) error { <-ctx.Done(); return ctx.Err() }
	socket = filepath.Join(t.TempDir(), "radio.sock")
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(t.Context(), socket) }()
	t.Cleanup(func() { // the context has ended
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	return socket
}

// A reader that wishes for no stations has the events alone.
func TestServerHeedsWishes(t *testing.T) {
	socket := serveFailing(t)
	var conn net.Conn
	testnet.Await(t, 10*time.Second, "it listens", func() (ok bool) {
		var err error
		conn, err = net.Dial("unix", socket)
		return err == nil
	})
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	next := func() (f wire.Feedback) {
		if !lines.Scan() {
			t.Fatalf("the socket ended: %v", lines.Err())
		}
		f, err := parse(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for next().Station == nil { // as it is without a wish
	}
	wish(conn, 0)
	failures := 0
	for range 1000 { // some lines may be on their way
		switch f := next(); {
		case f.Station != nil:
			failures = 0
		case f.TxFailed != nil:
			failures++
		}
		if failures == 3*tellEvery {
			break
		}
	}
	if failures < 3*tellEvery {
		t.Error("stations are told to who does not wish for them")
	}
	wish(conn, 10)
	for next().Station == nil {
	}
}

// A reader of the socket learns what the radio is, what it gave up and who
// came, whichever driver is behind it.
func TestServerTellsWhatAMediumWould(t *testing.T) {
	socket := serveFailing(t)
	heard := make(chan net.HardwareAddr, 1)
	go func() {
		_ = Failures(t.Context(), socket, func(peer net.HardwareAddr, _ []byte) {
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
	go func() { _ = client.Run(t.Context()) }()
	for caps, err := client.Caps(); ; caps, err = client.Caps() {
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		if caps.Driver != "nl80211" || caps.BSSID == "" {
			t.Errorf("caps %+v", caps)
		}
		break
	}
}
