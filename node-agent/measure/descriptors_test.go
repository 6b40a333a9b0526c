package measure

import (
	"io"
	"net"
	"os"
	"os/exec"
	"reflect"
	"testing"
	"time"

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
		for name, sample := range map[string]func(s *TCP) ([]wire.Body, error){
			"sample": func(s *TCP) ([]wire.Body, error) { return s.Sample(int64(round + 1)) },
			"before": func(s *TCP) ([]wire.Body, error) { return s.Before("close") },
			"edge":   func(s *TCP) ([]wire.Body, error) { return edge(s, "close") },
		} {
			bodies, err := sample(asked)
			want := byStream(t, bodies, err)
			bodies, err = sample(taken)
			got := byStream(t, bodies, err)
			if len(want) < 3 || !reflect.DeepEqual(got, want) {
				t.Errorf("round %d, %s: by descriptors %+v, by sock_diag %+v", round, name, got, want)
			}
			for i := range p.client {
				if s := got[i]; s == nil || s.BytesReceived != uint64(1000*(i+1)*(round+1)) {
					t.Errorf("round %d, %s: stream %d: %+v", round, name, i, s)
				}
			}
		}
	}
}

// A program's closing a socket is its end: its peer hears of it, and the last count is known.
func TestASocketThatItsProgramClosesIsLetGo(t *testing.T) {
	p := connect(t, 1, 24100)
	of, end := program(t, p)
	s := reached(t, p, of)
	if bodies, err := edge(s, "open"); err != nil || len(bodies) != 1 {
		t.Fatalf("%v, %v", bodies, err)
	}
	if _, err := p.client[0].Write(make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
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
