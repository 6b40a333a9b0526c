package manetd

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// tun is the device into which the kernel leads what it has no route for.
type tun struct {
	fd     int
	link   netlink.Link
	memory *slab
	room   []byte // for the next packet
}

// openTUN makes the device and brings it up. It vanishes with the process, and
// its routes with it.
func openTUN(name string, mtu int, memory *slab) (*tun, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/net/tun: %w; the kernel needs TUN devices", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("name device %q: %w", name, err), unix.Close(fd))
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, errors.Join(fmt.Errorf("make device %q: %w", name, err), unix.Close(fd))
	}
	t := &tun{fd: fd, memory: memory}
	if err := t.setUp(request.Name(), mtu); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return t, nil
}

func (t *tun) setUp(name string, mtu int) error {
	// What of the kernel's would come out of the device by itself, and what
	// would keep a packet of a far node from coming in by it.
	for key, value := range map[string]string{"ipv6/conf/" + name + "/disable_ipv6": "1", "ipv4/conf/" + name +
		"/rp_filter": "0"} {
		err := os.WriteFile("/proc/sys/net/"+key, []byte(value), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("set up device %q: %w", name, err)
		}
	}
	var err error
	if t.link, err = netlink.LinkByName(name); err != nil {
		return fmt.Errorf("find device %q: %w", name, err)
	}
	if err := netlink.LinkSetMTU(t.link, mtu); err != nil {
		return fmt.Errorf("set MTU of %q to %d: %w", name, mtu, err)
	}
	if err := netlink.LinkSetUp(t.link); err != nil {
		return fmt.Errorf("set %q up: %w", name, err)
	}
	return nil
}

// read gives one packet, the caller's to keep; EAGAIN says that there is none.
func (t *tun) read() ([]byte, error) {
	if t.room == nil {
		t.room = t.memory.take()
	}
	n, err := readNow(t.fd, t.room)
	if err != nil {
		return nil, err
	}
	packet := t.room[:n]
	t.room = nil
	return packet, nil
}
