package change

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
)

// loadedUndo closes what was loaded; a former life's went with it, whatever
// namespace it was made in.
type loadedUndo struct {
	placed
	Loaded struct {
		Key string `json:"key"` // the change's target
		// Congestion is the name in the kernel that must be gone; empty: none.
		Congestion string `json:"congestion,omitempty"`
	} `json:"loaded"`
}

func unloads(c Change) *loadedUndo {
	u := &loadedUndo{}
	u.Loaded.Key = c.Target()
	return u
}

func (*loadedUndo) bound() bool       { return false }
func (*loadedUndo) void(*Kernel) bool { return false }

// load keeps what is made by an undo's key, unless it is there.
func (k *Kernel) load(u *loadedUndo, make func() (io.Closer, error)) error {
	if k.loaded[u.Loaded.Key] != nil {
		return nil
	}
	what, err := make()
	if err == nil {
		k.loaded[u.Loaded.Key] = what
	}
	return err
}

// unloadTime is how long the kernel may take to drop what a dead process held.
const unloadTime = 3 * time.Second

func (u *loadedUndo) revert(k *Kernel) (string, error) {
	if what := k.loaded[u.Loaded.Key]; what != nil {
		err := k.unload(u.Loaded.Key)
		if feed, ok := what.(*causeFeed); ok {
			return feed.missing(), err
		}
		return "", err
	}
	if u.Loaded.Congestion == "" {
		return "it went with the process that had loaded it", nil
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		there, err := offered(u.Loaded.Congestion)
		if err != nil {
			return "", err
		}
		if !there {
			return "it went with the process that had loaded it", nil
		}
		if time.Since(began) > unloadTime {
			return "", fmt.Errorf("congestion control %s is still there, and another process holds it",
				u.Loaded.Congestion)
		}
	}
}

// unload closes what is loaded by a key, if anything is.
func (k *Kernel) unload(key string) error {
	what := k.loaded[key]
	if what == nil {
		return nil
	}
	delete(k.loaded, key)
	return what.Close()
}

// offered reports whether the kernel has a congestion control of this name.
func offered(name string) (bool, error) {
	names, err := netstack.ReadSysctl("/proc/sys/net/ipv4/tcp_available_congestion_control")
	return slices.Contains(strings.Fields(names), name), err
}
