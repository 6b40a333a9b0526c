package change

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// causeFeed tells the reference TCP what the emulated radio reports about lost
// frames. It owns the congestion control: closing the one closes the other.
type causeFeed struct {
	congestion *tcp.Congestion
	stop       context.CancelFunc
	group      sync.WaitGroup
	lost       uint64 // lines that did not come, or said nothing
	stood      bool   // the radio was reached
	ended      int    // connections that the radio ended: what it told before the next one is not known
}

// CausesMissing is in the note of an undo when causes may be missing: losses without one counted as congestion.
const CausesMissing = "causes of losses may be missing"

// feedAgain is how long after a lost connection the radio is tried again.
const feedAgain = 100 * time.Millisecond

func feedCauses(c *tcp.Congestion, socket string) *causeFeed {
	ctx, stop := context.WithCancel(context.Background())
	f := &causeFeed{congestion: c, stop: stop, stood: socket == ""} // on a road none tells causes
	f.group.Go(func() {
		for ctx.Err() == nil {
			f.listen(ctx, socket)
			_ = pause.For(ctx, feedAgain)
		}
	})
	return f
}

func (f *causeFeed) Close() error {
	f.stop()
	f.group.Wait()
	return f.congestion.Close()
}

// missing says, once it is closed, what did not come of what the radio told; empty: nothing is known to be missing.
func (f *causeFeed) missing() string {
	if !f.stood {
		return CausesMissing + ": the radio was not reached"
	}
	if f.lost == 0 && f.ended == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d of the radio's lines were lost, and its connection %d times", CausesMissing, f.lost,
		f.ended)
}

// listen reads the feedback until it ends. What cannot be read or told is left
// out, and counted: an unknown cause counts as congestion.
func (f *causeFeed) listen(ctx context.Context, socket string) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return
	}
	f.stood = true
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	lines := bufio.NewScanner(conn)
	dropped := uint64(0) // by the server, in this connection; stations, which come all the time, tell it too
	for lines.Scan() {
		var line wire.Feedback
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			f.lost++
			continue
		}
		dropped = max(dropped, line.Dropped)
		if line.FrameLost == nil {
			continue
		}
		from, to, err := portsOf(line.FrameLost.Flow)
		if err == nil && f.congestion.Lost(from, to, line.FrameLost.Seq, tcp.CauseOf(line.FrameLost.Cause)) != nil {
			f.lost++
		}
	}
	f.lost += dropped
	if ctx.Err() == nil {
		f.ended++
	}
}

// portsOf reads the ports of a TCP flow, "src:port>dst:port/tcp".
func portsOf(flow string) (from, to uint16, err error) {
	ends, isTCP := strings.CutSuffix(flow, "/tcp")
	src, dst, two := strings.Cut(ends, ">")
	if !isTCP || !two {
		return 0, 0, errors.New("no flow of TCP")
	}
	a, err := netip.ParseAddrPort(src)
	if err != nil {
		return 0, 0, err
	}
	b, err := netip.ParseAddrPort(dst)
	return a.Port(), b.Port(), err
}
