package measure

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// kernelSocket is one netlink socket, kept open. A general library would
// allocate for each message; these run ten times a second beside a measured
// transfer. The socket belongs to the network namespace in which it was
// opened, so it is opened by its first use and not before.
type kernelSocket struct {
	protocol int
	groups   uint32 // of multicasts, as bits; 0 for none
	fd       int
	isOpen   bool
	seq      uint32
	buf      []byte
	overruns int // times that multicasts found no room
}

const (
	headerBytes = unix.SizeofNlMsghdr
	// receiveBytes is the size of a dump's part at most: the kernel makes
	// them as long as the reader's buffer, up to 32 KiB.
	receiveBytes = 32 << 10
)

var native = binary.NativeEndian

func (k *kernelSocket) open() error {
	if k.isOpen {
		return nil
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, k.protocol)
	if err != nil {
		return fmt.Errorf("open netlink socket: %w", err)
	}
	// The kernel answers within the call; the time-out only bounds a fault.
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	if err == nil && k.groups != 0 { // else the kernel does it; an app of Android's may not
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: k.groups})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("set up netlink socket: %w", err), unix.Close(fd))
	}
	k.fd, k.isOpen = fd, true
	if k.buf == nil {
		k.buf = make([]byte, receiveBytes)
	}
	return nil
}

// close gives the socket back; answers still under way go with it.
func (k *kernelSocket) close() error {
	if !k.isOpen {
		return nil
	}
	k.isOpen = false
	return unix.Close(k.fd)
}

// putHeader fills the netlink header of message, whose length is that of the slice.
func (k *kernelSocket) putHeader(message []byte, kind, flags uint16) uint32 {
	k.seq++
	native.PutUint32(message[0:], uint32(len(message)))
	native.PutUint16(message[4:], kind)
	native.PutUint16(message[6:], flags|unix.NLM_F_REQUEST)
	native.PutUint32(message[8:], k.seq)
	native.PutUint32(message[12:], 0)
	return k.seq
}

// send gives the kernel one or more messages. Netlink works on them within
// the call and queues the answers.
func (k *kernelSocket) send(messages []byte) error {
	for {
		n, err := unix.Write(k.fd, messages)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("ask the kernel: %w", err)
		case n != len(messages):
			return fmt.Errorf("ask the kernel: %d of %d bytes were taken", n, len(messages))
		}
		return nil
	}
}

// receive hands every message of one datagram to handle. The payload is valid
// within the call only.
func (k *kernelSocket) receive(handle func(kind uint16, seq uint32, payload []byte) error) error {
	n, err := unix.Read(k.fd, k.buf)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(k.fd, k.buf)
	}
	if err != nil {
		return fmt.Errorf("read the kernel's answer: %w", err)
	}
	return k.messages(n, handle)
}

// poll is receive of a multicast, without waiting; more is false when nothing
// was there. What did not fit into the socket's buffer is lost, and counted as
// an overrun.
func (k *kernelSocket) poll(handle func(kind uint16, seq uint32, payload []byte) error) (more bool, err error) {
	n, _, err := unix.Recvfrom(k.fd, k.buf, unix.MSG_DONTWAIT)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return false, nil
	case errors.Is(err, unix.EINTR):
		return true, nil
	case errors.Is(err, unix.ENOBUFS):
		k.overruns++
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read the kernel's news: %w", err)
	}
	return true, k.messages(n, handle)
}

// messages hands every message of the datagram in buf[:n] to handle.
func (k *kernelSocket) messages(n int, handle func(kind uint16, seq uint32, payload []byte) error) error {
	for rest := k.buf[:n]; len(rest) > 0; {
		if len(rest) < headerBytes {
			return fmt.Errorf("read the kernel's answer: %d bytes are not messages", len(rest))
		}
		length := int(native.Uint32(rest))
		if length < headerBytes || length > len(rest) {
			return fmt.Errorf("read the kernel's answer: a message of %d bytes in %d", length, len(rest))
		}
		if err := handle(native.Uint16(rest[4:]), native.Uint32(rest[8:]), rest[headerBytes:length]); err != nil {
			return err
		}
		rest = rest[min(align4(length), len(rest)):]
	}
	return nil
}

// errnoOf reads the payload of NLMSG_ERROR: a negative errno.
func errnoOf(payload []byte) unix.Errno {
	if len(payload) < 4 {
		return unix.EBADMSG
	}
	return unix.Errno(-int32(native.Uint32(payload)))
}

// attributes calls visit for each attribute in b (netlink(7): length, type,
// value, padded to 4 bytes). A malformed rest is left out.
func attributes(b []byte, visit func(kind uint16, value []byte)) {
	for len(b) >= unix.SizeofNlAttr {
		length := int(native.Uint16(b))
		if length < unix.SizeofNlAttr || length > len(b) {
			return
		}
		visit(native.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), b[unix.SizeofNlAttr:length])
		b = b[min(align4(length), len(b)):]
	}
}

func align4(n int) int { return (n + 3) &^ 3 }
