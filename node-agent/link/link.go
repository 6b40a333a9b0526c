// Package link asks by ioctl what an interface is and which IPv4 addresses it has. Netlink
// tells more; this much Android tells an app, too (unpriv_sock_ioctls of its SELinux policy).
// It changes nothing.
package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Flags are an interface's (netdevice(7)); an error says that there is none, or that they
// cannot be read.
func Flags(name string) (net.Flags, error) {
	var raw uint16
	err := ask(name, func(fd int, ifr *unix.Ifreq) error {
		err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr)
		raw = ifr.Uint16()
		return err
	})
	var flags net.Flags
	if raw&unix.IFF_UP != 0 {
		flags |= net.FlagUp
	}
	if raw&unix.IFF_RUNNING != 0 {
		flags |= net.FlagRunning
	}
	return flags, err
}

// State is what an interface has of all that packets to its network need.
type State struct {
	Up      bool // it was set up, and nobody has set it down
	Carrier bool
	Address bool // the one that was asked for
}

// Attached reports whether it has all of it: then packets to its network have a way,
// unless somebody has taken it.
func (s State) Attached() bool { return s.Up && s.Carrier && s.Address }

// Look reads the state of an interface with an own address; an error is that of Flags.
func Look(name string, own netip.Addr) (State, error) {
	flags, err := Flags(name)
	if err != nil {
		return State{}, err
	}
	_, has := Has(name, own)
	return State{Up: flags&net.FlagUp != 0, Carrier: flags&net.FlagRunning != 0, Address: has}, nil
}

// Has reports whether an interface has an address, and its prefix length there.
func Has(name string, address netip.Addr) (bits int, has bool) {
	if !address.Is4() {
		return hasByNetlink(name, address)
	}
	// Asked with an address, the kernel answers with that one where there is it, and with
	// the first one otherwise (devinet_ioctl).
	err := ask(name, func(fd int, ifr *unix.Ifreq) error {
		raw := address.As4()
		if err := ifr.SetInet4Addr(raw[:]); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFADDR, ifr); err != nil {
			return err
		}
		is, err := ifr.Inet4Addr()
		if err != nil || netip.AddrFrom4([4]byte(is)) != address {
			return errors.Join(err, unix.EADDRNOTAVAIL)
		}
		if err := unix.IoctlIfreq(fd, unix.SIOCGIFNETMASK, ifr); err != nil {
			return err
		}
		mask, err := ifr.Inet4Addr()
		bits, _ = net.IPMask(mask).Size()
		return err
	})
	return bits, err == nil
}

// hasByNetlink is Has for IPv6, of which no ioctl tells.
func hasByNetlink(name string, address netip.Addr) (bits int, has bool) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, false
	}
	all, _ := i.Addrs()
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == address {
			return p.Bits(), true
		}
	}
	return 0, false
}

// With is the interface that has an IPv4 address; empty for none.
func With(address netip.Addr) (name string) {
	for _, is := range addresses() {
		if is.address == address {
			return is.name
		}
	}
	return ""
}

type addressOf struct {
	name    string
	address netip.Addr
}

// most is how many addresses are looked at.
const most = 256

// addresses lists those of all interfaces (SIOCGIFCONF, netdevice(7)).
func addresses() (out []addressOf) {
	_ = withSocket(func(fd int) error { // what cannot be read has none
		requests := make([]struct {
			name [unix.IFNAMSIZ]byte
			addr unix.RawSockaddrInet4
			rest [unsafe.Sizeof(unix.Ifreq{}) - unix.IFNAMSIZ - unsafe.Sizeof(unix.RawSockaddrInet4{})]byte
		}, most)
		of := struct {
			length int32
			buffer unsafe.Pointer
		}{int32(uintptr(len(requests)) * unsafe.Sizeof(requests[0])), unsafe.Pointer(&requests[0])}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCGIFCONF,
			uintptr(unsafe.Pointer(&of))); errno != 0 {
			return errno
		}
		for _, r := range requests[:uintptr(of.length)/unsafe.Sizeof(requests[0])] {
			out = append(out, addressOf{unix.ByteSliceToString(r.name[:]), netip.AddrFrom4(r.addr.Addr)})
		}
		return nil
	})
	return out
}

func ask(name string, question func(fd int, ifr *unix.Ifreq) error) error {
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		err = withSocket(func(fd int) error { return question(fd, ifr) })
	}
	if err != nil {
		return fmt.Errorf("look at interface %q: %w", name, err)
	}
	return nil
}

// withSocket opens a socket of this thread's network namespace for a question.
func withSocket(question func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(question(fd), unix.Close(fd))
}
