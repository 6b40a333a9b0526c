//go:build e2e

package aodv

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
)

// asked is an RREQ that was sent.
type asked struct {
	at  manet.Time
	ttl int
}

// For a destination that is not there, RREQs go out at ns-2's own times and with
// its TTLs.
func TestE2ENS2AsksAtTheSameTimes(t *testing.T) {
	if _, err := exec.LookPath("ns"); err != nil {
		t.Skip("needs ns-2: install Debian's package ns2")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	if text, err := exec.Command("ns", "testdata/search.tcl", trace).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	want := requestsIn(t, trace)
	if len(want) < 10 {
		t.Fatalf("ns-2 sent %d RREQs, want 10 at least", len(want))
	}
	l := newNS2Lab(t)
	for at := 1020 * time.Millisecond; at < time.Minute; at += 310 * time.Millisecond {
		l.Wait(at - l.Now)
		l.Need(far)
	}
	l.Wait(100*time.Second - l.Now)
	var got []asked
	for _, s := range l.take() {
		got = append(got, asked{s.at, s.ttl})
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("RREQ %d was not sent, ns-2's at %v with TTL %d", i, want[i].at, want[i].ttl)
		case i >= len(want):
			t.Errorf("RREQ %d at %v, and none by ns-2", i, got[i].at)
		case (got[i].at-want[i].at).Abs() > time.Millisecond || got[i].ttl != want[i].ttl:
			t.Errorf("RREQ %d at %v with TTL %d, ns-2's at %v with %d", i, got[i].at, got[i].ttl, want[i].at,
				want[i].ttl)
		}
	}
}

// requestsIn are the RREQs that node 0 of a trace sent.
func requestsIn(t *testing.T, trace string) (out []asked) {
	t.Helper()
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// s 1.050000000 _0_ RTR  --- 0 AODV 48 [0 0 0 0] ------- [0:255 -1:255 30 0] [...] (REQUEST)
		w := strings.Fields(lines.Text())
		if len(w) < 16 || w[0] != "s" || w[2] != "_0_" || w[6] != "AODV" || !strings.HasSuffix(lines.Text(),
			"(REQUEST)") {
			continue
		}
		at, errAt := strconv.ParseFloat(w[1], 64)
		ttl, errTTL := strconv.Atoi(w[15])
		if errAt != nil || errTTL != nil {
			t.Fatalf("read %q: %v, %v", lines.Text(), errAt, errTTL)
		}
		out = append(out, asked{time.Duration(at * 1e9), ttl})
	}
	return out
}
