package change

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/process"
)

// Netns names the kernel state that a change lives in. Links, addresses,
// routes and sysctls go with the boot and with the network namespace, so an
// undo of another namespace or boot has nothing to put back, and must not touch this one.
type Netns struct {
	Boot      string `json:"boot"`   // the kernel's random boot id
	Namespace uint64 `json:"netns"`  // inode of the network namespace
	Cookie    uint64 `json:"cookie"` // of the namespace, unique within a boot; 0 before Linux 5.14
}

// presentNetns is that of this process.
func presentNetns() (Netns, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Netns{}, fmt.Errorf("read boot id: %w", err)
	}
	w := Netns{Boot: strings.TrimSpace(string(boot))}
	if w.Namespace, err = process.NamespaceOf("/proc/thread-self/ns/net"); err != nil {
		return Netns{}, fmt.Errorf("read network namespace: %w", err)
	}
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Netns{}, fmt.Errorf("open socket: %w", err)
	}
	cookie, err := unix.GetsockoptUint64(s, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err == nil {
		w.Cookie = cookie
	} else if !errors.Is(err, unix.ENOPROTOOPT) && !errors.Is(err, unix.EINVAL) {
		// an older kernel, or qemu-user, which asks for an int
		return Netns{}, errors.Join(fmt.Errorf("read namespace cookie: %w", err), unix.Close(s))
	}
	return w, unix.Close(s)
}

// lives says by which name a namespace of this boot can still be entered,
// empty when nothing holds it any more.
func (w Netns) lives(present Netns) string {
	if w.Boot != present.Boot {
		return ""
	}
	for _, dir := range []string{"/run/netns", "/var/run/netns"} {
		names, _ := filepath.Glob(filepath.Join(dir, "*")) // only a bad pattern is an error
		for _, name := range names {
			if ino, err := process.NamespaceOf(name); err == nil && ino == w.Namespace {
				return fmt.Sprintf("ip netns exec %s", filepath.Base(name))
			}
		}
	}
	for _, pid := range process.All() {
		if ino, err := process.NamespaceOf(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil && ino == w.Namespace {
			return fmt.Sprintf("nsenter -n -t %d", pid)
		}
	}
	return ""
}
