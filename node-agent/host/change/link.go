package change

import (
	"fmt"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
)

// Link sets an interface up or down, or its MTU. What is absent stays.
type Link struct {
	Interface string `json:"interface"`
	Up        *bool  `json:"up,omitempty"`
	MTUBytes  *int   `json:"mtu_bytes,omitempty"`
}

func (l Link) Target() string { return "link " + l.Interface }

func (l Link) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "link %s", l.Interface)
	if l.Up != nil {
		b.WriteString(map[bool]string{true: " up", false: " down"}[*l.Up])
	}
	if l.MTUBytes != nil {
		fmt.Fprintf(&b, " mtu %d", *l.MTUBytes)
	}
	return b.String()
}

// IPv6 needs an MTU of 1280 (RFC 8200, section 5): below it the kernel takes
// every IPv6 setting off the interface, which no undo brings back. 9216 is the
// largest frame that common hardware takes.
const (
	mtuMinBytes = 1280
	mtuMaxBytes = 9216
)

func (l Link) check(p Policy) (reason, cure string) {
	if reason, cure = p.CheckInterface(l.Interface); reason != "" {
		return reason, cure
	}
	if l.Up == nil && l.MTUBytes == nil {
		return "neither up nor mtu_bytes is given", ""
	}
	if l.MTUBytes != nil && (*l.MTUBytes < mtuMinBytes || *l.MTUBytes > mtuMaxBytes) {
		return fmt.Sprintf("mtu %d is outside %d to %d bytes", *l.MTUBytes, mtuMinBytes, mtuMaxBytes), ""
	}
	return "", ""
}

func (l Link) prepare(*Kernel, uint64) (*linkUndo, error) {
	link, state, err := netstack.FindInterface(l.Interface)
	if err != nil {
		return nil, err
	}
	if l.Up != nil {
		state.Up = new(netstack.IsUp(link))
	}
	if l.MTUBytes != nil {
		state.MTUBytes = new(link.Attrs().MTU)
	}
	return &linkUndo{Interface: state}, nil
}

func (l Link) apply(*Kernel, *linkUndo) error {
	link, err := netstack.FindLink(l.Interface)
	if err != nil {
		return err
	}
	return netstack.SetLink(link, l.Up, l.MTUBytes)
}

// linkUndo puts the interface back with what it lost.
type linkUndo struct {
	placed
	Interface netstack.InterfaceState `json:"interface"`
}

func (u *linkUndo) revert(k *Kernel) (string, error) {
	was := k.unlessHeld(u.Interface)
	return was.Revert()
}

func (u *linkUndo) void(*Kernel) bool { return u.Interface.Void() }

func (u *linkUndo) on() (string, int) { return u.Interface.Name, u.Interface.Index }
