package clock

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Skew makes a clock differ from the machine's own, for rehearsals in which
// all nodes share one machine: nodes on a road share no clock.
type Skew struct {
	BootOffsetNs int64   `json:"boot_offset_ns"`
	WallOffsetNs int64   `json:"wall_offset_ns"`
	DriftPpm     float64 `json:"drift_ppm"`    // by which both gain
	FromBootNs   int64   `json:"from_boot_ns"` // of the machine's boot clock, when they began to
}

// gained is by how much the drift has put the clocks forward.
func (s Skew) gained(bootNs int64) int64 {
	return int64(s.DriftPpm * float64(bootNs-s.FromBootNs) / 1e6)
}

// Skewed is the machine's clock with the skew of a file, which is looked at
// again now and then: a clock may be stepped while somebody goes by it.
type Skewed struct {
	path string

	mu       sync.Mutex
	skew     Skew
	lookedNs int64
}

const (
	lookAgain    = 20 * time.Millisecond
	maxSkewBytes = 4096
)

// NewSkewed reads the skew of a file.
func NewSkewed(path string) (*Skewed, error) {
	c := &Skewed{path: path}
	return c, c.read()
}

func (c *Skewed) read() error {
	f, err := os.Open(c.path)
	if err != nil {
		return fmt.Errorf("read clock file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSkewBytes))
	if err != nil {
		return fmt.Errorf("read clock file: %w", err)
	}
	var s Skew
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("decode clock file %q: %w", c.path, err)
	}
	c.skew = s
	return nil
}

// now is the skew, and the machine's boot clock to apply it to.
func (c *Skewed) now() (Skew, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	boot := System{}.BootNs()
	if boot-c.lookedNs >= lookAgain.Nanoseconds() {
		c.lookedNs = boot
		_ = c.read() // half written: it holds as it was until the next look
	}
	return c.skew, boot
}

// BootNs is the skewed boot clock.
func (c *Skewed) BootNs() int64 {
	s, boot := c.now()
	return boot + s.BootOffsetNs + s.gained(boot)
}

// Wall is the skewed wall clock.
func (c *Skewed) Wall() time.Time {
	s, boot := c.now()
	return System{}.Wall().Add(time.Duration(s.WallOffsetNs + s.gained(boot)))
}
