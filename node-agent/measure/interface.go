package measure

import (
	"errors"
	"fmt"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"golang.org/x/sys/unix"
)

// Interface samples one interface's counters.
type Interface struct {
	name    string
	sock    kernelSocket
	index   uint32 // 0: not looked up yet
	request [headerBytes + statsRequestBytes]byte
	out     [1]wire.Body
}

const (
	statsRequestBytes = 12 // struct if_stats_msg, linux/if_link.h
	statsLink64       = 1  // IFLA_STATS_LINK_64, whose filter bit is 1 << (1 - 1)
	statsLink64Bytes  = 64 // the first eight counters of struct rtnl_link_stats64
)

// NewInterface makes a source of the counters of the interface of that name,
// in the network namespace in which Sample is first called. An interface that
// went and came back is found again.
func NewInterface(name string) *Interface {
	return &Interface{name: name, sock: kernelSocket{protocol: unix.NETLINK_ROUTE}}
}

// Name names the source.
func (i *Interface) Name() string { return "interface " + i.name }

// Sample reads the counters: one *wire.Interface, or an error when there is
// no such interface.
func (i *Interface) Sample(int64) ([]wire.Body, error) {
	stats, err := i.read()
	if errors.Is(err, unix.ENODEV) && i.index != 0 {
		i.index = 0
		stats, err = i.read()
	}
	if err != nil {
		return nil, fmt.Errorf("sample interface %q: %w", i.name, err)
	}
	i.out[0] = stats
	return i.out[:], nil
}

// Close gives the netlink socket back.
func (i *Interface) Close() error { return i.sock.close() }

func (i *Interface) read() (*wire.Interface, error) {
	if err := i.sock.open(); err != nil {
		return nil, err
	}
	if i.index == 0 {
		if err := i.lookUp(); err != nil {
			return nil, err
		}
	}
	body := i.request[headerBytes:]
	native.PutUint32(body[4:], i.index)
	native.PutUint32(body[8:], 1<<(statsLink64-1))
	seq := i.sock.putHeader(i.request[:], unix.RTM_GETSTATS, 0)
	if err := i.sock.send(i.request[:]); err != nil {
		return nil, err
	}
	var out *wire.Interface
	for done := false; !done; {
		err := i.sock.receive(func(kind uint16, s uint32, payload []byte) error {
			if s != seq {
				return nil // the answer to a question that timed out
			}
			done = true
			if kind == unix.NLMSG_ERROR {
				return errnoOf(payload)
			}
			out = parseStats(i.name, payload)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if out == nil {
		return nil, errors.New("the kernel's answer has no counters")
	}
	return out, nil
}

// lookUp asks by ioctl on the very socket, so in its namespace.
func (i *Interface) lookUp() error {
	request, err := unix.NewIfreq(i.name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(i.sock.fd, unix.SIOCGIFINDEX, request); err != nil {
		return err
	}
	i.index = request.Uint32()
	return nil
}

// parseStats reads the answer to RTM_GETSTATS; nil when it has no counters.
func parseStats(name string, payload []byte) *wire.Interface {
	if len(payload) < statsRequestBytes {
		return nil
	}
	var out *wire.Interface
	attributes(payload[statsRequestBytes:], func(kind uint16, v []byte) {
		if kind != statsLink64 || len(v) < statsLink64Bytes {
			return
		}
		counter := func(n int) uint64 { return native.Uint64(v[8*n:]) }
		out = &wire.Interface{
			Name: name, RxPackets: counter(0), TxPackets: counter(1), RxBytes: counter(2), TxBytes: counter(3),
			RxErrors: counter(4), TxErrors: counter(5), RxDropped: counter(6), TxDropped: counter(7),
		}
	})
	return out
}
