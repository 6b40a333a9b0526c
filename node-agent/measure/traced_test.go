package measure

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// fakeEvents reports what it is given, once.
type fakeEvents struct {
	events []tcp.Event
	lost   uint32
	fail   error
	closed int
}

func (f *fakeEvents) Read(tell func(tcp.Event)) error {
	for _, e := range f.events {
		tell(e)
	}
	f.events = nil
	return f.fail
}
func (f *fakeEvents) Lost() uint32 { return f.lost }
func (f *fakeEvents) Close() error { f.closed++; return nil }

func tracedSource(t *testing.T, e *fakeEvents) *TCP {
	t.Helper()
	s := NewTCP("car", []wire.Flow{{Name: "main", Kind: "iperf3_tcp", From: "car", To: "roadside", Port: 5000,
		ClientPort: 20000, Streams: 2}},
		map[string]netip.Addr{"car": netip.MustParseAddr("10.77.0.1"), "roadside": netip.MustParseAddr("10.77.0.2")})
	s.Trace(e)
	t.Cleanup(func() {
		if err := s.Close(); err != nil || e.closed != 1 {
			t.Errorf("closed %d times, %v", e.closed, err)
		}
	})
	return s
}

func port(t *testing.T, ap string) netip.AddrPort {
	t.Helper()
	p, err := netip.ParseAddrPort(ap)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The kernel's events bear its time and name the flow and stream; those of the
// control connection and of what is not known are left out.
func TestTracedEventsBearTheirOwnTime(t *testing.T) {
	const infinite = infiniteSsthresh
	remote := port(t, "10.77.0.2:5000")
	data, control := port(t, "10.77.0.1:20001"), port(t, "10.77.0.1:40000")
	e := &fakeEvents{events: []tcp.Event{
		{BootNs: 11, Cookie: 7, Kind: tcp.Recovery, Count: 1, CwndSegments: 20, SsthreshSegments: 10, Local: data,
			Remote: remote},
		{BootNs: 12, Cookie: 7, Kind: tcp.Retransmission, Count: 3, CwndSegments: 10, SsthreshSegments: 10, Local: data,
			Remote: remote},
		{BootNs: 13, Cookie: 8, Kind: tcp.Retransmission, Count: 1, Local: control, Remote: remote},
		{BootNs: 13, Cookie: 9, Kind: tcp.Retransmission, Count: 1, Local: data, Remote: port(t, "10.77.0.66:5000")},
		{BootNs: 14, Cookie: 7, Kind: 99, Count: 1, Local: data, Remote: remote},
		{BootNs: 15, Cookie: 7, Kind: tcp.FailedRetransmission, Count: 1, CwndSegments: 1, SsthreshSegments: infinite,
			Local: data, Remote: remote},
	}, lost: 4}
	source := tracedSource(t, e)
	var got []string
	s := NewSampler(&handClock{ns: 500}, time.Second, []Source{source}, func(at int64, b wire.Body) error {
		switch v := b.(type) {
		case *wire.TCPEvent:
			threshold := "none"
			if v.SsthreshSegments != nil {
				threshold = fmt.Sprint(*v.SsthreshSegments)
			}
			window := ""
			if v.CwndBefore != nil {
				window += fmt.Sprintf(", cwnd %d before", *v.CwndBefore)
			}
			if v.CwndSegments != nil {
				window += fmt.Sprintf(", cwnd %d", *v.CwndSegments)
			}
			got = append(got, fmt.Sprintf("%d %s %d %s ×%d by %s%s ssthresh %s, %s to %s", at, v.Flow, *v.Stream,
				v.Event, v.Count, v.Source, window, threshold, v.Local, v.Remote))
		case *wire.Event:
			got = append(got, fmt.Sprintf("%d %s", at, v.Text))
		}
		return nil
	})
	for range 2 { // what was told is told once
		if err := s.sample(s.sources); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"11 main 1 recovery ×1 by tracepoint, cwnd 20 before ssthresh 10, 10.77.0.1:20001 to 10.77.0.2:5000",
		"12 main 1 retransmission ×3 by tracepoint, cwnd 10 ssthresh 10, 10.77.0.1:20001 to 10.77.0.2:5000",
		"15 main 1 failed_retransmission ×1 by tracepoint, cwnd 1 ssthresh none, 10.77.0.1:20001 to 10.77.0.2:5000",
		"500 4 events of TCP found no room on their way from the kernel; its counters have them",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A trace that breaks is closed, reported, and followed by events from samples.
func TestATraceThatBreaksGivesWayToSamples(t *testing.T) {
	e := &fakeEvents{fail: errors.New("it is torn")}
	source := tracedSource(t, e)
	if _, err := source.Sample(1); err == nil || e.closed != 1 {
		t.Errorf("closed %d times, %v", e.closed, err)
	}
	source.mu.Lock()
	defer source.mu.Unlock()
	if source.traced != nil {
		t.Error("it is still asked")
	}
}
