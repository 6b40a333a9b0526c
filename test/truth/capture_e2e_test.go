//go:build e2e

package truth

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// watch is a tcpdump at work on a node's interface under test.
type watch struct {
	node, file string
	cmd        *exec.Cmd
	done       chan struct{}
	mu         sync.Mutex
	said       strings.Builder
	beganNs    int64 // boot clock: it listens
	endedNs    int64 // boot clock; set before done is closed
}

func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said.Write(p)
	if w.beganNs == 0 && strings.Contains(w.said.String(), "listening on") {
		w.beganNs = bootNs()
	}
	return len(p), nil
}

// covers reports whether it was at work from one moment to another.
func (w *watch) covers(fromNs, toNs int64) bool {
	return w.beganNs != 0 && w.beganNs <= fromNs && toNs <= w.endedNs
}

// keepWatch has a capture at work at every node of the present field, and
// compares the clocks: tcpdump's is the wall's.
func (r *run) keepWatch() {
	r.out.clocks.sample()
	for _, n := range nodes {
		if w := r.watches[n]; w != nil {
			select {
			case <-w.done:
			default:
				continue
			}
		}
		ns := r.netns(n)
		if ns == "" {
			continue
		}
		w, err := startWatch(ns, n, filepath.Join(r.dir, fmt.Sprintf("%s-%d.pcap", n, len(r.out.watches))))
		if err != nil {
			continue // the field is being built
		}
		r.watches[n] = w
		r.out.watches = append(r.out.watches, w)
	}
}

// startWatch starts a capture of a node's interface under test.
func startWatch(ns, node, file string) (*watch, error) {
	w := &watch{node: node, file: file, done: make(chan struct{})}
	w.cmd = exec.Command("ip", "netns", "exec", ns, "tcpdump", "-n", "-i", "wlan0", "-s", "96", "-B", "8192",
		"--time-stamp-precision=nano", "--immediate-mode", "-U", "-Z", "root", "-w", file, "tcp")
	w.cmd.Stderr = w
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = w.cmd.Wait(); w.endedNs = bootNs(); close(w.done) }()
	return w, nil
}

// watchOn is a capture that listens, until the test ends.
func watchOn(t *testing.T, ns, node, file string) *watch {
	t.Helper()
	w, err := startWatch(ns, node, file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cmd.Process.Kill(); <-w.done })
	for until := time.Now().Add(20 * time.Second); !w.listens(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("tcpdump does not listen: %s", w.said.String())
		}
	}
	return w
}

func (w *watch) listens() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.beganNs != 0
}

// endWatches ends the captures that are still at work.
func (r *run) endWatches() {
	for _, w := range r.out.watches {
		_ = w.cmd.Process.Signal(os.Interrupt) // it may have ended
		<-w.done
		if text := w.said.String(); strings.Contains(text, "dropped by kernel") &&
			!strings.Contains(text, "\n0 packets dropped by kernel") {
			r.t.Errorf("tcpdump at %s has lost packets: %s", w.node, text)
		}
	}
}

// clocks are comparisons of the wall clock with the boot clock.
type clocks []struct{ bootNs, aheadNs int64 }

func (c *clocks) sample() {
	// A test that loses its processor between two readings would have a capture's
	// packets elsewhere: such a comparison is made again.
	const together = int64(100 * time.Microsecond)
	for {
		before := bootNs()
		if n := len(*c); n > 0 && before-(*c)[n-1].bootNs < 1e9 {
			return
		}
		wall := time.Now().UnixNano()
		after := bootNs()
		if after-before <= together {
			mid := before + (after-before)/2
			*c = append(*c, struct{ bootNs, aheadNs int64 }{mid, wall - mid})
		}
	}
}

// aheadAt is how far the wall clock is ahead, by the comparison nearest to a moment.
func (c clocks) aheadAt(boot int64) int64 {
	nearest := slices.MinFunc(c, func(a, b struct{ bootNs, aheadNs int64 }) int {
		return cmp.Compare(max(a.bootNs-boot, boot-a.bootNs), max(b.bootNs-boot, boot-b.bootNs))
	})
	return nearest.aheadNs
}

// segment is a TCP segment over IPv4 as tcpdump saw it.
type segment struct {
	wallNs   int64
	from, to netip.AddrPort
	seq, ack uint32
	flags    byte
	payload  int
}

const (
	flagSYN = 0x02
	flagACK = 0x10
)

// segments reads a capture: pcap with nanoseconds, of Ethernet. The last packet
// of a tcpdump that was killed may be torn.
func segments(t *testing.T, path string) (out []segment) {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was killed before it began
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	head := make([]byte, 24)
	if _, err := io.ReadFull(in, head); errors.Is(err, io.EOF) {
		return nil
	}
	if binary.LittleEndian.Uint32(head) != 0xa1b23c4d || binary.LittleEndian.Uint32(head[20:]) != 1 {
		t.Fatalf("%s is no pcap of Ethernet with nanoseconds", path)
	}
	for record := head[:16]; ; {
		if _, err := io.ReadFull(in, record); err != nil {
			return out
		}
		wall := int64(binary.LittleEndian.Uint32(record))*1e9 + int64(binary.LittleEndian.Uint32(record[4:]))
		frame := make([]byte, binary.LittleEndian.Uint32(record[8:]))
		if _, err := io.ReadFull(in, frame); err != nil {
			return out
		}
		if s, ok := dissect(frame); ok {
			s.wallNs = wall
			out = append(out, s)
		}
	}
}

// dissect reads Ethernet, IPv4 and TCP headers. Lengths are those of the
// headers, because the capture cuts packets off.
func dissect(frame []byte) (s segment, ok bool) {
	const ethernet = 14
	if len(frame) < ethernet+20 || binary.BigEndian.Uint16(frame[12:]) != unix.ETH_P_IP ||
		frame[ethernet+9] != unix.IPPROTO_TCP {
		return s, false
	}
	ip := frame[ethernet:]
	header := int(ip[0]&15) * 4
	if len(ip) < header+20 {
		return s, false
	}
	tcp := ip[header:]
	address := func(at int) netip.Addr { a, _ := netip.AddrFromSlice(ip[at : at+4]); return a }
	s.from = netip.AddrPortFrom(address(12), binary.BigEndian.Uint16(tcp))
	s.to = netip.AddrPortFrom(address(16), binary.BigEndian.Uint16(tcp[2:]))
	s.seq, s.ack, s.flags = binary.BigEndian.Uint32(tcp[4:]), binary.BigEndian.Uint32(tcp[8:]), tcp[13]
	s.payload = int(binary.BigEndian.Uint16(ip[2:])) - header - int(tcp[12]>>4)*4
	return s, true
}

// counted bounds how many bytes of payload the receiver's kernel took in a
// window. Its count at a moment lies between what it had acknowledged and what
// had come without a hole before it: the capture sees a packet before TCP does,
// and TCP may take it late (a socket that is in use) or not at all (no memory).
type counted struct{ leastBytes, mostBytes int64 }

func (c *counted) add(of counted) {
	c.leastBytes += of.leastBytes
	c.mostBytes += of.mostBytes
}

func (c counted) String() string {
	return fmt.Sprintf("%.4f to %.4f MB", float64(c.leastBytes)/1e6, float64(c.mostBytes)/1e6)
}

// count counts the payload of the connections from one address to another in a
// window of the wall clock.
func count(all []segment, from, to netip.AddrPort, openNs, closeNs int64) (sum counted) {
	var c connection
	for _, s := range all {
		switch {
		case s.wallNs > closeNs:
			sum.add(c.gain())
			return sum
		case s.from == from && s.to == to && s.flags&flagSYN != 0 && (!c.known || s.seq != c.isn):
			sum.add(c.gain())
			c = connection{known: true, isn: s.seq}
		case s.from == from && s.to == to && s.payload > 0 && c.known:
			c.arrives(s)
		case s.from == to && s.to == from && s.flags&flagACK != 0 && c.known:
			c.acked = max(c.acked, min(int64(int32(s.ack-c.isn))-1, c.front)) // a FIN is not a payload
		}
		if s.wallNs <= openNs {
			c.frontAtOpen, c.ackedAtOpen = c.front, c.acked
		}
	}
	sum.add(c.gain())
	return sum
}

// connection is how far one has come, in bytes of its payload.
type connection struct {
	known                    bool
	isn                      uint32
	front                    int64      // all before has come
	beyond                   [][2]int64 // what came beyond a hole
	acked                    int64      // all before is acknowledged
	frontAtOpen, ackedAtOpen int64
}

func (c *connection) arrives(s segment) {
	begin := int64(int32(s.seq-c.isn)) - 1
	c.beyond = append(c.beyond, [2]int64{begin, begin + int64(s.payload)})
	slices.SortFunc(c.beyond, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	for len(c.beyond) > 0 && c.beyond[0][0] <= c.front {
		c.front = max(c.front, c.beyond[0][1])
		c.beyond = c.beyond[1:]
	}
}

func (c *connection) gain() counted {
	return counted{leastBytes: max(0, c.acked-c.frontAtOpen), mostBytes: c.front - c.ackedAtOpen}
}
