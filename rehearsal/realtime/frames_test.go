package realtime

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

func nodeMAC(i int) string { return fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&255) }

// line puts nodes on a line, spacing metres apart.
func line(spacingM float64) medium.Locate {
	return func(node int, _ time.Duration) (float64, float64) { return float64(node) * spacingM, 0 }
}

func testConfig(standard string, rateMbps float64, nodes int) medium.Config {
	cfg := medium.Config{Seed: 1, Standard: standard, Channel: 6, RateMbps: rateMbps,
		Propagation: propagation.Config{Model: "log_distance", Exponent: 3}}
	for i := range nodes {
		cfg.Nodes = append(cfg.Nodes, medium.NodeConfig{Name: fmt.Sprintf("n%d", i), MAC: nodeMAC(i),
			TxPowerDbm: 20, NoiseFigureDb: 7, HeightM: 1.5})
	}
	return cfg
}

// ethernet makes a numbered frame with so many bytes after the header.
func ethernet(from, to, number, payloadBytes int) []byte {
	f := make([]byte, 14+payloadBytes)
	dst := medium.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	if to >= 0 {
		dst, _ = medium.ParseMAC(nodeMAC(to))
	}
	src, _ := medium.ParseMAC(nodeMAC(from))
	copy(f, dst[:])
	copy(f[6:], src[:])
	binary.BigEndian.PutUint32(f[14:], uint32(number))
	return f
}

// segment is a TCP segment of that number from 10.0.0.1:5201 to 10.0.0.2:40000.
func segment(from, to int, number byte) []byte {
	f := ethernet(from, to, 0, 32)
	binary.BigEndian.PutUint16(f[12:], 0x0800)
	copy(f[14:], []byte{0x45, 0, 0, 32, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
		5201 >> 8, 5201 & 255, 40000 >> 8, 40000 & 255, 0, 0, 0, number, 0, 0, 0, 0})
	return f
}

func within(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if math.Abs(got-want) > relative*math.Abs(want) {
		t.Errorf("%s: got %g, want %g within %g %%", what, got, want, 100*relative)
	}
}
