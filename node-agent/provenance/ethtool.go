package provenance

import (
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The offloads that change what a capture sees and how TCP paces itself, with
// the ethtool commands that read them (linux/ethtool.h).
var offloadCommands = map[string]uint32{
	"tso":         unix.ETHTOOL_GTSO,
	"gso":         unix.ETHTOOL_GGSO,
	"gro":         unix.ETHTOOL_GGRO,
	"rx_checksum": unix.ETHTOOL_GRXCSUM,
	"tx_checksum": unix.ETHTOOL_GTXCSUM,
}

// ethtoolValue is struct ethtool_value.
type ethtoolValue struct {
	cmd  uint32
	data uint32
}

// ifreqData is struct ifreq with its data pointer; padded to the kernel's size.
type ifreqData struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [24 - unsafe.Sizeof(uintptr(0))]byte
}

// Offloads reads the tested interface's offloads; one that cannot be read is absent.
func (r *Reader) Offloads() map[string]bool { return offloads(r.iface) }

// offloads reads the interface's offloads; one that cannot be read is absent.
func offloads(iface string) map[string]bool {
	out := map[string]bool{}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil || len(iface) >= unix.IFNAMSIZ {
		return out
	}
	defer unix.Close(fd)
	for name, cmd := range offloadCommands {
		v := ethtoolValue{cmd: cmd}
		req := ifreqData{data: unsafe.Pointer(&v)}
		copy(req.name[:], iface)
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL,
			uintptr(unsafe.Pointer(&req))); errno == 0 {
			out[name] = v.data != 0
		}
	}
	return out
}

// driver is the name that the driver gives itself, or else the kind of link.
func driver(iface string, link netlink.Link) string {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return link.Type()
	}
	defer unix.Close(fd)
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, iface)
	if err != nil {
		return link.Type()
	}
	return unix.ByteSliceToString(info.Driver[:])
}
