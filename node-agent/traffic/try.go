package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// A trial of iperf3 by itself sends so much so fast: a tenth of a second.
	// iperf3's -t takes whole seconds only.
	tryBytes = 1_000_000
	tryBps   = 80_000_000

	// Either end may take half of the time: the server's runs from the client's end.
	tryWithin = wire.GeneratorTryMaxS * time.Second / 2

	// iperf3's server reads nothing more once its client has ended. On a node so busy that
	// it got no processor in that tenth of a second, it has then received nothing.
	triesMax = 3
)

var errNothingReceived = errors.New("reports nothing received")

// Try has iperf3 send to itself over loopback, started as a trial starts it: by
// the same user, in the same folders and environment.
func (g Generator) Try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*tryWithin)
	defer cancel()
	for range triesMax - 1 {
		if err := g.try(ctx); !errors.Is(err, errNothingReceived) {
			return err
		}
	}
	return g.try(ctx)
}

func (g Generator) try(ctx context.Context) error {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	port, err := freePort(ctx, loopback)
	if err != nil {
		return fmt.Errorf("try iperf3: %w", err)
	}
	if g.Bound != "" {
		g.Bound = "lo"
	}
	f := wire.Flow{Name: "try", Kind: "iperf3_tcp", Port: port, Streams: 1, DurationS: 1, ClientPort: 1}
	if err := g.Ready(f); err != nil {
		return err
	}
	server, err := g.Server(ctx, f, loopback)
	if err != nil {
		return err
	}
	client, err := g.start(ctx, append([]string{"-c", loopback.String(), "-J", "-4", "-p", strconv.Itoa(port),
		"-n", strconv.Itoa(tryBytes), "-b", strconv.Itoa(tryBps)}, g.bound()...), f, "client", tryWithin)
	if err != nil {
		server.Stop("its client could not start")
		server.Wait()
		return err
	}
	if err := tried(client.Wait()); err != nil {
		server.Stop("its client has failed")
		server.Wait()
		return err
	}
	server.EndWithin(tryWithin)
	return tried(server.Wait())
}

// tried says what was wrong with one end.
func tried(r wire.Iperf3) error {
	var out struct {
		End struct {
			SumReceived struct {
				Bytes float64 `json:"bytes"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	switch {
	case r.Ended != wire.EndedItself || r.Cause != "":
		return fmt.Errorf("try iperf3 over loopback: its %s ended by %s: %s%s", r.Side, r.Ended, r.Killed, said(r))
	case json.Unmarshal(r.Output, &out) != nil || out.End.SumReceived.Bytes <= 0:
		return fmt.Errorf("try iperf3 over loopback: its %s %w%s", r.Side, errNothingReceived, said(r))
	}
	return nil
}

// freePort is one on which nobody listens.
func freePort(ctx context.Context, at netip.Addr) (int, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp4", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
