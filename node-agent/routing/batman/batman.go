// Package batman reads batman-adv, the mesh protocol of layer 2 that is a
// module of the kernel, by generic netlink (include/uapi/linux/batman_adv.h):
// its neighbours, its originators, and behind which of them an IPv4 address
// is. The kernel tells these to root only, so a small process (Run) tells them
// on over a unix socket. The mesh's device is made by node-agent/host.
package batman

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
)

// Protocol is the name of this routing in a plan.
const Protocol = "batman-adv"

// Device is the interface of the mesh, to which addresses move.
const Device = "bat0"

// HeaderBytes is the most that batman-adv puts before a frame
// (batadv_max_header_len): with an MTU that is so much smaller than that of
// the interface below, no frame goes in two.
const HeaderBytes = 32

// family is the name in generic netlink (BATADV_NL_NAME).
const family = "batadv"

// Commands (enum batadv_nl_commands).
const (
	getMesh             = 1
	getTransTableGlobal = 7
	getOriginators      = 8
	getNeighbors        = 9
	getDATCache         = 13
	setMesh             = 15
)

// Attributes (enum batadv_nl_attrs).
const (
	attrMeshIfindex  = 3
	attrOrigAddress  = 9
	attrTTAddress    = 16
	attrFlagBest     = 22
	attrNeighAddress = 24
	attrTQ           = 25
	attrDATIPv4      = 35
	attrDATHardware  = 36
	attrOrigInterval = 57
)

// Available reports whether this kernel has batman-adv or can load it: nil, or
// a *tcp.UnsupportedError.
func Available() error {
	if _, err := os.Stat("/sys/module/batman_adv"); err == nil {
		return nil
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Errorf("read the kernel's release: %w", err)
	}
	dir := filepath.Join("/lib/modules", unix.ByteSliceToString(u.Release[:]))
	for _, name := range []string{"modules.dep", "modules.builtin"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil && strings.Contains(string(text), "/batman-adv.ko") {
			return nil
		}
	}
	return &tcp.UnsupportedError{Feature: "routing " + Protocol, Needs: "the kernel module batman-adv " +
		"(CONFIG_BATMAN_ADV)",
		Err: fmt.Errorf("it is neither loaded nor in %s", dir)}
}

// Version is the loaded module's version, words where it can be loaded only,
// and empty where there is none.
func Version() string {
	if text, err := os.ReadFile("/sys/module/batman_adv/version"); err == nil {
		return "batman-adv " + strings.TrimSpace(string(text))
	}
	if Available() == nil {
		return "batman-adv (a module of the kernel)"
	}
	return ""
}

// conn speaks with the module about one mesh.
type conn struct {
	c      *genetlink.Conn
	family genetlink.Family
	mesh   int // index of the mesh's device
}

func open(mesh int) (*conn, error) {
	c, err := genetlink.Dial(nil)
	if err != nil {
		return nil, fmt.Errorf("open generic netlink: %w", err)
	}
	f, err := c.GetFamily(family)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.New("this kernel has no batman-adv loaded")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("find batman-adv: %w", err), c.Close())
	}
	return &conn{c: c, family: f, mesh: mesh}, nil
}

func (c *conn) call(command uint8, flags netlink.HeaderFlags,
	more func(*netlink.AttributeEncoder)) ([]genetlink.Message, error) {
	e := netlink.NewAttributeEncoder()
	e.Uint32(attrMeshIfindex, uint32(c.mesh))
	if more != nil {
		more(e)
	}
	data, err := e.Encode()
	if err != nil {
		return nil, err
	}
	return c.c.Execute(genetlink.Message{Header: genetlink.Header{Command: command, Version: c.family.Version},
		Data: data}, c.family.ID, netlink.Request|flags)
}

// entry is one of a dump; what it does not tell is zero.
type entry struct {
	orig, neigh, client net.HardwareAddr
	addr                net.IP
	tq                  uint8
	best                bool
}

// dump reads a table.
func (c *conn) dump(command uint8) ([]entry, error) {
	messages, err := c.call(command, netlink.Dump, nil)
	if err != nil {
		return nil, fmt.Errorf("read table %d of batman-adv: %w", command, err)
	}
	var out []entry
	for _, m := range messages {
		e, err := parseEntry(m.Data)
		if err != nil {
			return nil, fmt.Errorf("read table %d of batman-adv: %w", command, err)
		}
		out = append(out, e)
	}
	return out, nil
}

func parseEntry(data []byte) (entry, error) {
	var e entry
	d, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return e, err
	}
	for d.Next() {
		switch d.Type() {
		case attrOrigAddress:
			e.orig = d.Bytes()
		case attrNeighAddress:
			e.neigh = d.Bytes()
		case attrTTAddress, attrDATHardware:
			e.client = d.Bytes()
		case attrDATIPv4:
			e.addr = d.Bytes()
		case attrTQ:
			e.tq = d.Uint8()
		case attrFlagBest:
			e.best = true
		}
	}
	return e, d.Err()
}

// SetInterval sets how often a mesh's originator messages go out. It returns an error when the kernel does not say so
// then.
func SetInterval(mesh int, every time.Duration) error {
	c, err := open(mesh)
	if err != nil {
		return err
	}
	_, err = c.call(setMesh, netlink.Acknowledge, func(e *netlink.AttributeEncoder) {
		e.Uint32(attrOrigInterval, uint32(every.Milliseconds()))
	})
	if err == nil {
		err = c.hasInterval(every)
	}
	if err != nil {
		err = fmt.Errorf("set batman-adv's interval to %s: %w", every, err)
	}
	return errors.Join(err, c.c.Close())
}

func (c *conn) hasInterval(every time.Duration) error {
	messages, err := c.call(getMesh, 0, nil)
	if err != nil {
		return err
	}
	for _, m := range messages {
		d, err := netlink.NewAttributeDecoder(m.Data)
		if err != nil {
			return err
		}
		for d.Next() {
			if d.Type() != attrOrigInterval {
				continue
			}
			if got := d.Uint32(); int64(got) != every.Milliseconds() {
				return fmt.Errorf("it has %d ms", got)
			}
			return nil
		}
		if err := d.Err(); err != nil {
			return err
		}
	}
	return errors.New("it tells none")
}
