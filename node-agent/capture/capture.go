// Package capture writes the first bytes of a trial's packets into a pcapng
// file: those that the filters of the privileged half's sockets let through. The
// sockets stay there. What is in the packets is not looked at.
package capture

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/pcapng"
	"fieldmesh.dev/fieldmesh/node-agent/capture/ring"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// MaxFileBytes bounds a capture: a fifth of an hour of a saturated 54 Mbit/s
// network's packets, 96 bytes of each.
const MaxFileBytes = 1 << 30

// Point is where packets are seen. What they are read from is the capture's, and
// closed by it, also when it cannot begin.
type Point struct {
	Frames    *ring.Reader
	Interface string
	Filter    string // the socket's, in words
	BareIP    bool   // packets begin with their IP header, else with Ethernet's
}

// Options are what a capture is to be. Points are in the file as interfaces in
// their order: the first is the interface under test; there may be a second,
// the device above it.
type Options struct {
	Path      string // of the file, which must not be there
	Points    []Point
	SnapBytes int // as the filters have it
	Offloads  map[string]bool
	MaxBytes  int64 // of the file; 0: MaxFileBytes
	Version   string
}

// Capture is one capture under way.
type Capture struct {
	o     Options
	file  *os.File
	sum   hash.Hash
	told  wire.Capture
	reads sync.WaitGroup // one a point

	mu   sync.Mutex // what follows
	buf  *bufio.Writer
	out  *pcapng.Writer
	seen []uint64 // packets of each point
	lost []uint64 // what the kernel dropped of each
	err  error
}

// Start begins to write what points give.
func Start(o Options) (*Capture, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = MaxFileBytes
	}
	c := &Capture{o: o, seen: make([]uint64, len(o.Points)), lost: make([]uint64, len(o.Points)), sum: sha256.New()}
	under := o.Points[0]
	err := c.fit()
	if err == nil {
		err = c.open()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("capture on %q: %w", under.Interface, err), c.close())
	}
	c.told = wire.Capture{Name: filepath.Base(o.Path), Interface: under.Interface, SnapBytes: o.SnapBytes,
		Filter: under.Filter, Offloads: o.Offloads}
	if len(o.Points) > 1 {
		c.told.Above = o.Points[1].Interface
	}
	c.told.OpenBootNs, c.told.WallOffsetOpen = clocks()
	for i := range o.Points {
		c.reads.Go(func() { c.read(i) })
	}
	return c, nil
}

// leaveBytes is disk space that a capture leaves to the records, which matter
// more, and leastBytes what it begins with at least.
const (
	leaveBytes = 256 << 20
	leastBytes = 16 << 20
)

// fit bounds the file by the disk space that there is.
func (c *Capture) fit() error {
	dir := filepath.Dir(c.o.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("look for disk space: %w", err)
	}
	free := int64(st.Bavail)*int64(st.Bsize) - leaveBytes // 32 bits on some machines
	if free < leastBytes {
		return noRoom(free, dir)
	}
	c.o.MaxBytes = min(c.o.MaxBytes, free)
	return nil
}

// noRoom says what free bytes lack for a capture in a run's folder, and what other runs' captures are there.
func noRoom(free int64, dir string) *wire.Error {
	e := wire.Errorf(wire.CodeDiskFull, "a capture needs %d MB of free disk space more than the %d MB that are left "+
		"to records", (leastBytes-free)>>20+1, leaveBytes>>20)
	runs := slices.DeleteFunc(NewStore(filepath.Dir(dir)).Runs(), func(run string) bool {
		return run == filepath.Base(dir)
	})
	e.Cure = "free disk space"
	if len(runs) > 0 {
		e.Cure = fmt.Sprintf("captures of %s are there: `fieldmesh pull %s` collects them, `fieldmesh nodes forget "+
			"%[2]s` drops them; or free disk space", strings.Join(runs, ", "), runs[0])
	}
	return e
}

func (c *Capture) open() error {
	var err error
	var interfaces []pcapng.Interface
	for _, p := range c.o.Points {
		i := pcapng.Interface{Name: p.Interface, Filter: p.Filter, LinkType: pcapng.LinkEthernet,
			SnapBytes: c.o.SnapBytes}
		if p.BareIP {
			i.LinkType = pcapng.LinkIP
		}
		interfaces = append(interfaces, i)
	}
	if c.file, err = os.OpenFile(c.o.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	c.buf = bufio.NewWriterSize(io.MultiWriter(c.file, c.sum), 256<<10)
	c.out, err = pcapng.NewWriter(c.buf, c.o.Version, interfaces...)
	return err
}

// close gives back what is open.
func (c *Capture) close() error {
	var err error
	if c.file != nil {
		err = errors.Join(err, c.file.Close())
	}
	for _, p := range c.o.Points {
		err = errors.Join(err, p.Frames.Close())
	}
	return err
}

// read writes what comes of a point until its end.
func (c *Capture) read(point int) {
	drops, err := c.o.Points[point].Frames.Frames(func(f ring.Frame) error { return c.take(point, f) })
	c.mu.Lock()
	c.lost[point], c.err = drops, errors.Join(c.err, err)
	c.mu.Unlock()
}

// take writes one frame of a point, unless the file is as large as it may be.
func (c *Capture) take(point int, f ring.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[point]++
	if c.out.Bytes()+int64(len(f.Data))+128 > c.o.MaxBytes {
		c.told.FileDrops++
		return nil
	}
	direction := pcapng.Inbound
	if f.Outbound {
		direction = pcapng.Outbound
	}
	c.told.Packets++
	return c.out.Packet(point, f.TimeNs, f.WireBytes, direction, f.Data)
}

// Stop ends the capture and says what it came to. The file is on disk when it
// returns; what spoilt it is in the answer.
func (c *Capture) Stop() wire.Capture {
	var err error
	for _, p := range c.o.Points {
		err = errors.Join(err, p.Frames.End())
	}
	c.reads.Wait()
	err = errors.Join(err, c.err)
	c.told.CloseBootNs, c.told.WallOffsetClose = clocks()
	for i, lost := range c.lost {
		c.told.KernelDrops += lost
		err = errors.Join(err, c.out.Counts(i, c.told.CloseBootNs+c.told.WallOffsetClose, c.seen[i]+lost, lost))
	}
	err = errors.Join(err, c.buf.Flush(), c.file.Sync(), c.close())
	c.told.FileBytes, c.told.SHA256 = c.out.Bytes()-int64(c.buf.Buffered()), hex.EncodeToString(c.sum.Sum(nil))
	if err != nil {
		c.told.Error = err.Error()
	}
	return c.told
}

// clocks reads the boot clock, and how far the wall clock is ahead of it: the
// kernel stamps frames by the wall clock.
func clocks() (bootNs, wallOffsetNs int64) {
	read := func(id int32) int64 {
		var ts unix.Timespec
		_ = unix.ClockGettime(id, &ts) // cannot fail for clocks that every Linux has
		return ts.Nano()
	}
	best := int64(-1)
	for range 3 { // the narrowest of three, so that a pause between two readings does not count
		before := read(unix.CLOCK_BOOTTIME)
		wall := read(unix.CLOCK_REALTIME)
		after := read(unix.CLOCK_BOOTTIME)
		if width := after - before; best < 0 || width < best {
			best, bootNs, wallOffsetNs = width, before, wall-(before+after)/2
		}
	}
	return bootNs, wallOffsetNs
}
