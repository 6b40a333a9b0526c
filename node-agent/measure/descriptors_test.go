package measure

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"reflect"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/descriptor"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// program gives a pair's ends at the server to another program, as iperf3 has them, which
// ends when end is called.
func program(t *testing.T, p *pair) (running *descriptor.Program, end func()) {
	t.Helper()
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, conn := range append([]net.Conn{p.control[1]}, p.server...) {
		f, err := conn.(*net.TCPConn).File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c.ExtraFiles = append(c.ExtraFiles, f)
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	running, err = descriptor.Of(c.Process.Pid)
	if err != nil {
		_ = in.Close()
		_ = c.Wait()
		t.Skip(err)
	}
	ended := false
	end = func() {
		if !ended {
			ended = true
			_ = in.Close()
			_ = c.Wait()
		}
	}
	t.Cleanup(func() { end(); _ = running.Close() })
	return running, end
}

// reached is a source that reaches a program's sockets by descriptors.
func reached(t *testing.T, p *pair, of *descriptor.Program) *TCP {
	t.Helper()
	s := source(t, "receiver", p.flow)
	s.ReachBy(func() []*descriptor.Program { return []*descriptor.Program{of} })
	return s
}

// Of the same sockets, the kernel tells the same by either way.
func TestDescriptorsTellWhatSockDiagTells(t *testing.T) {
	p := connect(t, 3, 23900)
	of, _ := program(t, p)
	asked, taken := source(t, "receiver", p.flow), reached(t, p, of)
	for round := range 3 {
		for i, c := range p.client {
			if _, err := c.Write(make([]byte, 1000*(i+1))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(100 * time.Millisecond) // until all is acknowledged, and no timer runs
		for _, way := range []struct {     // in this order: the second reads what the first has found
			name   string
			sample func(s *TCP) ([]wire.Body, error)
		}{
			{"sample", func(s *TCP) ([]wire.Body, error) { return s.Sample(int64(round + 1)) }},
			{"before", func(s *TCP) ([]wire.Body, error) { return s.Before("close") }},
			{"edge", func(s *TCP) ([]wire.Body, error) { return edge(s, "close") }},
		} {
			bodies, err := way.sample(asked)
			want := byStream(t, bodies, err)
			bodies, err = way.sample(taken)
			got := byStream(t, bodies, err)
			if len(want) < 3 || !reflect.DeepEqual(got, want) {
				t.Errorf("round %d, %s: by descriptors %+v, by sock_diag %+v", round, way.name, got, want)
			}
			for i := range p.client {
				if s := got[i]; s == nil || s.BytesReceived != uint64(1000*(i+1)*(round+1)) {
					t.Errorf("round %d, %s: stream %d: %+v", round, way.name, i, s)
				}
			}
		}
	}
}

// sent has a program's socket receive 5,000 bytes, behind the opening edge. end ends the program.
func sent(t *testing.T, p *pair) (s *TCP, end func()) {
	t.Helper()
	of, end := program(t, p)
	s = reached(t, p, of)
	if bodies, err := edge(s, "open"); err != nil || len(bodies) != 1 {
		t.Fatalf("%v, %v", bodies, err)
	}
	if _, err := p.client[0].Write(make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	return s, end
}

// A program's closing a socket is its end: its peer hears of it, and the last count is known.
func TestASocketThatItsProgramClosesIsLetGo(t *testing.T) {
	p := connect(t, 1, 24100)
	s, end := sent(t, p)
	began := time.Now()
	end()
	if err := p.client[0].SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err := p.client[0].Read(make([]byte, 1))
	if os.IsTimeout(err) || err == nil {
		t.Fatalf("the peer hears nothing: %v", err)
	}
	t.Logf("the peer heard of it %s after the program was told to end: %v", time.Since(began), err)
	if err == io.EOF {
		t.Error("what was not read is not told to the peer by a reset")
	}
	bodies, err := edge(s, "close")
	got := byStream(t, bodies, err)
	if len(got) != 1 || got[0] == nil || got[0].State != "CLOSE" || got[0].BytesReceived != 5000 {
		t.Errorf("the last sample is %+v", got[0])
	}
	if bodies, err := edge(s, "close"); err != nil || len(bodies) != 0 {
		t.Errorf("after it: %v, %v", bodies, err)
	}
}

// A socket that its program ends with a reset (SO_LINGER without time, as iperf3's are told
// to) has its last count, too.
func TestASocketThatIsResetHasItsLastCount(t *testing.T) {
	p := connect(t, 1, 24300)
	if err := p.server[0].(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	s, end := sent(t, p)
	end()
	bodies, err := edge(s, "close")
	got := byStream(t, bodies, err)
	if len(got) != 1 || got[0] == nil || got[0].State != "CLOSE" || got[0].BytesReceived != 5000 {
		t.Errorf("the last sample is %+v", got)
	}
}

// Where the kernel is asked for sockets, a reset has taken the counts away by the time of its
// notice. The socket's end is then not known, as the edge has to tell.
func TestANoticeWithoutCountsIsNoEnd(t *testing.T) {
	p := connect(t, 1, 24350)
	s := source(t, "receiver", p.flow)
	if bodies, err := edge(s, "open"); err != nil || len(bodies) != 1 {
		t.Fatalf("%v, %v", bodies, err)
	}
	transfer(t, p.client[0], p.server[0], 5000)
	conn := p.server[0].(*net.TCPConn)
	if err := errors.Join(conn.SetLinger(0), conn.Close()); err != nil {
		t.Fatal(err)
	}
	bodies, missed, err := s.Edge("close", 2)
	if err != nil || len(bodies) == 0 && missed.Unknown != 1 {
		t.Errorf("%v, %+v, %v", bodies, missed, err)
	}
}

// Sockets are looked at often as long as there are any, and no longer.
func TestNothingIsLookedAtWhereThereIsNoSocket(t *testing.T) {
	p := connect(t, 1, 24400)
	of, end := program(t, p)
	s := reached(t, p, of)
	looks := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.looksOften
	}
	if looks() {
		t.Error("it looks before there is a socket")
	}
	for range 2 {
		if _, err := s.Sample(1); err != nil || !looks() {
			t.Fatalf("with a socket it looks: %t, %v", looks(), err)
		}
	}
	end()
	for deadline := time.Now().Add(20 * time.Second); looks(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it goes on looking")
		}
	}
}

// Strangers whom iperf3 has not taken are told at the window's edges where the kernel lists
// sockets, and those that ended before by the kernel's notice.
func TestStrangersAreToldBesideDescriptors(t *testing.T) {
	p := connect(t, 1, 24450)
	of, _ := program(t, p)
	s := reached(t, p, of)
	stranger := func() net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 66)}}
		c, err := d.Dial("tcp4", p.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		at, err := p.listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = at.Close() })
		transfer(t, c, at, 100)
		return at
	}
	strangers := func(name string) (n int) {
		bodies, missed, err := s.Edge(name, 1)
		if err != nil || missed != (Missed{}) {
			t.Fatalf("%s: %+v, %v", name, missed, err)
		}
		for _, b := range bodies {
			if v := b.(*wire.TCPSample); v.Stranger {
				n++
			}
		}
		return n
	}
	if n := strangers("open"); n != 0 {
		t.Errorf("%d strangers before there is one", n)
	}
	at := stranger()
	if n := strangers("close"); n != 1 {
		t.Errorf("%d strangers at an edge, of one", n)
	}
	if err := at.Close(); err != nil {
		t.Fatal(err)
	}
	told := 0
	for deadline := time.Now().Add(20 * time.Second); told == 0 && time.Now().Before(deadline); {
		bodies, err := s.Sample(2)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bodies {
			if v, is := b.(*wire.TCPSample); is && v.Stranger {
				told++
			}
		}
	}
	if told != 1 {
		t.Errorf("its end is told %d times", told)
	}
}

// The last sample of a socket has the congestion control that was last seen.
func TestTheLastSampleHasTheCongestionControlThatWasChosen(t *testing.T) {
	p := connect(t, 1, 24500)
	raw, err := p.client[0].(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	choose := func(name string) {
		err := raw.Control(func(fd uintptr) {
			if err := unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name); err != nil {
				t.Skip(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	choose("cubic")
	s := source(t, "sender", p.flow)
	if bodies, err := edge(s, "open"); err != nil || len(bodies) != 1 {
		t.Fatalf("%v, %v", bodies, err)
	}
	choose("reno")
	if _, err := s.Before("close"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.client[0].Close(), p.server[0].Close()); err != nil {
		t.Fatal(err)
	}
	bodies, err := edge(s, "close")
	got := byStream(t, bodies, err)
	if len(got) != 1 || got[0].State != "CLOSE" || got[0].Congestion != "reno" {
		t.Errorf("it began with cubic, reno was chosen, and its last sample is %+v", got[0])
	}
}
