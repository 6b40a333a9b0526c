package wireless

import (
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
)

// What makes an address of a station a local one, and the bits beside it in
// which those of one radio may differ: chips listen to several by a mask, and
// some compare no others (IEEE 802-2014, 8.2; mt76 in the kernel).
const (
	localBit   = 1 << 1
	firstShift = 2
	shifts     = 8
)

// AddressBeside is an address for an interface beside that of an own one, which
// no other interface here has. It is the same in every run. Drivers that have
// several to give begin at the first: this begins at the last.
func AddressBeside(own *netlink.LinkAttrs) (net.HardwareAddr, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var taken []net.HardwareAddr
	for _, i := range all {
		taken = append(taken, i.HardwareAddr)
	}
	if len(own.PermHWAddr) > 0 { // a manager may have given it a random one for its scans
		return localAddress(own.PermHWAddr, taken)
	}
	return localAddress(own.HardwareAddr, taken)
}

func localAddress(own net.HardwareAddr, taken []net.HardwareAddr) (net.HardwareAddr, error) {
	if len(own) != 6 {
		return nil, fmt.Errorf("%q is not the address of an 802.11 station", own)
	}
	for n := shifts - 1; n >= 0; n-- {
		mac := slices.Clone(own)
		mac[0] = (mac[0] | localBit) ^ byte(n<<firstShift)
		if !slices.ContainsFunc(append(taken, own), func(other net.HardwareAddr) bool {
			return slices.Equal(other, mac)
		}) {
			return mac, nil
		}
	}
	return nil, fmt.Errorf("no address beside %s is free", own)
}
