//go:build e2e

package tcp

import (
	"context"
	"math"
	"net"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Every variant has the pacing rate that the stack gives its own: 200 % of a window a round trip while cwnd is below
// half of ssthresh, then 120 % (tcp_update_pacing_rate of tcp_input.c). By it the kernel decides how much of a window
// may wait below the socket, so that variants would differ in more than their names.
func TestEveryVariantHasTheStacksPacingRate(t *testing.T) {
	for _, program := range append(tcpcc.Programs(), "") {
		name := "reno" // the kernel's
		if program != "" {
			name = register(t, program).Name
		}
		tr := playLosses(t, name, program == tcpcc.Fack, 200, losing(40))
		seen := map[uint64]int{}
		for i, p := range tr.points {
			if i == 0 || p.state != stateOpen || p.rttUs == 0 || p.unacked > p.cwnd || tr.points[i-1].unacked > p.cwnd {
				continue
			}
			percent := uint64(120)
			if p.cwnd < p.ssthresh/2 {
				percent = 200
			}
			seen[percent]++
			window := uint64(p.mss) * uint64(p.cwnd) * 1e4 * percent
			// The round trip is known in eighths of a microsecond, and told in whole ones.
			least, most := window/(uint64(p.rttUs)+1), window/uint64(p.rttUs)
			if p.pacing < least || p.pacing > most {
				t.Errorf("%s has a pacing rate of %d B/s, want %d to %d, at a round trip of %d µs\n%s", name, p.pacing,
					least, most, p.rttUs, tr.around(i-2, i+2))
				break
			}
		}
		if seen[120] < 5 || seen[200] < 5 {
			t.Errorf("%s: the rates that were seen are %v", name, seen)
		}
	}
}

// Whoever accepts a connection has a pacing rate before it has sent anything, as with the stack's own.
func TestWhoAcceptsHasAPacingRateAtOnce(t *testing.T) {
	testnet.Need(t)
	ns := testnet.NewNS(t, "snd")
	for _, program := range append(tcpcc.Programs(), "") {
		if slices.Contains([]string{tcpcc.Vegas, tcpcc.Westwood}, program) {
			continue // the stack gives it, as to the kernel's
		}
		name := "reno" // the kernel's
		if program != "" {
			name = register(t, program).Name
		}
		ns.Do(t, func() error {
			listen := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
				if fail := c.Control(func(fd uintptr) {
					err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
				}); fail != nil {
					return fail
				}
				return err
			}}
			l, err := listen.Listen(context.Background(), "tcp4", "127.0.0.1:0")
			if err != nil {
				return err
			}
			defer l.Close()
			client, err := net.Dial("tcp4", l.Addr().String())
			if err != nil {
				return err
			}
			defer client.Close()
			server, err := l.Accept()
			if err != nil {
				return err
			}
			defer server.Close()
			info, err := testnet.TCPInfo(server.(*net.TCPConn))
			if err != nil {
				return err
			}
			window := uint64(info.Snd_mss) * uint64(info.Snd_cwnd) * 1e4 * 200
			least, most := window/(uint64(info.Rtt)+1), uint64(math.MaxUint64-1) // the next one is for none
			if info.Rtt > 0 {
				most = window / uint64(info.Rtt)
			}
			if info.Pacing_rate < least || info.Pacing_rate > most {
				t.Errorf("%s has a pacing rate of %d B/s, want %d to %d", name, info.Pacing_rate, least, most)
			}
			return nil
		})
	}
}
