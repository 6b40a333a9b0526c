package change

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
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
	boot, err := clock.BootID()
	if err != nil {
		return Netns{}, err
	}
	w := Netns{Boot: boot}
	if w.Namespace, err = process.NamespaceOf("/proc/thread-self/ns/net"); err != nil {
		return Netns{}, fmt.Errorf("read network namespace: %w", err)
	}
	w.Cookie, err = presentCookie()
	return w, err
}

// presentCookie is that of this thread's namespace; 0 where the kernel has none.
func presentCookie() (cookie uint64, err error) {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open socket: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Close(s)) }()
	cookie, err = unix.GetsockoptUint64(s, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.EINVAL) {
		return 0, nil // an older kernel, or qemu-user, which asks for an int
	}
	if err != nil {
		return 0, fmt.Errorf("read namespace cookie: %w", err)
	}
	return cookie, nil
}

// cookieAt is the cookie of the namespace behind a file.
func cookieAt(path string) (uint64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	type answer struct {
		cookie uint64
		err    error
	}
	read := make(chan answer)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine: it is in that namespace
		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			read <- answer{0, fmt.Errorf("enter %s: %w", path, err)}
			return
		}
		cookie, err := presentCookie()
		read <- answer{cookie, err}
	}()
	a := <-read
	return a.cookie, a.err
}

// at reports whether a file leads to this namespace. The number of an inode is given
// again once a namespace has gone, and a cookie is not; where none can be read, the inode
// decides, so that nothing is taken for gone that is there.
func (w Netns) at(path string) bool {
	if ino, err := process.NamespaceOf(path); err != nil || ino != w.Namespace {
		return false
	}
	cookie, err := cookieAt(path)
	return err != nil || cookie == 0 || w.Cookie == 0 || cookie == w.Cookie
}

// lives says how what was changed in a namespace of this boot can still be put back,
// empty when nothing holds it any more.
func (w Netns) lives(present Netns) string {
	if w.Boot != present.Boot {
		return ""
	}
	for _, dir := range []string{"/run/netns", "/var/run/netns"} {
		names, _ := filepath.Glob(filepath.Join(dir, "*")) // only a bad pattern is an error
		for _, name := range names {
			if w.at(name) {
				return fmt.Sprintf("which still exists: run `ip netns exec %s fieldmesh-agent restore`",
					filepath.Base(name))
			}
		}
	}
	looked, hidden := map[uint64]bool{}, map[uint64]bool{}
	for _, pid := range process.All() {
		path := fmt.Sprintf("/proc/%d/ns/net", pid)
		if w.at(path) {
			return fmt.Sprintf("which still exists: run `nsenter -n -t %d fieldmesh-agent restore`", pid)
		}
		_, err := process.NamespaceOf(path)
		network, unknown := process.Network(strconv.Itoa(pid))
		switch {
		case errors.Is(unknown, os.ErrNotExist): // it has ended
		case errors.Is(err, os.ErrPermission):
			hidden[network] = true // 0: who knows
		case unknown == nil:
			looked[network] = true
		}
	}
	for network := range hidden {
		if !looked[network] {
			return "which may still exist, as not all processes may be looked into: stop the agent, and run " +
				"`fieldmesh-agent restore` as root"
		}
	}
	return ""
}
