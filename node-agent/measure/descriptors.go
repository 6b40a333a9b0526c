package measure

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/descriptor"
)

// On a node without root, iperf3's sockets are reached by descriptors of our own, of the same
// sockets. getsockopt reports what sock_diag does, by the same function of the kernel's
// (tcp_get_info). An Android app may not ask the kernel for sockets. And where one may, the
// kernel's notice of a socket that ends with a reset, as iperf3's are told to there
// (node-agent/traffic), comes when its counts are gone (tcp_disconnect).
//
// A socket of which there is such a descriptor stays open when its program closes it: its
// last counts can be read then, but until it is let go its peer hears nothing, and what the
// peer sends is still received. So each is looked at often, and let go at once.

// lookIfClosed is how often.
const lookIfClosed = 5 * time.Millisecond

// How TCP's sockets are read, as records have it (wire.Provenance).
const (
	BySockDiag    = "sock_diag"
	ByDescriptors = "descriptors"
)

// Lists reports whether the kernel lists sockets for this process; else it refuses to, or has
// no means of it (CONFIG_INET_DIAG, CONFIG_INET_TCP_DIAG).
func Lists() bool {
	t := NewTCP("", nil, nil)
	err := t.sock.open()
	if err == nil {
		err = errors.Join(t.dump(unix.AF_INET, func(diagMessage) error { return nil }), t.Close())
	}
	return !slices.ContainsFunc([]error{fs.ErrPermission, unix.EPROTONOSUPPORT, unix.ENOENT},
		func(e error) bool { return errors.Is(err, e) })
}

// ReachBy has the flows' sockets reached in the programs that have them, those that run when
// it is asked. It is called before the first sample.
func (t *TCP) ReachBy(programs func() []*descriptor.Program) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.programs, t.taken = programs, map[uint64]*taken{}
}

// lookOften lets sockets go soon after their programs close them, for as long as there are any.
func (t *TCP) lookOften() {
	for more := true; more; {
		time.Sleep(lookIfClosed)
		t.mu.Lock()
		t.letClosedGo()
		more = len(t.taken) > 0
		t.looksOften = more
		t.mu.Unlock()
	}
}

// taken is a socket that a program has, and this process too.
type taken struct {
	fd      int
	program *descriptor.Program
	of      descriptor.Socket
	id      [socketIDBytes]byte
	family  uint8
	control bool // iperf3's control connection
	info    [tcpInfoBytes]byte
	name    [congestionBytes]byte // of its congestion control
}

// tcpInfoBytes is more than any kernel's struct tcp_info has.
const tcpInfoBytes = 512

// congestionBytes is what the kernel takes names of (TCP_CA_NAME_MAX, net/tcp.h).
const congestionBytes = 16

// lookAtPrograms takes the flows' sockets that are new, and gives a sample of every one.
func (t *TCP) lookAtPrograms() ([]*sample, error) {
	t.strange = 0
	samples, err := t.readTaken()
	for _, p := range t.programs() {
		var sockets []descriptor.Socket
		if err == nil {
			sockets, err = p.Sockets()
		}
		for _, s := range sockets {
			if t.has(p, s) {
				continue
			}
			more, takeErr := t.take(p, s)
			if err = takeErr; err != nil {
				return nil, err
			}
			if more != nil {
				samples = append(samples, more)
			}
		}
	}
	return samples, err
}

func (t *TCP) has(p *descriptor.Program, s descriptor.Socket) bool {
	for _, k := range t.taken {
		if k.program == p && k.of == s {
			return true
		}
	}
	return false
}

// take takes a socket if it is one of the flows', and gives its sample. A stranger's is not kept.
func (t *TCP) take(p *descriptor.Program, s descriptor.Socket) (*sample, error) {
	fd, ok, err := p.Take(s)
	if !ok || err != nil {
		return nil, err
	}
	k := &taken{fd: fd, program: p, of: s}
	m, ok, err := k.begin()
	if !ok { // of another kind, or without a peer
		return nil, errors.Join(err, unix.Close(fd))
	}
	out, err := t.meet(m)
	if out == nil || out.Stranger || err != nil {
		return out, errors.Join(err, unix.Close(fd))
	}
	k.control = out.Stream == nil
	t.taken[m.cookie] = k
	if !t.looksOften {
		t.looksOften = true
		go t.lookOften()
	}
	return out, nil
}

// strangers are those at the flows' servers, whether iperf3 has taken them or not, where the
// kernel lists sockets.
func (t *TCP) strangers(samples []*sample) ([]*sample, error) {
	t.strange = 0
	samples = slices.DeleteFunc(samples, func(s *sample) bool { return s.Stranger })
	err := t.sock.open()
	for _, family := range t.families {
		if err != nil {
			break
		}
		err = t.dump(family, func(m diagMessage) error {
			if _, _, whose := t.match(m.local(), m.remote()); whose != ofStranger {
				return nil
			}
			s, err := t.meet(m)
			if s != nil {
				samples = append(samples, s)
			}
			return err
		})
	}
	return samples, err
}

// begin reads what stays as it is; false without an error: it is no connected socket of TCP's.
func (k *taken) begin() (m diagMessage, ok bool, err error) {
	protocol, err := unix.GetsockoptInt(k.fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err != nil {
		return m, false, fmt.Errorf("read a socket's protocol: %w", err)
	}
	if protocol != unix.IPPROTO_TCP {
		return m, false, nil
	}
	peer, err := unix.Getpeername(k.fd)
	if errors.Is(err, unix.ENOTCONN) {
		return m, false, nil
	}
	own, errOwn := unix.Getsockname(k.fd)
	cookie, errCookie := unix.GetsockoptUint64(k.fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err := errors.Join(err, errOwn, errCookie); err != nil {
		return m, false, fmt.Errorf("read a socket's ends: %w", err)
	}
	k.family = k.putEnd(own, 0, 4)
	k.putEnd(peer, 2, 20)
	native.PutUint32(k.id[40:], uint32(cookie))
	native.PutUint32(k.id[44:], uint32(cookie>>32))
	m, err = k.read()
	return m, err == nil, err
}

// putEnd writes an address as struct inet_diag_sockid has it.
func (k *taken) putEnd(sa unix.Sockaddr, port, address int) (family uint8) {
	var at netip.AddrPort
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		family, at = unix.AF_INET, netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		family, at = unix.AF_INET6, netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	k.id[port], k.id[port+1] = byte(at.Port()>>8), byte(at.Port())
	copy(k.id[address:], at.Addr().AsSlice())
	return family
}

// read reads the socket now, as inet_diag tells it.
func (k *taken) read() (diagMessage, error) {
	info, errInfo := k.option(unix.TCP_INFO, k.info[:])
	name, errName := k.option(unix.TCP_CONGESTION, k.name[:])
	if err := errors.Join(errInfo, errName); err != nil {
		return diagMessage{}, fmt.Errorf("read a socket's counters: %w", err)
	}
	if end := bytes.IndexByte(name, 0); end >= 0 {
		name = name[:end]
	}
	unread, errIn := unix.IoctlGetInt(k.fd, unix.SIOCINQ)
	unacked, errOut := unix.IoctlGetInt(k.fd, unix.SIOCOUTQ)
	m := diagMessage{family: k.family, state: info[0], id: k.id[:], unread: uint32(unread),
		unacked: uint32(unacked), info: info, congestion: name,
		cookie: uint64(native.Uint32(k.id[40:])) | uint64(native.Uint32(k.id[44:]))<<32}
	if err := errors.Join(errIn, errOut); err != nil {
		return m, fmt.Errorf("read a socket's queues: %w", err)
	}
	return m, nil
}

// option reads one of TCP's options, as long as this kernel has it.
func (k *taken) option(which int, into []byte) ([]byte, error) {
	n := uint32(len(into))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(k.fd), unix.IPPROTO_TCP, uintptr(which),
		uintptr(unsafe.Pointer(&into[0])), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return nil, errno
	}
	return into[:n], nil
}

// readTaken gives a sample of every socket that its program still has.
func (t *TCP) readTaken() ([]*sample, error) {
	t.letClosedGo()
	var samples []*sample
	for i := range t.sockets {
		f := &t.sockets[i]
		k := t.taken[f.cookie]
		if f.gone = k == nil; f.gone {
			continue
		}
		m, err := k.read()
		if err != nil {
			return nil, err
		}
		s := new(sample)
		if err := f.fill(s, m); err != nil {
			return nil, err
		}
		samples = append(samples, s)
	}
	t.forget()
	return samples, nil
}

// letClosedGo lets those sockets go that their programs have closed, and keeps their last samples.
func (t *TCP) letClosedGo() {
	for cookie, k := range t.taken {
		if k.program.Has(k.of) {
			continue
		}
		m, err := k.read()
		delete(t.taken, cookie)
		if err = errors.Join(err, unix.Close(k.fd)); err != nil || k.control {
			continue // its end is then not known, as Edge tells
		}
		at := slices.IndexFunc(t.sockets, func(f found) bool { return f.cookie == cookie })
		m.state = stateClose
		s := new(sample)
		if at >= 0 && t.sockets[at].fill(s, m) == nil {
			t.closed = append(t.closed, s)
		}
	}
}

// addClosed adds the last samples of sockets that were closed since.
func (t *TCP) addClosed(samples []*sample) []*sample {
	for _, s := range t.closed {
		delete(t.living, s.Cookie)
	}
	samples = append(samples, t.closed...)
	t.closed = nil
	return samples
}

// letGo lets all sockets go.
func (t *TCP) letGo() error {
	var err error
	for _, k := range t.taken {
		err = errors.Join(err, unix.Close(k.fd))
	}
	clear(t.taken)
	return err
}
