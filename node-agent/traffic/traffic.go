// Package traffic runs iperf3 with time-outs of its own around it, and keeps
// what it printed however it ended. It measures nothing: throughput comes from
// the receiver's kernel.
package traffic

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// Grace is how long after a flow's end iperf3 may take by itself: the
	// last windows drain and the two sides exchange their results.
	Grace = 3 * time.Second

	listenTimeout  = 5 * time.Second
	listenInterval = 5 * time.Millisecond

	maxStreams = 128 // iperf3's MAX_STREAMS
)

// Generator starts iperf3.
type Generator struct {
	Bin    string // iperf3's absolute path
	Folder string // in which each iperf3 has a temporary folder of its own while it runs
	Clock  clock.Clock
	// Descriptors has iperf3's sockets reached by descriptors of our own, for an agent without root.
	Descriptors bool
	// Bound is the interface that iperf3's sockets keep to; empty: packets go as the routes have it.
	Bound string
	// Version returns what iperf3 says of its version, empty where that is not known; nil: it is not known.
	Version func() string
}

// Server starts iperf3's server for one test of the flow on bind, and returns
// when it listens. The end of ctx ends it: how long its test has to wait, for a gate
// that may take an hour, is not known here.
func (g Generator) Server(ctx context.Context, f wire.Flow, bind netip.Addr) (*Process, error) {
	args, err := g.serverArgs(f, bind)
	if err != nil {
		return nil, fmt.Errorf("start iperf3 server for flow %q: %w", f.Name, err)
	}
	p, err := g.start(ctx, args, f, "server", 0)
	if err != nil {
		return nil, err
	}
	if err := p.awaitListening(ctx, netip.AddrPortFrom(bind, uint16(f.Port))); err != nil {
		p.Stop("did not come to listen")
		out := p.Wait()
		return nil, fmt.Errorf("start iperf3 server for flow %q on %s port %d: %w%s", f.Name, bind, f.Port, err,
			said(out))
	}
	return p, nil
}

// said is what a failed iperf3 gave as its reason.
func said(out wire.Iperf3) string {
	if out.Error == "" {
		return ""
	}
	return fmt.Sprintf(" (iperf3: %s)", out.Error)
}

// Client starts iperf3's client of the flow at once, from an address of this
// machine, which need not be what the routes would choose; a flow's StartS is its
// caller's to wait for. The end of ctx ends it. Congestion is the name of the
// trial's congestion control in this machine's kernel, which iperf3 also pins at
// the server; empty leaves it alone, and so does a name of this machine only where
// the server sends. The flow's duration is rounded up to whole seconds, which is
// all that iperf3 takes: the window's edges are cut by the receiver's samples.
func (g Generator) Client(ctx context.Context, f wire.Flow, from, to netip.Addr, congestion string,
	connectTimeout time.Duration) (*Process, error) {
	args, err := g.clientArgs(f, from, to, congestion, connectTimeout)
	if err != nil {
		return nil, fmt.Errorf("start iperf3 client for flow %q: %w", f.Name, err)
	}
	return g.start(ctx, args, f, "client", connectTimeout+seconds(f)+Grace)
}

// seconds is the flow's duration as iperf3 gets it.
func seconds(f wire.Flow) time.Duration {
	return time.Duration(f.SendS()) * time.Second
}

func (g Generator) serverArgs(f wire.Flow, bind netip.Addr) ([]string, error) {
	if err := check(f, bind); err != nil {
		return nil, err
	}
	args := []string{"-s", "-1", "-J", family(bind), "-p", strconv.Itoa(f.Port), "-B", bind.String()}
	args = append(args, g.bound()...)
	if !f.Reverse {
		args = append(args, g.patience(f)...)
	}
	return args, nil
}

// idleTime is how long iperf3 from 3.10 on waits for data, unless told, before it
// gives the test up (--rcv-timeout).
const idleTime = 120 * time.Second

// patience has a receiver wait for data as long as the flow lasts: an outage is the
// network's, and what TCP does after it belongs to the trial. A shorter flow ends
// before iperf3 gives up. An iperf3 before 3.10 never does, and has no such option.
func (g Generator) patience(f wire.Flow) []string {
	const most = 24 * time.Hour // iperf3's
	if seconds(f)+Grace < idleTime || g.Before310() {
		return nil
	}
	return []string{"--rcv-timeout", strconv.FormatInt(min(seconds(f)+idleTime, most).Milliseconds(), 10)}
}

// Before310 reports whether iperf3 is known to be older than 3.10, and has neither --rcv-timeout nor --bind-dev.
func (g Generator) Before310() bool {
	if g.Version == nil {
		return false
	}
	var minor int
	_, err := fmt.Sscanf(g.Version(), "iperf 3.%d", &minor)
	return err == nil && minor < 10
}

// bound has iperf3's sockets keep to an interface.
func (g Generator) bound() []string {
	if g.Bound == "" {
		return nil
	}
	return []string{"--bind-dev", g.Bound}
}

func (g Generator) clientArgs(f wire.Flow, from, to netip.Addr, congestion string,
	connectTimeout time.Duration) ([]string, error) {
	if err := check(f, to); err != nil {
		return nil, err
	}
	if from.Is4() != to.Is4() {
		return nil, fmt.Errorf("the client's address %s and the server's %s are not of one family", from, to)
	}
	if connectTimeout < time.Millisecond {
		return nil, fmt.Errorf("connect time-out %v is below 1 ms", connectTimeout)
	}
	args := []string{
		"-c", to.String(), "-J", family(to), "-p", strconv.Itoa(f.Port),
		"-B", from.String(), "--cport", strconv.Itoa(f.ClientPort), "-P", strconv.Itoa(f.Streams),
		"-t", strconv.Itoa(int(seconds(f) / time.Second)), "-i", "1",
		"--connect-timeout", strconv.FormatInt(connectTimeout.Milliseconds(), 10),
	}
	args = append(args, g.bound()...)
	if f.Reverse {
		args = append(append(args, "-R"), g.patience(f)...)
	}
	if f.WindowBytes != nil {
		args = append(args, "-w", strconv.Itoa(*f.WindowBytes))
	}
	if f.Kind == "iperf3_udp" {
		// iperf3's rate is per stream, the plan's is the flow's.
		args = append(args, "-u", "-b", strconv.FormatInt(int64(*f.BitrateBps/float64(f.Streams)), 10))
		if f.PayloadBytes != nil {
			args = append(args, "-l", strconv.Itoa(*f.PayloadBytes))
		}
		return args, nil
	}
	if f.PayloadBytes != nil {
		args = append(args, "-M", strconv.Itoa(*f.PayloadBytes))
	}
	if _, own := tcpcc.ProgramOf(congestion); own && f.Reverse {
		congestion = "" // the sender has another name for it, and by default that one
	}
	if congestion != "" {
		if !isKernelName(congestion) {
			return nil, fmt.Errorf("congestion control %q is no kernel's name: lower-case letters, digits and _ are "+
				"allowed", congestion)
		}
		args = append(args, "-C", congestion)
	}
	return args, nil
}

// check refuses what iperf3 would misread or refuse late.
func check(f wire.Flow, addr netip.Addr) error {
	lastPort := f.ClientPort + f.Streams - 1
	switch {
	case f.Kind != "iperf3_tcp" && f.Kind != "iperf3_udp":
		return fmt.Errorf("kind %q: iperf3_tcp and iperf3_udp are allowed", f.Kind)
	case !addr.IsValid():
		return errors.New("the server's address is not set")
	case f.Port < 1 || f.Port > 65535:
		return fmt.Errorf("port %d: 1 to 65535 are allowed", f.Port)
	case f.Streams < 1 || f.Streams > maxStreams:
		return fmt.Errorf("%d streams: 1 to %d are allowed", f.Streams, maxStreams)
	case f.ClientPort < 1 || lastPort > 65535:
		return fmt.Errorf("client ports %d to %d: they must lie in 1 to 65535", f.ClientPort, lastPort)
	case !(f.DurationS > 0 && f.DurationS <= 86400): // iperf3's MAX_TIME; also refuses NaN
		return fmt.Errorf("duration_s %v: more than 0 and at most 86400 are allowed", f.DurationS)
	case f.Kind == "iperf3_udp" && (f.BitrateBps == nil || !(*f.BitrateBps >= float64(f.Streams))):
		return errors.New("a UDP flow needs bitrate_bps, at least 1 per stream")
	case f.Kind == "iperf3_tcp" && f.BitrateBps != nil:
		return errors.New("bitrate_bps is for UDP: a TCP flow's rate is what is measured")
	}
	return nil
}

func family(a netip.Addr) string {
	if a.Unmap().Is4() {
		return "-4"
	}
	return "-6"
}

func isKernelName(s string) bool {
	for _, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_') {
			return false
		}
	}
	return len(s) > 0 && len(s) < 16 // TCP_CA_NAME_MAX, net/tcp.h
}

// checkBinary makes sure that nothing is looked up in a PATH.
func checkBinary(bin string) error {
	if !filepath.IsAbs(bin) {
		return fmt.Errorf("find iperf3: %q is not an absolute path: install it (apt-get install iperf3)", bin)
	}
	info, err := os.Stat(bin)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("find iperf3: %w: install it (apt-get install iperf3)", err)
	case err != nil:
		return fmt.Errorf("find iperf3: %w", err)
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return fmt.Errorf("find iperf3: %q is not a program: install it (apt-get install iperf3)", bin)
	}
	return nil
}
