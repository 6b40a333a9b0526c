package pairing

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"rsc.io/qr"
)

// Address is what a code names: what was asked for, or the listener's own
// address, or the one address that this machine has.
func Address(asked string, listening net.Addr) (string, error) {
	if asked != "" {
		return asked, nil
	}
	at, err := netip.ParseAddrPort(listening.String())
	if err != nil {
		return "", fmt.Errorf("read own address: %w", err)
	}
	if !at.Addr().IsUnspecified() {
		return at.String(), nil
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("list own addresses: %w", err)
	}
	var found []string
	for _, a := range addresses {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			found = append(found, netip.AddrPortFrom(p.Addr(), at.Port()).String())
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("this machine has %d addresses (%s); say by --at which one the new one reaches",
			len(found), strings.Join(found, ", "))
	}
	return found[0], nil
}

// quietZone is the width of the light margin around a QR code, in modules
// (ISO/IEC 18004, 6.3.8).
const quietZone = 4

// Picture draws a text as a QR code in half blocks, two rows of modules a line.
// Light modules are drawn, dark ones left out: terminals are dark more often than
// not, and readers take a code of either kind where a margin is around it.
func Picture(text string) (string, error) {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return "", fmt.Errorf("draw code: %w", err)
	}
	light := func(x, y int) bool {
		return y < code.Size+quietZone && !code.Black(x, y)
	}
	var b strings.Builder
	for y := -quietZone; y < code.Size+quietZone; y += 2 {
		for x := -quietZone; x < code.Size+quietZone; x++ {
			switch upper, lower := light(x, y), light(x, y+1); {
			case upper && lower:
				b.WriteRune('█')
			case upper:
				b.WriteRune('▀')
			case lower:
				b.WriteRune('▄')
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}
