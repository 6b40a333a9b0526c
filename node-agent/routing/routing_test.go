package routing

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/node-agent/routing/manetd"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// dump is babeld 1.12.1's answer on a node with two neighbours, one of which
// does not hear it.
const dump = `BABEL 1.0
version babeld-1.12.1
host a
my-id 02:00:00:ff:fe:00:00:01
ok
add interface wlan0 up true ipv6 fe80::ff:fe00:1 ipv4 10.77.0.1
add neighbour 55d0c0ffee00 address fe80::ff:fe00:2 if wlan0 reach ffff ureach 0000 rxcost 256 txcost 256 cost 256
add neighbour 55d0c0ffee10 address fe80::ff:fe00:3 if wlan0 reach 0001 ureach 0000 rxcost 65535 txcost 65535 cost 65535
add xroute 10.77.0.1/32-::/0 prefix 10.77.0.1/32 from ::/0 metric 0
add route 55d0c0ffee20 prefix 10.77.0.2/32 from ::/0 installed yes id 02:00:00:ff:fe:00:00:02 metric 256 refmetric 0 via fe80::ff:fe00:2 if wlan0
ok
`

func TestBabeldsNeighbours(t *testing.T) {
	got, err := readDump(strings.NewReader(dump))
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	name(got, "wlan0", []netlink.Neigh{{IP: net.ParseIP("10.77.0.2"), HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0,
		2}}})
	if n := got[0]; n.Addr != "10.77.0.2" || !n.Symmetric || *n.Cost != 256 {
		t.Errorf("the first neighbour is %+v", n)
	}
	if n := got[1]; n.Addr != "fe80::ff:fe00:3" || n.Symmetric || n.Cost != nil {
		t.Errorf("the one that does not hear is %+v", n)
	}
	for name, text := range map[string]string{"cut off": dump[:len(dump)-3], "refused": "BABEL 1.0\nok\nbad\n",
		"empty": ""} {
		if got, err := readDump(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// links is as olsrd 0.9.9 answers, with a link as those before 0.9 told it, and
// one of which nothing is told.
const links = `{"pid": 7, "links": [
 {"localIP": "10.77.0.1", "remoteIP": "10.77.0.2", "previousLinkStatus": "LOST", "currentLinkStatus": "SYMMETRIC", "linkCost": 1.500000},
 {"localIP": "10.77.0.1", "remoteIP": "10.77.0.3", "currentLinkStatus": "ASYMMETRIC", "linkCost": 4194304.000000},
 {"localIP": "10.77.0.1", "remoteIP": "10.77.0.4", "linkStatus": "SYMMETRIC", "linkCost": 1536},
 {"localIP": "10.77.0.1", "remoteIP": "10.77.0.5", "currentLinkStatus": "SYMMETRIC"}]}`

func TestOlsrdsLinks(t *testing.T) {
	got, err := parseLinks([]byte(links))
	if err != nil || len(got) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, at := range []int{0, 2} {
		if n := got[at]; !n.Symmetric || n.Cost == nil || *n.Cost != 1.5 {
			t.Errorf("the link to %s is %+v, want an ETX of 1.5", n.Addr, n)
		}
	}
	if n := got[3]; !n.Symmetric || n.Cost != nil {
		t.Errorf("a link without a cost is %+v", n)
	}
	if n := got[1]; n.Symmetric || n.Cost != nil {
		t.Errorf("a broken link is %+v", n)
	}
}

// A carrier's packets hold data and routing, and it does not count which came: that is absent, not 0.
func TestWhatACarrierReceivesIsNotCounted(t *testing.T) {
	for protocol, counted := range map[string]bool{"dsr": false, "dsr-ns2": false, "aodv": true} {
		c := (&own{Target{Protocol: protocol}}).state(manetd.State{}).counts
		if (c.PacketsReceived != nil) != counted || (c.BytesReceived != nil) != counted || c.PacketsSent == nil {
			t.Errorf("%s: received %v packets, %v bytes", protocol, c.PacketsReceived, c.BytesReceived)
		}
	}
}

// What a daemon throws away the field does not see: by its reasons it stands in the record.
func TestWhatTheDaemonDropsIsRecorded(t *testing.T) {
	s := manetd.State{Runner: manetd.Counts{Dropped: map[string]int64{"no route at a relay": 3}}}
	c := (&own{Target{Protocol: "aodv-ns2"}}).state(s).counts
	if len(c.Dropped) != 1 || c.Dropped["no route at a relay"] != 3 {
		t.Errorf("dropped %v", c.Dropped)
	}
}

func TestNoticesBecomeRecords(t *testing.T) {
	n, err := parseNotice([]byte(`{"t_boot_ns":5,"route":{"action":"set","destination":"10.77.0.6/32","next_hops":["10.77.0.2"],"hops":5,"metric":5,"cause":"rrep"}}`))
	if err != nil {
		t.Fatal(err)
	}
	r, ok := bodyOf(n).(*wire.RouteChange)
	if !ok || r.AtBootNs != 5 || r.Action != "set" || *r.Hops != 5 || r.NextHops[0] != "10.77.0.2" {
		t.Errorf("record %+v", r)
	}
	n, err = parseNotice([]byte(`{"t_boot_ns":6,"report":{"kind":"neighbor_lost","addr":"10.77.0.2","value":0}}`))
	if e, ok := bodyOf(n).(*wire.RoutingEvent); err != nil || !ok || e.Value != nil || e.Report != "neighbor_lost" {
		t.Errorf("record %+v, %v", e, err)
	}
	if n, err := parseNotice([]byte(`{"t_boot_ns":0}`)); err != nil || bodyOf(n) != nil {
		t.Error("a notice of nothing is a record")
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(dump))
	f.Add([]byte(links))
	f.Add([]byte(`{"report":{"kind":"discovery_us","value":1}}`))
	fuzz.Run(f, func(t *testing.T, text []byte) {
		if got, err := readDump(strings.NewReader(string(text))); err == nil && got == nil {
			t.Error("no neighbours and no error")
		}
		if got, err := parseLinks(text); err == nil && got == nil {
			t.Error("no links and no error")
		}
		if n, err := parseNotice(text); err == nil {
			bodyOf(n)
		}
	})
}

// hung is a daemon that stands still.
type hung struct{ driver }

func (hung) ask(ctx context.Context) (state, error) { <-ctx.Done(); return state{}, ctx.Err() }

// A daemon that does not answer holds no sample up: GPS and sockets are of the
// same beat. That it has not answered is told.
func TestAHungDaemonHoldsNoSampleUp(t *testing.T) {
	run, stop := context.WithCancel(t.Context())
	w := &Watch{driver: hung{}, run: run, stop: stop}
	for i := range 3 {
		begun := time.Now()
		if _, err := w.Sample(int64(i+1) * 1e8); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > askTimeout/4 {
			t.Errorf("sample %d took %v", i, took)
		}
	}
	stop()
	w.ended.Wait()
	if _, err := w.Sample(4e8); err == nil {
		t.Error("it is not told that the daemon has not answered")
	}
}

// Who follows a daemon's routes ends with the daemon, and the watch ends with what follows its routes: no change would
// be recorded from then on.
func TestADaemonAndItsRoutesAreFollowedTogether(t *testing.T) {
	waits := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	ends := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	died := errors.New("it died")
	if err := alongside(t.Context(), ends(errRoutes), waits); !errors.Is(err, errRoutes) {
		t.Errorf("when the routes end: %v", err)
	}
	if err := alongside(t.Context(), waits, ends(died)); !errors.Is(err, died) {
		t.Errorf("when the daemon ends: %v", err)
	}
	for cause, want := range map[error]string{
		errRoutes: "the routes of routing daemon babeld are not followed any more",
		died:      "routing daemon babeld has gone",
	} {
		told := make(chan error, 1)
		w, err := begin(t.Context(), Target{Protocol: "babeld", BootNs: func() int64 { return 0 }}, ended{cause},
			func(err error) { told <- err })
		if err != nil {
			t.Fatal(err)
		}
		if got := <-told; !strings.HasPrefix(got.Error(), want) || !errors.Is(got, cause) {
			t.Errorf("told %q, want %q", got, want)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// ended is a driver whose watch ends at once.
type ended struct{ err error }

func (e ended) follow(_ context.Context, begun func(*state), _ func(wire.Body)) error {
	begun(&state{})
	return e.err
}

func (ended) ask(context.Context) (state, error) { return state{}, nil }

// scripted is a daemon of ours that changes its routes around the moment at which it is asked for them.
type scripted struct {
	listener  *net.UnixListener
	followers chan net.Conn
}

func (s *scripted) serve() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		line, _ := bufio.NewReader(conn).ReadString('\n')
		set := func(at int, destination, next string) {
			select {
			case f := <-s.followers: // without one nobody hears of it
				_, _ = fmt.Fprintf(f, `{"t_boot_ns":%d,"route":{"action":"set","destination":%q,"next_hops":[%q],`+
					`"hops":1,"metric":1}}`+"\n", at, destination, next)
				s.followers <- f
			default:
			}
		}
		if line == "follow\n" {
			_, _ = fmt.Fprintln(conn, `{"t_boot_ns":0}`)
			s.followers <- conn
			continue
		}
		set(3, "10.77.0.3/32", "10.77.0.2")
		set(4, "10.77.0.3/32", "10.77.0.3")
		_, _ = fmt.Fprintln(conn, `{"t_boot_ns":5,"routes":[{"destination":"10.77.0.3/32","next_hop":"10.77.0.3",`+
			`"hops":1,"metric":1}]}`)
		set(6, "10.77.0.4/32", "10.77.0.4")
		set(7, "10.77.0.3/32", "10.77.0.4")
		_ = conn.Close()
	}
}

// What a daemon changes as its watch begins is told, once, and dated in the order in which it happened.
func TestNoChangeEscapesTheBeginOfAWatch(t *testing.T) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	s := &scripted{listener: l, followers: make(chan net.Conn, 1)}
	go s.serve()
	w, err := Begin(t.Context(), Target{Protocol: "dsdv", Socket: l.Addr().String(), BootNs: func() int64 { return 8 }},
		func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"present 10.77.0.3/32 [10.77.0.3]", "set 10.77.0.4/32 [10.77.0.4]", "set 10.77.0.3/32 [10.77.0.4]"}
	var got []string
	var last int64
	for until := time.Now().Add(5 * time.Second); len(got) < len(want) && time.Now().Before(until); {
		w.mu.Lock()
		pending := w.pending
		w.pending = nil
		w.mu.Unlock()
		for _, b := range pending {
			c := b.(*wire.RouteChange)
			got = append(got, fmt.Sprint(c.Action, " ", c.Destination, " ", c.NextHops))
			if c.AtBootNs < last {
				t.Errorf("%s is of %d, and what was told before it of %d", got[len(got)-1], c.AtBootNs, last)
			}
			last = c.AtBootNs
		}
		time.Sleep(time.Millisecond)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// A kernel tells no daemon's clock: what its list of routes had is left out by what it says.
func TestWhatAWatchHasIsToldOnce(t *testing.T) {
	set := func(to, next string) wire.Body {
		return &wire.RouteChange{Action: "set", AtBootNs: 2, Destination: to, NextHops: []string{next}}
	}
	gone := func(to string) wire.Body { return &wire.RouteChange{Action: "delete", AtBootNs: 2, Destination: to} }
	w := &Watch{}
	w.tell(set("a", "x"))
	w.tell(gone("b"))
	w.tell(set("c", "y"))
	w.present(state{at: 1, routes: []wire.RouteChange{{Destination: "a", NextHops: []string{"x"}},
		{Destination: "c", NextHops: []string{"z"}}}})
	w.tell(gone("a"))
	w.tell(gone("a"))
	w.tell(set("a", "x"))
	w.tell(&wire.RoutingEvent{Report: "neighbor_lost"})
	var got []string
	for _, b := range w.pending {
		if c, ok := b.(*wire.RouteChange); ok {
			got = append(got, strings.TrimSpace(c.Action+" "+c.Destination+" "+strings.Join(c.NextHops, " ")))
		}
	}
	want := []string{"present a x", "present c z", "set c y", "delete a", "set a x"}
	if !slices.Equal(got, want) || len(w.pending) != len(want)+1 {
		t.Errorf("told %q, want %q", got, want)
	}
}
