//go:build e2e

package meshes

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The mobile chain of Oo and Othman: six nodes A to F, a flow from A to F; C
// starts moving at 50 s, D at 100 s, both turn back at 250 s. Here it takes a
// twentieth of the time at twenty times their 10 m/s. Where they go is not said:
// here 200 m across the chain, which takes one second, where they wait.
const (
	scriptShare = 20
	cLeaves     = 50 * time.Second / scriptShare
	dLeaves     = 100 * time.Second / scriptShare
	turnBack    = 250 * time.Second / scriptShare
	moveMps     = 10 * scriptShare
	asideM      = 200
	moveTakes   = asideM * time.Second / moveMps
)

// TestChainMoves has one protocol of either kind; TestSoakChainMoves all.
func TestChainMoves(t *testing.T) {
	for _, name := range []string{"aodv", "babeld"} {
		t.Run(name, func(t *testing.T) { moveChain(t, contenderOf(t, name)) })
	}
}

func TestSoakChainMoves(t *testing.T) {
	testnet.NeedSet(t, "FIELDMESH_SOAK", "takes long")
	for _, c := range contenders() {
		t.Run(c.name, func(t *testing.T) { moveChain(t, c) })
	}
}

// play is a script that is begun while the field is there.
type play struct {
	paths []mobility.Path
	begun atomic.Bool
	at0   atomic.Int64 // when it was begun, by the field's clock
	now   atomic.Int64 // the newest that the field's clock was asked for
}

// chainPlay has C and D move as above, and the others stand.
func chainPlay(t *testing.T) *play {
	t.Helper()
	p := &play{}
	for i, leaves := range []time.Duration{0, 0, cLeaves, dLeaves, 0, 0} {
		var moves []mobility.Move
		if leaves > 0 {
			moves = []mobility.Move{{At: leaves, XM: 100 * float64(i), YM: asideM, SpeedMps: moveMps},
				{At: turnBack, XM: 100 * float64(i), SpeedMps: moveMps}}
		}
		path, err := mobility.Script(100*float64(i), 0, moves...)
		if err != nil {
			t.Fatal(err)
		}
		p.paths = append(p.paths, path)
	}
	return p
}

func (p *play) locate(node int, at time.Duration) (xM, yM float64) {
	p.now.Store(int64(at))
	where := p.paths[node].At(p.time())
	return where.XM, where.YM
}

func (p *play) begin() { p.at0.Store(p.now.Load()); p.begun.Store(true) }

// time is the script's, 0 until it is begun.
func (p *play) time() time.Duration {
	if !p.begun.Load() {
		return 0
	}
	return time.Duration(p.now.Load() - p.at0.Load())
}

// arrivals are moments at which data came.
type arrivals struct {
	mu sync.Mutex
	at []time.Duration
}

func (a *arrivals) came(at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = append(a.at, at)
}

// between counts those within a time, and longest is the longest time without
// one up to the newest.
func (a *arrivals) between(from, to time.Duration) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.at {
		if at >= from && at < to {
			n++
		}
	}
	return n
}

func (a *arrivals) longest() (from, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := 1; i < len(a.at); i++ {
		if gap := a.at[i] - a.at[i-1]; gap > took {
			from, took = a.at[i-1], gap
		}
	}
	return from, took
}

// moveChain: data goes over the five hops; none can while C and D are away; it
// does again, over five hops and in the same TCP connection, when both are back.
func moveChain(t *testing.T, c contender) {
	t.Helper()
	p := chainPlay(t)
	f := newField(t, 6, 11, p.locate)
	f.begin(t, c)
	if c.proactive {
		f.awaitRoutes(t, c, 0, 5)
	}
	f.awaitWay(t, c, 0, 5, 5)
	probes, stream := f.probes(t, p), f.stream(t, p)
	wait(t, time.Minute, func() error { return came(probes, stream, 0) })
	p.begin()
	// Both are away and not yet on their way back: no two of the others hear each other over the gap.
	apart, back := dLeaves+moveTakes, turnBack+moveTakes
	wait(t, 3*time.Minute, func() error { return came(probes, stream, back) })
	if n, m := probes.between(apart, turnBack), stream.between(apart, turnBack); n+m > 0 {
		t.Errorf("with C and D away %d probes and %d times TCP's data arrived", n, m)
	}
	_, hops := f.awaitWay(t, c, 0, 5, 5)
	probesFrom, probesOut := probes.longest()
	streamFrom, streamOut := stream.longest()
	t.Logf("%s: C and D were away from %v to %v; probes came none for %.1f s from %.1f s, TCP's data for %.1f s from "+
		"%.1f s; then %d hops",
		c.name, cLeaves, back, probesOut.Seconds(), probesFrom.Seconds(), streamOut.Seconds(), streamFrom.Seconds(),
		hops)
}

// came says what has not arrived since a moment of the script.
func came(probes, stream *arrivals, since time.Duration) error {
	n, m := probes.between(since, 1<<62), stream.between(since, 1<<62)
	if n == 0 || m == 0 {
		return fmt.Errorf("since %v %d probes have arrived, and %d times TCP's data", since, n, m)
	}
	return nil
}

// probes sends ten packets a second from the first node to the last until the
// test ends.
func (f *field) probes(t *testing.T, p *play) *arrivals {
	t.Helper()
	u, out := f.udp(t, 0, len(f.spaces)-1), &arrivals{}
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			if _, err := u.client.Write([]byte("probe")); errors.Is(err, net.ErrClosed) {
				return // refused, or without a route: the next one may pass
			}
		}
	}()
	go func() {
		buf := make([]byte, 64)
		for {
			if _, err := u.server.Read(buf); err != nil {
				return
			}
			out.came(p.time())
		}
	}()
	return out
}

// stream sends over one TCP connection from the first node to the last until
// the test ends, with little in flight.
func (f *field) stream(t *testing.T, p *play) *arrivals {
	t.Helper()
	last := len(f.spaces) - 1
	var listener *net.TCPListener
	f.spaces[last].Do(t, func() (err error) {
		listener, err = net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(address(last))})
		return err
	})
	t.Cleanup(func() { _ = listener.Close() })
	var client *net.TCPConn
	f.spaces[0].Do(t, func() (err error) {
		if client, err = net.DialTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(address(0))},
			listener.Addr().(*net.TCPAddr)); err != nil {
			return err
		}
		return client.SetWriteBuffer(8 << 10)
	})
	t.Cleanup(func() { _ = client.Close() })
	server, err := listener.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	out := &arrivals{}
	go func() {
		for data := make([]byte, 1000); ; {
			if _, err := client.Write(data); err != nil {
				return // closed
			}
		}
	}()
	go func() {
		for buf := make([]byte, 1<<16); ; {
			if _, err := server.Read(buf); err != nil {
				return // closed
			}
			out.came(p.time())
		}
	}()
	return out
}
