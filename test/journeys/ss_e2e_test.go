//go:build e2e

package journeys

import (
	"cmp"
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// looks is what iproute2 says of nodes while a run goes on; it shares nothing
// with what Fieldmesh measures by.
type looks struct {
	sockets []ssSocket
	routes  map[string]bool // node, and a route that a routing daemon of ours made on it
}

// ssSocket is a line of "ss -ti".
type ssSocket struct {
	node          string
	from, to      int64 // boot clock, before and after ss ran
	local, remote string
	words         []string
}

// number is a counter of ss's, absent unless it has counted.
func (s ssSocket) number(name string) uint64 {
	for _, w := range s.words {
		if v, is := strings.CutPrefix(w, name+":"); is {
			if _, total, slash := strings.Cut(v, "/"); slash {
				v = total // "retrans:now/total"
			}
			n, _ := strconv.ParseUint(v, 10, 64)
			return n
		}
	}
	return 0
}

// lookOn looks at the nodes until the run is over.
func lookOn(t *testing.T, run *testnet.Running, namespaces map[string]string, within time.Duration) looks {
	t.Helper()
	out := looks{routes: map[string]bool{}}
	for until := time.Now().Add(within); !run.Over(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the run does not end")
		}
		for node, ns := range namespaces {
			out.look(t.Context(), node, ns)
		}
	}
	return out
}

func (l *looks) look(ctx context.Context, node, ns string) {
	from := testnet.BootNs()
	text, err := exec.CommandContext(ctx, "ip", "netns", "exec", ns, "ss", "-tinOH", "state", "established",
		"( sport = :5000 or dport = :5000 )").Output()
	if err != nil {
		return // the field is not there yet, or not any more
	}
	to := testnet.BootNs()
	for line := range strings.Lines(string(text)) {
		w := strings.Fields(line)
		if len(w) > 4 {
			l.sockets = append(l.sockets, ssSocket{node, from, to, w[2], w[3], w[4:]})
		}
	}
	const ours = "109" // control.RouteProtocol
	text, err = exec.CommandContext(ctx, "ip", "-n", ns, "-4", "route", "show", "proto", ours).Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(text)) {
		l.routes[node+": "+strings.TrimSpace(line)] = true
	}
}

// agree holds what ss said of the sender's data sockets in a trial against the
// trial's records: the congestion control, and counters that lie between those
// recorded before ss ran and after. A sample is over when the next begins.
func (l *looks) agree(t *testing.T, trial wire.Trial, records []wire.Record) {
	t.Helper()
	type point struct {
		from int64
		tcp  *wire.TCPSample
	}
	recorded := map[string][]point{}
	for _, r := range records {
		if b, is := r.Body.(*wire.TCPSample); is && r.Node == trial.Sender && b.Stream != nil {
			recorded[b.Local] = append(recorded[b.Local], point{r.TBootNs, b})
		}
	}
	compared := 0
	for _, s := range l.sockets {
		points := recorded[s.local]
		if s.node != trial.Sender || len(points) == 0 || s.from < points[0].from || s.to > points[len(points)-1].from {
			continue
		}
		slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.from, b.from) })
		var before, after *wire.TCPSample
		for i, p := range points {
			if i+1 < len(points) && points[i+1].from <= s.from {
				before = p.tcp
			}
			if after == nil && p.from >= s.to {
				after = p.tcp
			}
		}
		if before == nil || after == nil {
			continue
		}
		compared++
		if !slices.Contains(s.words, before.Congestion) {
			t.Errorf("trial %d: ss shows a socket of the sender with %v, recorded was %s", trial.Number, s.words,
				before.Congestion)
		}
		if got := s.number("mss"); got != uint64(before.MSSBytes) {
			t.Errorf("trial %d: ss shows a segment size of %d, recorded was %d", trial.Number, got, before.MSSBytes)
		}
		for _, c := range []struct {
			name           string
			least, highest uint64
		}{
			{"bytes_acked", before.BytesAcked, after.BytesAcked}, {"retrans", uint64(before.Retransmits),
				uint64(after.Retransmits)},
			{"bytes_sent", *before.BytesSent, *after.BytesSent}, {"data_segs_out", uint64(*before.DataSegsOut),
				uint64(*after.DataSegsOut)},
		} {
			if got := s.number(c.name); got < c.least || got > c.highest {
				t.Errorf("trial %d: %s: ss shows %s:%d, recorded were %d before and %d after", trial.Number, s.local,
					c.name, got, c.least, c.highest)
			}
		}
	}
	t.Logf("trial %d: %d looks of ss at the sender's sockets agree with the records", trial.Number, compared)
	if streams := trial.Traffic[0].Streams; compared < 5*streams {
		t.Errorf("trial %d: ss saw the sender's %d sockets %d times in all", trial.Number, streams, compared)
	}
}
