package gps

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/rehearsal/mobility"
)

// line keeps what a receiver writes, and says when that is enough.
type line struct {
	bytes.Buffer
	enough int
	full   func()
}

func (l *line) Write(b []byte) (int, error) {
	n, err := l.Buffer.Write(b)
	if strings.Count(l.String(), "RMC,") >= l.enough {
		l.full()
	}
	return n, err
}

// All receivers tell the same moments, which are multiples of their period.
func TestReceiversTellTheSameMoments(t *testing.T) {
	const epochs, period = 4, 50 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	where := func(time.Duration) (earth.Site, mobility.State, error) {
		return earth.Site{}, mobility.State{}, nil
	}
	first, last := &line{full: func() {}}, &line{enough: epochs, full: cancel}
	silent := &line{full: func() {}}
	receivers := []*Receiver{{Line: first, Where: where}, {Line: silent, Where: where}, {Line: last, Where: where}}
	receivers[1].Set(Silent)
	if err := Run(ctx, float64(time.Second/period), receivers); err != nil {
		t.Fatal(err)
	}
	if first.String() != last.String() || silent.Len() != 0 {
		t.Errorf("they say\n%s\nand\n%s\nand, silent,\n%s", first, last, silent)
	}
	seen := map[string]bool{}
	for sentence := range strings.Lines(first.String()) {
		fields := strings.Split(sentence, ",")
		if !strings.HasSuffix(fields[0], "RMC") {
			continue
		}
		clock, err := time.Parse("150405.00", fields[1])
		if err != nil || clock.Nanosecond()%int(period) != 0 || seen[fields[1]] {
			t.Errorf("an epoch at %s (%v), want multiples of %v, each once", fields[1], err, period)
		}
		seen[fields[1]] = true
	}
	if len(seen) != epochs {
		t.Errorf("%d epochs, want %d", len(seen), epochs)
	}
}
