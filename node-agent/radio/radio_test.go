package radio

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, messages ...wire.Feedback) {
	t.Helper()
	enc := json.NewEncoder(conn)
	for _, m := range messages {
		if err := enc.Encode(m); err != nil {
			t.Fatal(err)
		}
	}
}

func station(peer string, dbm float64) wire.Feedback {
	return wire.Feedback{Station: &wire.Station{Peer: peer, SignalDbm: &dbm}}
}

func TestClientFollowsAndReconnects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "radio.sock")
	c := New(path)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }() // before there is a server
	l := listen(t, path)
	conn := accept(t, l)
	send(t, conn, wire.Feedback{Caps: &wire.Caps{Driver: "medium", Channel: 6}},
		station("02:00:00:00:00:03", -50), station("02:00:00:00:00:02", -60), station("02:00:00:00:00:02", -61),
		wire.Feedback{TxFailed: &wire.TxFailed{Peer: "02:00:00:00:00:02"}},
		wire.Feedback{Survey: &wire.Survey{Channel: 6}, Dropped: 3})
	fmt.Fprintln(conn, "this is no JSON")
	testnet.Await(t, 10*time.Second, "the unreadable line is counted", func() bool { return c.Dropped() == 4 })
	if caps, err := c.Caps(); err != nil || caps.Driver != "medium" || caps.Channel != 6 {
		t.Errorf("caps %+v %v", caps, err)
	}
	got, err := c.Sample(0)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d samples, %v", len(got), err)
	}
	first, second := got[0].(*wire.Station), got[1].(*wire.Station)
	if first.Peer != "02:00:00:00:00:02" || *first.SignalDbm != -61 || second.Peer != "02:00:00:00:00:03" ||
		got[2].(*wire.Survey).Channel != 6 {
		t.Errorf("samples %+v %+v %+v", first, second, got[2])
	}
	if again, _ := c.Sample(1); len(again) != 0 {
		t.Errorf("the same news were given twice: %v", again)
	}
	send(t, conn, station("02:00:00:00:00:02", -62))
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	testnet.Await(t, 10*time.Second, "a closed connection makes the radio unknown", func() bool {
		_, err := c.Caps()
		return err != nil && strings.Contains(err.Error(), "nothing answers on the radio feedback socket "+path)
	})
	if stale, _ := c.Sample(2); len(stale) != 0 {
		t.Errorf("samples of a radio that is gone: %v", stale)
	}
	conn = accept(t, l)
	send(t, conn, wire.Feedback{Caps: &wire.Caps{Driver: "medium", Channel: 11}, Dropped: 2})
	testnet.Await(t, 10*time.Second, "the client reconnects", func() bool {
		caps, err := c.Caps()
		return err == nil && caps.Channel == 11
	})
	if c.Dropped() != 6 {
		t.Errorf("dropped %d over two connections, want 6", c.Dropped())
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

// wished is the next wish of a client.
func wished(t *testing.T, lines *bufio.Scanner) int {
	t.Helper()
	var w wire.FeedbackWish
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &w) != nil {
		t.Fatalf("no wish: %q, %v", lines.Text(), lines.Err())
	}
	return w.SampleHz
}

// A client has the server tell no more than will be asked for, and gives nothing
// that it was told for another trial.
func TestClientWishesForWhatWillBeSampled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "radio.sock")
	l := listen(t, path)
	c := New(path)
	go func() { _ = c.Run(t.Context()) }()
	conn := accept(t, l)
	wishes := bufio.NewScanner(conn)
	if hz := wished(t, wishes); hz != 0 {
		t.Errorf("before anything is sampled %d Hz were wished for", hz)
	}
	for interval, want := range map[time.Duration]int{100 * time.Millisecond: 10, 500 * time.Millisecond: 4,
		time.Second: 2, time.Minute: 1, 0: 0} {
		c.Pace(interval)
		if hz := wished(t, wishes); hz != want {
			t.Errorf("sampled every %v, %d Hz were wished for, want %d", interval, hz, want)
		}
	}
	send(t, conn, station("02:00:00:00:00:02", -60), wire.Feedback{Caps: &wire.Caps{Channel: 6}})
	testnet.Await(t, 10*time.Second, "the station is known", func() bool { _, err := c.Caps(); return err == nil })
	c.Pace(time.Second)
	if old, err := c.Sample(0); len(old) > 0 || err != nil {
		t.Errorf("what is old was given: %v, %v", old, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if hz := wished(t, bufio.NewScanner(accept(t, l))); hz != 2 {
		t.Errorf("in a new connection %d Hz were wished for", hz)
	}
}

//attack:local a program in the radio's place, which reports neighbours without an end | they are bounded, and the
//attack:and rest counted
func TestPeersAreBounded(t *testing.T) {
	c := New("")
	var text strings.Builder
	for i := range maxPeers + 5 {
		fmt.Fprintf(&text, `{"station":{"peer":"p%d"}}`+"\n", i)
	}
	c.read(strings.NewReader(text.String()))
	got, err := c.Sample(0)
	if err != nil || len(got) != maxPeers || c.Dropped() != 5 {
		t.Errorf("%d stations, %d dropped, %v", len(got), c.Dropped(), err)
	}
}

// A station's line is decoded when it is sampled, whoever wrote it and however.
func TestStationsAreDecodedWhenSampled(t *testing.T) {
	c := New("")
	c.read(strings.NewReader(`{"station":{"peer":"a","signal_dbm":-50}}
{"dropped":2,"station":{"signal_dbm":-61,"peer":"b"}}
{"station":{"peer":"a","signal_dbm":-51},"dropped":3}
{"station":{"peer":"c","signal_dbm":"loud"}}
`))
	if n := c.Dropped(); n != 2 {
		t.Errorf("%d dropped before the sample, want 2", n)
	}
	got, err := c.Sample(0)
	if err != nil || len(got) != 2 || *got[0].(*wire.Station).SignalDbm != -51 || *got[1].(*wire.Station).SignalDbm !=
		-61 {
		t.Errorf("samples %v, %v", got, err)
	}
	if n := c.Dropped(); n != 4 {
		t.Errorf("%d dropped, want 3 by the server and the unreadable line", n)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"caps":{"driver":"medium","rates_mbps":[6,54]}}` + "\n" +
		`{"station":{"peer":"02:00:00:00:00:01","signal_dbm":-60.5}}`))
	f.Add([]byte(`{"survey":{"channel":6},"dropped":18446744073709551615}`))
	f.Add([]byte(`{"station":{}}` + "\nnull\n[]\n{}"))
	fuzz.Run(f, func(t *testing.T, data []byte) {
		c := New("")
		c.read(strings.NewReader(string(data)))
		got, err := c.Sample(0)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range got {
			if s, ok := b.(*wire.Station); ok && s.Peer == "" {
				t.Fatal("a station without a peer")
			}
		}
	})
}
