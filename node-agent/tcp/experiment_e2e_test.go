//go:build e2e || guest

package tcp

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

const (
	senderAddr   = "10.55.0.1"
	receiverAddr = "10.55.0.2"
	mss          = 1000
)

// States of a connection's congestion control (enum tcp_ca_state of linux/tcp.h).
const (
	stateOpen, stateDisorder, stateCWR, stateRecovery, stateLoss = 0, 1, 2, 3, 4
)

// experiment is one connection over a path, its losses chosen by the test.
type experiment struct {
	congestion string // the kernel's name
	sack       bool
	segments   int // that are sent in all
	path       testnet.PathConfig
	sysctls    map[string]string // of the sender's namespace
	receiver   map[string]string // of the receiver's
	patience   time.Duration
	before     func(cookie uint64) // once the namespace is there
}

// point is the sender as it was after an ACK.
type point struct {
	at                                time.Time
	ack, highest                      uint32 // in segments
	cwnd, ssthresh, state             uint32
	unacked, lost, retrans, sacked    uint32
	rtos, rttUs, backoff, retransmits uint32
	mss                               uint32
	pacing                            uint64 // B/s
}

func (p point) String() string {
	return fmt.Sprintf("ack %d cwnd %d ssthresh %d state %d unacked %d sacked %d lost %d retrans %d",
		p.ack, p.cwnd, p.ssthresh, p.state, p.unacked, p.sacked, p.lost, p.retrans)
}

// trace is what an experiment gave.
type trace struct {
	points []point
	sent   []testnet.Segment // as the path saw them, lost ones too
}

// run makes the experiment: everything that the papers' TCPs did not have is
// off, every segment is acknowledged at once, and the timer is out of the way.
func (x experiment) run(t *testing.T) trace {
	t.Helper()
	testnet.Need(t)
	a, b := testnet.NewNS(t, "snd"), testnet.NewNS(t, "rcv")
	setSysctls(t, a, classicSysctls(x.sack))
	setSysctls(t, b, classicSysctls(x.sack))
	setSysctls(t, a, map[string]string{"tcp_wmem": "4096 8388608 8388608", "tcp_rto_min_us": "1000000"})
	setSysctls(t, b, map[string]string{"tcp_rmem": "4096 8388608 8388608", "tcp_moderate_rcvbuf": "0"})
	setSysctls(t, a, x.sysctls)
	setSysctls(t, b, x.receiver)
	if x.before != nil {
		a.Do(t, func() error { x.before(cookieHere(t)); return nil })
	}
	var out trace
	var sender *net.TCPConn
	var mu sync.Mutex // the hooks run while the test still dials
	cfg := x.path
	choose := cfg.Drop
	cfg.Drop = func(s testnet.Segment) bool {
		out.sent = append(out.sent, s)
		return choose != nil && choose(s)
	}
	cfg.Acked = func(ack testnet.Ack) {
		mu.Lock()
		defer mu.Unlock()
		if sender != nil {
			out.points = append(out.points, look(sender, ack))
		}
	}
	t.Run("path", func(t *testing.T) { // its end stops the path, so that the trace is complete
		testnet.NewPath(t, a, senderAddr+"/24", b, receiverAddr+"/24", cfg)
		b.Run(t, "ip", "route", "change", "10.55.0.0/24", "dev", "path0", "proto", "kernel", "scope", "link", "src",
			receiverAddr, "quickack", "1")
		got := receive(t, b)
		conn := x.dial(t, a)
		mu.Lock()
		sender = conn
		mu.Unlock()
		defer conn.Close()
		if _, err := conn.Write(make([]byte, x.segments*mss)); err != nil {
			t.Fatal(err)
		}
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		select {
		case n := <-got:
			if n != int64(x.segments*mss) {
				t.Errorf("%d bytes arrived of %d", n, x.segments*mss)
			}
		case <-time.After(x.patience + 30*time.Second):
			t.Error("the data did not arrive")
		}
	})
	return out
}

func (x experiment) dial(t *testing.T, ns *testnet.NS) *net.TCPConn {
	t.Helper()
	var conn net.Conn
	ns.Do(t, func() (err error) {
		d := net.Dialer{Timeout: 10 * time.Second, Control: func(_, _ string, c syscall.RawConn) error {
			var set error
			err := c.Control(func(fd uintptr) {
				set = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, x.congestion)
				if set == nil {
					set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, mss)
				}
				if set == nil {
					set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
				}
			})
			if err != nil {
				return err
			}
			return set
		}}
		// An address and no name: nothing else is started that would leave this thread.
		conn, err = d.DialContext(context.Background(), "tcp4", receiverAddr+":5000")
		return err
	})
	return conn.(*net.TCPConn)
}

func receive(t *testing.T, ns *testnet.NS) <-chan int64 {
	t.Helper()
	var l net.Listener
	ns.Do(t, func() (err error) {
		l, err = net.Listen("tcp4", receiverAddr+":5000")
		return err
	})
	got := make(chan int64, 1)
	go func() {
		conn, err := l.Accept()
		_ = l.Close() // one connection is all; at the test's end it is closed again
		if err != nil {
			return
		}
		n, _ := io.Copy(io.Discard, conn)
		got <- n
		_ = conn.Close()
	}()
	t.Cleanup(func() { _ = l.Close() })
	return got
}

func look(c *net.TCPConn, ack testnet.Ack) point {
	info, err := testnet.TCPInfo(c)
	if err != nil {
		return point{} // closed at the end
	}
	return pointOf(info, ack)
}

func pointOf(info *unix.TCPInfo, ack testnet.Ack) point {
	return point{at: ack.At, ack: ack.Offset / mss, highest: ack.Highest / mss, cwnd: info.Snd_cwnd,
		ssthresh: info.Snd_ssthresh,
		state:    uint32(info.Ca_state), unacked: info.Unacked, lost: info.Lost, retrans: info.Retrans,
		sacked: info.Sacked,
		rtos:   uint32(info.Total_rto), rttUs: info.Rtt, backoff: uint32(info.Backoff),
		retransmits: uint32(info.Retransmits), mss: info.Snd_mss, pacing: info.Pacing_rate}
}

func setSysctls(t *testing.T, ns *testnet.NS, values map[string]string) {
	t.Helper()
	ns.Do(t, func() error {
		for key, value := range values {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+key, []byte(value), 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// classicSysctls is what the profile of the same name sets.
func classicSysctls(sack bool) map[string]string {
	return map[string]string{
		"tcp_sack": map[bool]string{true: "1", false: "0"}[sack], "tcp_dsack": "0", "tcp_timestamps": "0",
		"tcp_recovery":      "0",
		"tcp_early_retrans": "0", "tcp_frto": "0", "tcp_no_metrics_save": "1", "tcp_ecn": "0",
		"tcp_max_reordering": "3",
	}
}

func cookieHere(t *testing.T) uint64 {
	t.Helper()
	cookie, err := Cookie()
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}

// registered makes names that no other test of this kernel has.
var registered atomic.Uint32

// register makes a program a congestion control until the test ends.
func register(t *testing.T, program string) *Congestion {
	t.Helper()
	testnet.Need(t)
	c, err := Register(program, fmt.Sprintf("%.4s_%x_%x", program, os.Getpid(), registered.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, c)
	return c
}

// losing drops the first transmission of the segments with these indices.
func losing(indices ...int) func(testnet.Segment) bool {
	return func(s testnet.Segment) bool { return s.Times == 1 && slices.Contains(indices, s.Index) }
}

// into is the place of the first point in a state, from a place on.
func (tr trace) into(t *testing.T, state uint32, from int) int {
	t.Helper()
	for i := from; i < len(tr.points); i++ {
		if tr.points[i].state == state {
			return i
		}
	}
	t.Fatalf("the connection was never in state %d:\n%s", state, tr.around(from, from+80))
	return 0
}

func (tr trace) around(from, to int) string {
	var b strings.Builder
	for i := max(from, 0); i < min(to, len(tr.points)); i++ {
		fmt.Fprintf(&b, "%4d %s\n", i, tr.points[i])
	}
	return b.String()
}

func (tr trace) timeouts() uint32 {
	n := uint32(0)
	for _, p := range tr.points {
		n = max(n, p.rtos)
	}
	return n
}
