// Package nl80211 speaks the kernel's netlink protocol for 802.11 radios
// (include/uapi/linux/nl80211.h): what a radio can do, how it is set, and the
// calls that set it. It decides nothing and remembers nothing: reading is used
// by node-agent/radio, setting by node-agent/host alone.
package nl80211

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ErrNone says that this kernel, or this namespace's kernel, has no 802.11
// stack: no radio was ever plugged in.
var ErrNone = errors.New("this kernel has no 802.11 stack loaded")

// Conn is a connection to the kernel in the network namespace in which it was
// opened. It is for one goroutine at a time.
type Conn struct {
	c      *genetlink.Conn
	family genetlink.Family
}

// Open opens a connection; ErrNone where there is no 802.11 stack.
func Open() (*Conn, error) {
	c, err := genetlink.Dial(nil)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("open generic netlink: %w", err)
	}
	// The kernel then says in words what it does not like.
	_ = c.SetOption(netlink.ExtendedAcknowledge, true) // older kernels do without
	return On(c)
}

// On speaks on a connection that is open already; it closes it where there is no 802.11 stack.
func On(c *genetlink.Conn) (*Conn, error) {
	family, err := c.GetFamily(unix.NL80211_GENL_NAME)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNone
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("find nl80211: %w", err), c.Close())
	}
	return &Conn{c: c, family: family}, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.c.Close() }

// encode makes attributes by f.
func encode(f func(*netlink.AttributeEncoder)) ([]byte, error) {
	e := netlink.NewAttributeEncoder()
	f(e)
	return e.Encode()
}

// call sends a command with attributes made by f. An acknowledgement is asked
// for only where nothing else is answered: it comes apart from an answer and
// would be taken for that of the next call.
func (c *Conn) call(command uint8, flags netlink.HeaderFlags, f func(*netlink.AttributeEncoder)) ([]genetlink.Message,
	error) {
	data, err := encode(f)
	if err != nil {
		return nil, fmt.Errorf("encode attributes: %w", err)
	}
	return c.c.Execute(genetlink.Message{
		Header: genetlink.Header{Command: command, Version: c.family.Version}, Data: data,
	}, c.family.ID, netlink.Request|flags)
}

// list asks for all objects of a kind, whose attributes take reads one by one.
// asking and reading begin the errors of the two.
func list[T any](c *Conn, command uint8, f func(*netlink.AttributeEncoder), take func(*T, *netlink.AttributeDecoder),
	asking, reading string) ([]T, error) {
	messages, err := c.call(command, netlink.Dump, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", asking, err)
	}
	out := make([]T, len(messages))
	for i, m := range messages {
		if err := each(m.Data, func(d *netlink.AttributeDecoder) { take(&out[i], d) }); err != nil {
			return nil, fmt.Errorf("%s: %w", reading, err)
		}
	}
	return out, nil
}

// ask asks for one object, whose attributes take reads one by one.
func (c *Conn) ask(command uint8, f func(*netlink.AttributeEncoder), take func(*netlink.AttributeDecoder)) error {
	messages, err := c.call(command, 0, f)
	for _, m := range messages {
		err = errors.Join(err, each(m.Data, take))
	}
	return err
}

// about is the attribute that names an interface.
func about(ifindex int) func(*netlink.AttributeEncoder) {
	return func(e *netlink.AttributeEncoder) { e.Uint32(unix.NL80211_ATTR_IFINDEX, uint32(ifindex)) }
}

// do sends a command about one interface that answers nothing.
func (c *Conn) do(command uint8, ifindex int, f func(*netlink.AttributeEncoder)) error {
	_, err := c.call(command, netlink.Acknowledge, func(e *netlink.AttributeEncoder) {
		about(ifindex)(e)
		f(e)
	})
	return err
}

// each calls f with every attribute of a message.
func each(data []byte, f func(*netlink.AttributeDecoder)) error {
	d, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return err
	}
	for d.Next() {
		f(d)
	}
	return d.Err()
}

// within is info for what is inside attributes of a type; others are passed over.
func within[T any](attribute uint16, info func(*T, *netlink.AttributeDecoder)) func(*T, *netlink.AttributeDecoder) {
	return func(one *T, d *netlink.AttributeDecoder) {
		if d.Type() == attribute {
			nested(d, func(inner *netlink.AttributeDecoder) { info(one, inner) })
		}
	}
}

// nested calls f with every attribute inside the present one.
func nested(d *netlink.AttributeDecoder, f func(*netlink.AttributeDecoder)) {
	d.Nested(func(inner *netlink.AttributeDecoder) error {
		for inner.Next() {
			f(inner)
		}
		return nil
	})
}

// Words are what an interface of a type is called in plans and records.
var words = map[uint32]string{
	unix.NL80211_IFTYPE_ADHOC: "adhoc", unix.NL80211_IFTYPE_STATION: "managed", unix.NL80211_IFTYPE_AP: "ap",
	unix.NL80211_IFTYPE_AP_VLAN: "ap-vlan", unix.NL80211_IFTYPE_WDS: "wds", unix.NL80211_IFTYPE_MONITOR: "monitor",
	unix.NL80211_IFTYPE_MESH_POINT: "mesh", unix.NL80211_IFTYPE_P2P_CLIENT: "p2p-client",
	unix.NL80211_IFTYPE_P2P_GO:     "p2p-go",
	unix.NL80211_IFTYPE_P2P_DEVICE: "p2p-device", unix.NL80211_IFTYPE_OCB: "ocb", unix.NL80211_IFTYPE_NAN: "nan",
}

func word(iftype uint32) string {
	if w := words[iftype]; w != "" {
		return w
	}
	return fmt.Sprintf("type-%d", iftype)
}

func iftype(word string) (uint32, error) {
	for t, w := range words {
		if w == word {
			return t, nil
		}
	}
	return 0, fmt.Errorf("%q is not a mode of a radio", word)
}
