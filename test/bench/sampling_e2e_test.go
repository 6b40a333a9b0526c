//go:build e2e

package bench

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const (
	samplingRounds = 10
	ticksARound    = 300
	ssARound       = 30
)

// TestBenchCPUPerConnection takes turns between the agent's sampling of seven
// connections, onto disk, and a loop of ss over the same.
func TestBenchCPUPerConnection(t *testing.T) {
	begin(t)
	testnet.Need(t, "ss")
	ss, err := exec.LookPath("ss")
	if err != nil {
		t.Fatal(err)
	}
	ns := testnet.NewNS(t, "cpu")
	flow := wire.Flow{Name: "bulk", Kind: "iperf3_tcp", From: "a", To: "b", Port: 5000, Streams: streams,
		ClientPort: 20000}
	sp, err := spool.Open(filepath.Join(t.TempDir(), "spool"), "b", spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testnet.CloseAtEnd(t, sp)
	var agent, alone, reference, shown float64
	ns.Do(t, func() error {
		open, err := connections(flow)
		defer func() {
			for _, c := range open {
				_ = c.Close()
			}
		}()
		if err != nil {
			return err
		}
		loopback := netip.MustParseAddr("127.0.0.1")
		source := measure.NewTCP("b", []wire.Flow{flow}, map[string]netip.Addr{"a": loopback, "b": loopback})
		for range samplingRounds {
			sampled, recorded, err := sampleRound(t, source, sp)
			if err != nil {
				return err
			}
			cpu, sockets, err := ssRound(ss, flow.Port)
			if err != nil {
				return err
			}
			alone, agent, reference, shown = alone+sampled, agent+recorded, reference+cpu, shown+sockets
		}
		return nil
	})
	samples := float64(samplingRounds * ticksARound * (streams + 1))
	alone, agent, reference = alone/samples, agent/samples, reference/shown
	report(row{
		goal:      "CPU per sampled connection",
		measured:  fmt.Sprintf("%.1f µs (%.1f µs without the disk)", agent*1e6, alone*1e6),
		reference: fmt.Sprintf("ss -ti: %.0f µs", reference*1e6),
		figure:    fmt.Sprintf("1/%.0f", reference/agent), limit: "≤ 1/20", met: agent <= reference/20,
	}, "user and system time of %d samples of %d sockets each: asked of the kernel, decoded, encoded as records, "+
		"written and synced; against %d runs of "+
		"`ss -Htin sport = :%d`, which shows the same sockets. In turns of %d and %d.", samplingRounds*ticksARound,
		streams+1, samplingRounds*ssARound, flow.Port, ticksARound, ssARound)
}

// connections are laid out as iperf3's: a control connection and the streams.
func connections(f wire.Flow) (open []net.Conn, err error) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: f.Port})
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	for i := range f.Streams + 1 {
		from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
		if i > 0 {
			from.Port = f.ClientPort + i - 1
		}
		client, err := net.DialTCP("tcp4", from, l.Addr().(*net.TCPAddr))
		if err != nil {
			return open, err
		}
		server, err := l.Accept()
		if err != nil {
			return append(open, client), err
		}
		open = append(open, client, server)
		if _, err := client.Write(make([]byte, 20000)); err != nil {
			return open, err
		}
	}
	return open, nil
}

// sampleRound is the CPU time, in seconds, of a round of samples: taken only,
// and taken and recorded.
func sampleRound(t *testing.T, source *measure.TCP, sp *spool.Spool) (sampled, recorded float64, err error) {
	sample := func(keep bool) error {
		for range ticksARound {
			now := time.Now().UnixNano()
			bodies, err := source.Sample(now)
			if err != nil || len(bodies) != streams+1 {
				return fmt.Errorf("%d sockets of %d: %w", len(bodies), streams+1, err)
			}
			for _, b := range bodies {
				if !keep {
					continue
				}
				if _, err := sp.Append(wire.Header{TBootNs: now}, b); err != nil {
					return err
				}
			}
		}
		if keep {
			return sp.Sync(t.Context())
		}
		return nil
	}
	begun := ownCPU()
	if err := sample(false); err != nil {
		return 0, 0, err
	}
	middle := ownCPU()
	err = sample(true)
	return middle - begun, ownCPU() - middle, err
}

// ownCPU is this process's user and system time in seconds.
func ownCPU() float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// ssRound is the CPU time of a round of ss, and how many sockets it showed. It
// runs in the calling thread's namespace.
func ssRound(ss string, port int) (cpu, sockets float64, err error) {
	for range ssARound {
		c := exec.Command(ss, "-Htin", "sport", "=", fmt.Sprintf(":%d", port))
		out, err := c.Output()
		if err != nil {
			return 0, 0, fmt.Errorf("ss: %w", err)
		}
		cpu += (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
		shown := bytes.Count(out, []byte("bytes_received:"))
		if shown != streams+1 {
			return 0, 0, fmt.Errorf("ss shows %d sockets, not %d:\n%s", shown, streams+1, out)
		}
		sockets += float64(shown)
	}
	return cpu, sockets, nil
}
