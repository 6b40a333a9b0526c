//go:build e2e || guest

package tcp

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// peer plays the far end of connections: it takes what they send from a TUN
// device, and acknowledges what and when the test says. So what a congestion
// control is told is the test's, and the same for several. Nothing runs beside
// it: the sender's kernel does its part while a packet is given to it.
type peer struct {
	ns    *testnet.NS
	file  *os.File
	fd    int // of file
	conns map[uint16]*played
	sack  bool // is offered to the connections
	syns  int  // of a connection that are lost
	buf   []byte
}

// played is one connection to it.
type played struct {
	congestion string
	fd         int // its socket
	port       uint16
	isn        uint32
	sent       uint32 // bytes of the stream that it has sent
	again      int    // segments that it has sent once more
	acked      uint32 // bytes that it was told to have arrived
	looked     int    // SYNs seen
	receiver   *receiver
}

// newPeer makes a namespace with one behind its device. The connections are
// those of the experiments: nothing that the papers' TCPs did not have. Their
// timers are out of the way, however late the machine is.
func newPeer(t *testing.T, sack bool) *peer {
	t.Helper()
	testnet.Need(t)
	p := &peer{ns: testnet.NewNS(t, "snd"), conns: map[uint16]*played{}, sack: sack, buf: make([]byte, 2048)}
	setSysctls(t, p.ns, classicSysctls(sack))
	setSysctls(t, p.ns, map[string]string{"tcp_wmem": "4096 8388608 8388608", "tcp_rto_min_us": "20000000",
		"tcp_slow_start_after_idle": "0"})
	p.file = p.ns.Tun(t, "path0", senderAddr+"/24")
	t.Cleanup(func() { _ = p.file.Close() })
	p.fd = int(p.file.Fd())
	if err := unix.SetNonblock(p.fd, true); err != nil {
		t.Fatal(err)
	}
	return p
}

// dial opens a connection to the peer, whose SYN is answered after a round trip.
func (p *peer) dial(t *testing.T, congestion string, roundTrip time.Duration) *played {
	t.Helper()
	c := &played{congestion: congestion}
	p.ns.Do(t, func() (err error) {
		c.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		return err
	})
	t.Cleanup(func() { p.hangUp(t, c) })
	here, there := &unix.SockaddrInet4{Addr: netip.MustParseAddr(senderAddr).As4()},
		&unix.SockaddrInet4{Addr: netip.MustParseAddr(receiverAddr).As4(), Port: 5000}
	connect := func() error {
		if err := unix.Connect(c.fd, there); !errors.Is(err, unix.EINPROGRESS) {
			return errors.Join(errors.New("connect did not wait"), err)
		}
		return nil
	}
	for _, err := range []error{
		unix.SetsockoptString(c.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion),
		unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, mss),
		unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}), // it ends at once
		unix.Bind(c.fd, here),
	} {
		if err != nil {
			t.Fatalf("prepare connection with %s: %v", congestion, err)
		}
	}
	at, err := unix.Getsockname(c.fd)
	if err != nil {
		t.Fatal(err)
	}
	c.port = uint16(at.(*unix.SockaddrInet4).Port)
	p.conns[c.port] = c
	if err := connect(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); c.looked <= p.syns; {
		if p.drain(t); time.Now().After(until) {
			t.Fatalf("%d SYNs came", c.looked)
		}
	}
	time.Sleep(roundTrip)
	p.give(t, p.synAck(c))
	if s := p.info(t, c).State; s != 1 { // TCP_ESTABLISHED
		t.Fatalf("the connection is in state %d after its SYN was answered", s)
	}
	return c
}

// hangUp ends a connection; the peer does not care how.
func (p *peer) hangUp(t *testing.T, c *played) {
	t.Helper()
	if p.conns[c.port] != c {
		return
	}
	delete(p.conns, c.port)
	if err := unix.Close(c.fd); err != nil {
		t.Error(err)
	}
}

// write has the connection send segments, or queue them.
func (c *played) write(t *testing.T, segments int) {
	t.Helper()
	if n, err := unix.Write(c.fd, make([]byte, segments*mss)); err != nil || n != segments*mss {
		t.Fatalf("write %d segments: %d bytes, %v", segments, n, err)
	}
}

// drain takes what was sent from the device, and notes it.
func (p *peer) drain(t *testing.T) {
	t.Helper()
	for {
		n, err := unix.Read(p.fd, p.buf)
		if errors.Is(err, unix.EAGAIN) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if n < 40 || p.buf[0] != 4<<4|5 || p.buf[9] != unix.IPPROTO_TCP {
			continue
		}
		segment := p.buf[20:n]
		c := p.conns[binary.BigEndian.Uint16(segment)]
		if c == nil {
			continue
		}
		seq, size := binary.BigEndian.Uint32(segment[4:]), len(segment)-int(segment[12]>>4)*4
		const syn = 2
		if segment[13]&syn != 0 {
			c.isn = seq
			c.looked++
			continue
		}
		if c.receiver != nil && size > 0 {
			c.receiver.underway = append(c.receiver.underway, seq-c.isn-1)
		}
		if end := seq - c.isn - 1 + uint32(size); end > c.sent {
			c.sent = end
		} else if size > 0 {
			c.again++
		}
	}
}

// give has the sender's kernel take a packet in; it has done so when give returns.
func (p *peer) give(t *testing.T, packet []byte) {
	t.Helper()
	if _, err := unix.Write(p.fd, packet); err != nil {
		t.Fatal(err)
	}
}

// ownISN is the peer's own: it sends no data.
const ownISN = 7000

// synAck answers a SYN with a window of a gigabyte.
func (p *peer) synAck(c *played) []byte {
	const synAndAck = 18
	// MSS, window scale (RFC 9293, section 3.2; RFC 7323, section 2.2)
	options := []byte{2, 4, mss >> 8, mss & 255, 3, 3, 14, 1}
	if p.sack {
		options = append(options, 4, 2, 1, 1) // SACK permitted (RFC 2018, section 2)
	}
	return packet(c, ownISN, 0, synAndAck, options)
}

// ack tells that the stream has arrived up to a byte, and blocks beyond.
func (p *peer) ack(c *played, upTo uint32, blocks ...[2]uint32) []byte {
	const ackOnly = 16
	var options []byte
	if len(blocks) > 0 {
		options = append(options, 1, 1, 5, byte(2+8*len(blocks))) // RFC 2018, section 3
	}
	for _, b := range blocks {
		options = binary.BigEndian.AppendUint32(options, c.isn+1+b[0])
		options = binary.BigEndian.AppendUint32(options, c.isn+1+b[1])
	}
	return packet(c, ownISN+1, upTo, ackOnly, options)
}

func packet(c *played, seq, acked uint32, flags byte, options []byte) []byte {
	b := make([]byte, 40, 40+len(options))
	b = append(b, options...)
	from, to := netip.MustParseAddr(receiverAddr).As4(), netip.MustParseAddr(senderAddr).As4()
	b[0], b[8], b[9] = 4<<4|5, 64, unix.IPPROTO_TCP
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	copy(b[12:], from[:])
	copy(b[16:], to[:])
	binary.BigEndian.PutUint16(b[10:], checksum(b[:20]))
	tcp := b[20:]
	binary.BigEndian.PutUint16(tcp, 5000)
	binary.BigEndian.PutUint16(tcp[2:], c.port)
	binary.BigEndian.PutUint32(tcp[4:], seq)
	binary.BigEndian.PutUint32(tcp[8:], c.isn+1+acked)
	tcp[12], tcp[13] = byte(len(tcp)/4)<<4, flags
	binary.BigEndian.PutUint16(tcp[14:], 0xffff)
	pseudo := append(append([]byte{}, b[12:20]...), 0, unix.IPPROTO_TCP, 0, byte(len(tcp)))
	binary.BigEndian.PutUint16(tcp[16:], checksum(append(pseudo, tcp...)))
	return b
}

// checksum is RFC 1071's, of an even number of bytes.
func checksum(b []byte) uint16 {
	sum := uint32(0)
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum>>16 + sum)
}

func (p *peer) info(t *testing.T, c *played) *unix.TCPInfo {
	t.Helper()
	info, err := unix.GetsockoptTCPInfo(c.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		t.Fatal(err)
	}
	return info
}
