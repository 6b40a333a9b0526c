package testnet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Path joins two namespaces by a program in this process that takes single
// packets from one's TUN device and gives them to the other's: each may be
// lost by choice, all are delayed alike, and what goes from the first to the
// second passes a bottleneck. The devices have no offloads, so that a packet
// is a segment. It carries one TCP connection that the first opens.
type Path struct {
	cfg   PathConfig
	files [2]*os.File
	in    [2]chan []byte
	free  [2]time.Time // when the bottleneck has sent what it has
	wait  [2][]transit
	flow  flowSeen

	unread [2]error // why packets that waited in the end were not seen
}

// PathConfig is how a Path behaves. The hooks are called by one goroutine.
type PathConfig struct {
	Delay   time.Duration // one way
	RateBps float64       // of the bottleneck; 0 for none
	Queue   int           // packets that wait at it; 0 for any number
	// Drop decides on each data segment of the connection.
	Drop func(Segment) bool
	// Control decides on each segment of the sender that has SYN or FIN and no data.
	Control func(Segment) bool
	// Acked is called after the sender's kernel has had an ACK.
	Acked func(Ack)
}

// Segment is a data segment as the path sees it.
type Segment struct {
	At       time.Time
	Index    int    // of the segment in the stream, from 0: a retransmission has its first one's
	Times    int    // how often it was seen, this one included
	Offset   uint32 // of its first byte in the stream
	Seq      uint32 // as on the wire
	Bytes    int
	FromPort uint16
	ToPort   uint16
	Backlog  int // packets at the bottleneck before it
}

// Ack is an acknowledgement as the sender had it.
type Ack struct {
	At      time.Time
	Offset  uint32 // all before is acknowledged
	Highest uint32 // of what was acknowledged or SACKed, its end
}

type transit struct {
	due  time.Time
	data []byte
}

type flowSeen struct {
	known    bool
	isn      uint32
	starts   map[uint32]int // offset → index
	times    map[uint32]int
	control  map[uint32]int // sequence number → how often
	fromPort uint16
	toPort   uint16
}

// NewPath makes tun devices "path0" in both namespaces with addresses
// ("10.5.0.1/24") and carries packets until the test ends; the hooks have seen
// all that was sent before.
func NewPath(t testing.TB, a *NS, aCIDR string, b *NS, bCIDR string, cfg PathConfig) *Path {
	t.Helper()
	p := &Path{cfg: cfg, flow: flowSeen{starts: map[uint32]int{}, times: map[uint32]int{},
		control: map[uint32]int{}}}
	for i, end := range []struct {
		ns   *NS
		cidr string
	}{{a, aCIDR}, {b, bCIDR}} {
		p.files[i] = end.ns.Tun(t, "path0", end.cidr)
		p.in[i] = make(chan []byte, 4096)
	}
	var group sync.WaitGroup
	for i := range p.files {
		group.Go(func() { p.read(i) })
	}
	var failure error
	group.Go(func() { failure = p.carry() })
	t.Cleanup(func() {
		err := errors.Join(p.files[0].SetReadDeadline(time.Now()), p.files[1].SetReadDeadline(time.Now()))
		group.Wait()
		err = errors.Join(err, failure, p.unread[0], p.unread[1], p.files[0].Close(), p.files[1].Close())
		if err != nil {
			t.Errorf("path: %v", err)
		}
	})
	return p
}

// Tun makes a TUN device with an address, brings it up and gives its file, from
// which reading does not block. The caller closes it, which removes the device.
func (n *NS) Tun(t testing.TB, name, cidr string) *os.File {
	t.Helper()
	var file *os.File
	n.Do(t, func() (err error) {
		file, err = openTun(name)
		return err
	})
	// Without this, TCP would hold segments back to send several in one.
	n.netlink(t, func(h *netlink.Handle) error {
		l, err := h.LinkByName(name)
		if err != nil {
			return err
		}
		return h.LinkSetGSOMaxSegs(l, 1)
	})
	n.Up(t, name, cidr)
	return file
}

func openTun(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open tun: %w", err)
	}
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make tun %q: %w", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "tun"), nil
}

// read takes an end's packets until the test has ended, and then those that
// wait.
func (p *Path) read(end int) {
	defer close(p.in[end])
	buf := make([]byte, 2048)
	take := func(n int) {
		if n >= 20 && buf[0]>>4 == 4 {
			p.in[end] <- bytes.Clone(buf[:n])
		}
	}
	for {
		n, err := p.files[end].Read(buf)
		if err != nil {
			break // its deadline has come, which hides what waits
		}
		take(n)
	}
	raw, err := p.files[end].SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			for n, err := unix.Read(int(fd), buf); err == nil; n, err = unix.Read(int(fd), buf) {
				take(n)
			}
		})
	}
	p.unread[end] = err
}

// carry is the path's one loop: what came in is delayed, what is due goes out.
func (p *Path) carry() error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	in := p.in
	for in[0] != nil || in[1] != nil {
		timer.Reset(p.patience())
		var data []byte
		end, ok := -1, true
		select {
		case data, ok = <-in[0]:
			end = 0
		case data, ok = <-in[1]:
			end = 1
		case <-timer.C:
		}
		if !ok {
			in[end] = nil
		} else if end >= 0 {
			p.accept(end, data)
		}
		if err := p.deliver(); errors.Is(err, os.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (p *Path) patience() time.Duration {
	next := time.Hour
	for _, w := range p.wait {
		if len(w) > 0 {
			next = min(next, time.Until(w[0].due))
		}
	}
	return max(next, 0)
}

func (p *Path) accept(end int, data []byte) {
	now := time.Now()
	due := now
	if end == 0 {
		s, is := p.flow.segment(data)
		s.At, s.Backlog = now, p.backlog(now)
		if !is && s.Times > 0 && p.cfg.Control != nil && p.cfg.Control(s) {
			return
		}
		if is && p.cfg.Drop != nil && p.cfg.Drop(s) || p.cfg.Queue > 0 && s.Backlog >= p.cfg.Queue {
			return
		}
		if p.cfg.RateBps > 0 {
			if p.free[0].After(now) {
				due = p.free[0]
			}
			due = due.Add(time.Duration(float64(len(data)*8) / p.cfg.RateBps * 1e9))
			p.free[0] = due
		}
	}
	p.wait[end] = append(p.wait[end], transit{due.Add(p.cfg.Delay), data})
}

// backlog counts what the bottleneck has not sent yet.
func (p *Path) backlog(now time.Time) int {
	n := 0
	for i := len(p.wait[0]) - 1; i >= 0 && p.wait[0][i].due.After(now.Add(p.cfg.Delay)); i-- {
		n++
	}
	return n
}

func (p *Path) deliver() error {
	now := time.Now()
	for end := range p.wait {
		for len(p.wait[end]) > 0 && !p.wait[end][0].due.After(now) {
			data := p.wait[end][0].data
			p.wait[end] = p.wait[end][1:]
			// The kernel of the other end takes the packet in before Write returns.
			if _, err := p.files[1-end].Write(data); err != nil && !errors.Is(err, io.ErrShortWrite) &&
				!errors.Is(err, unix.EIO) {
				return fmt.Errorf("give a packet to its end: %w", err)
			}
			if ack, is := p.flow.ack(data); end == 1 && is && p.cfg.Acked != nil {
				ack.At = now
				p.cfg.Acked(ack)
			}
		}
	}
	return nil
}

// tcpOf gives the TCP header and payload of an IPv4 packet.
func tcpOf(data []byte) (tcp, payload []byte) {
	head := int(data[0]&15) * 4
	total := int(binary.BigEndian.Uint16(data[2:]))
	if data[9] != unix.IPPROTO_TCP || total > len(data) || head+20 > total {
		return nil, nil
	}
	tcp = data[head:total]
	size := int(tcp[12]>>4) * 4
	if size < 20 || size > len(tcp) {
		return nil, nil
	}
	return tcp[:size], tcp[size:]
}

// segment reports whether a packet is a data segment of the connection. One with
// SYN or FIN alone has a sequence number too, and is told with false.
func (f *flowSeen) segment(data []byte) (Segment, bool) {
	tcp, payload := tcpOf(data)
	if tcp == nil {
		return Segment{}, false
	}
	const fin, syn = 1, 2
	seq := binary.BigEndian.Uint32(tcp[4:])
	if tcp[13]&syn != 0 {
		f.known, f.isn = true, seq
		f.fromPort, f.toPort = binary.BigEndian.Uint16(tcp), binary.BigEndian.Uint16(tcp[2:])
	}
	if f.known && len(payload) == 0 && tcp[13]&(fin|syn) != 0 {
		f.control[seq]++
		return Segment{Times: f.control[seq], Seq: seq, FromPort: f.fromPort, ToPort: f.toPort}, false
	}
	if !f.known || len(payload) == 0 {
		return Segment{}, false
	}
	offset := seq - f.isn - 1
	if _, seen := f.starts[offset]; !seen {
		f.starts[offset] = len(f.starts)
	}
	f.times[offset]++
	return Segment{Index: f.starts[offset], Times: f.times[offset], Offset: offset, Seq: seq, Bytes: len(payload),
		FromPort: f.fromPort, ToPort: f.toPort}, true
}

func (f *flowSeen) ack(data []byte) (Ack, bool) {
	tcp, _ := tcpOf(data)
	const ackFlag = 16
	if tcp == nil || !f.known || tcp[13]&ackFlag == 0 || binary.BigEndian.Uint16(tcp[2:]) != f.fromPort {
		return Ack{}, false
	}
	a := Ack{Offset: binary.BigEndian.Uint32(tcp[8:]) - f.isn - 1}
	a.Highest = a.Offset
	const kindEnd, kindNop, kindSack = 0, 1, 5 // RFC 9293, section 3.2; RFC 2018, section 3
	for o := tcp[20:]; len(o) > 0 && o[0] != kindEnd; {
		if o[0] == kindNop {
			o = o[1:]
			continue
		}
		if len(o) < 2 || int(o[1]) < 2 || int(o[1]) > len(o) {
			break
		}
		if o[0] == kindSack {
			for b := o[2:o[1]]; len(b) >= 8; b = b[8:] {
				if end := binary.BigEndian.Uint32(b[4:]) - f.isn - 1; int32(end-a.Highest) > 0 {
					a.Highest = end
				}
			}
		}
		o = o[o[1]:]
	}
	return a, true
}
