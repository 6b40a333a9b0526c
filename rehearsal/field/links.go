package field

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const (
	radioLink   = "wlan0"
	controlLink = "ctl0"
	bridgeLink  = "br0"
)

// quiet keeps a namespace from speaking IPv6 of its own accord: no address,
// no duplicate detection, no router solicitation on the tested interface.
func quiet() error {
	for _, which := range []string{"all", "default"} {
		path := "/proc/sys/net/ipv6/conf/" + which + "/disable_ipv6"
		err := os.WriteFile(path, []byte("1\n"), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("turn IPv6 off: %w", err)
		}
	}
	return nil
}

// within is netlink in the calling thread's namespace.
func within(f func(*netlink.Handle) error) error {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer h.Close()
	return f(h)
}

// bringUp gives a link an address (none when nil) and brings it up.
func bringUp(h *netlink.Handle, name string, addr *net.IPNet) error {
	l, err := h.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find link %q: %w", name, err)
	}
	if addr != nil {
		if err := h.AddrAdd(l, &netlink.Addr{IPNet: addr}); err != nil {
			return fmt.Errorf("add address %s to %q: %w", addr, name, err)
		}
	}
	if err := h.LinkSetUp(l); err != nil {
		return fmt.Errorf("bring %q up: %w", name, err)
	}
	return nil
}

// createControl fills the control namespace: a bridge with the address from
// which the controller reaches the nodes.
func createControl(addr *net.IPNet) error {
	if err := quiet(); err != nil {
		return err
	}
	return within(func(h *netlink.Handle) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = bridgeLink
		if err := h.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			return fmt.Errorf("create bridge: %w", err)
		}
		return errors.Join(bringUp(h, "lo", nil), bringUp(h, bridgeLink, addr))
	})
}

// tunDevice is where the kernel makes interfaces that a program serves.
const tunDevice = "/dev/net/tun"

// checkTun reports what is wrong with a device by which interfaces are made.
func checkTun(device string) error {
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		_, err = unix.IoctlGetInt(fd, unix.TUNGETFEATURES)
		err = errors.Join(err, unix.Close(fd))
	}
	if err != nil {
		return fmt.Errorf("%s, which makes the emulated radios' interfaces, does not work: %w; load its module "+
			"(sudo modprobe tun), and in a container pass the device in", device, err)
	}
	return nil
}

// createRadio makes the tested interface, up and without an address, and
// returns the emulated radio's end of it. It goes when that is closed.
func createRadio(mac net.HardwareAddr) (*os.File, error) {
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", tunDevice, err)
	}
	tap := os.NewFile(uintptr(fd), "tap")
	req, err := unix.NewIfreq(radioLink)
	if err == nil {
		req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err == nil {
		err = within(func(h *netlink.Handle) error {
			l, err := h.LinkByName(radioLink)
			if err != nil {
				return err
			}
			if err := h.LinkSetHardwareAddr(l, mac); err != nil {
				return err
			}
			return bringUp(h, radioLink, nil)
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create %s: %w", radioLink, err), tap.Close())
	}
	return tap, nil
}

// connect joins the node that the calling thread is in to the bridge by a
// veth pair whose other end, port, is in the control namespace.
func connect(control netns.NsHandle, port string, addr *net.IPNet) error {
	err := within(func(h *netlink.Handle) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = controlLink
		veth := &netlink.Veth{LinkAttrs: attrs, PeerName: port, PeerNamespace: netlink.NsFd(control)}
		if err := h.LinkAdd(veth); err != nil {
			return fmt.Errorf("create veth: %w", err)
		}
		return errors.Join(bringUp(h, "lo", nil), bringUp(h, controlLink, addr))
	})
	if err != nil {
		return err
	}
	return at(control, func(h *netlink.Handle) error {
		br, err := h.LinkByName(bridgeLink)
		if err != nil {
			return fmt.Errorf("find bridge: %w", err)
		}
		l, err := h.LinkByName(port)
		if err != nil {
			return fmt.Errorf("find port %q: %w", port, err)
		}
		if err := h.LinkSetMaster(l, br); err != nil {
			return fmt.Errorf("join %q to the bridge: %w", port, err)
		}
		return bringUp(h, port, nil)
	})
}

// setPort brings a node's end of the control network up or down.
func setPort(control, port string, up bool) error {
	ns, err := netns.GetFromName(control)
	if err != nil {
		return fmt.Errorf("open namespace %q: %w", control, err)
	}
	defer ns.Close()
	return at(ns, func(h *netlink.Handle) error {
		l, err := h.LinkByName(port)
		if err != nil {
			return fmt.Errorf("find port %q: %w", port, err)
		}
		if up {
			return h.LinkSetUp(l)
		}
		return h.LinkSetDown(l)
	})
}

func at(ns netns.NsHandle, f func(*netlink.Handle) error) error {
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	defer h.Close()
	return f(h)
}
