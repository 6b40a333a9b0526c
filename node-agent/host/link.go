package host

import (
	"fmt"
	"net"
	"strings"
)

// Link sets an interface up or down, or its MTU. What is absent stays.
type Link struct {
	Interface string `json:"interface"`
	Up        *bool  `json:"up,omitempty"`
	MTUBytes  *int   `json:"mtu_bytes,omitempty"`
}

func (l Link) target() string { return "link " + l.Interface }

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

func (l Link) check(p policy) (reason, cure string) {
	if reason, cure = p.checkInterface(l.Interface); reason != "" {
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

func (l Link) prepare(*kernel, uint64) (*linkUndo, error) {
	link, err := findLink(l.Interface)
	if err != nil {
		return nil, err
	}
	state, err := readInterface(link)
	if err != nil {
		return nil, err
	}
	up, mtu := link.Attrs().Flags&net.FlagUp != 0, link.Attrs().MTU
	if l.Up != nil {
		state.Up = &up
	}
	if l.MTUBytes != nil {
		state.MTUBytes = &mtu
	}
	return &linkUndo{Interface: state}, nil
}

func (l Link) apply(*kernel, *linkUndo) error {
	link, err := findLink(l.Interface)
	if err != nil {
		return err
	}
	return setLink(link, l.Up, l.MTUBytes)
}

// linkUndo puts the interface back with what it lost.
type linkUndo struct {
	placed
	Interface interfaceState `json:"interface"`
}

func (u *linkUndo) revert(*kernel) (string, error) { return u.Interface.revert() }
func (u *linkUndo) void(*kernel) bool              { return u.Interface.void() }
