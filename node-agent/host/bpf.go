package host

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// BPFCongestion makes one of our programs a congestion control of the kernel,
// under a name of this network namespace's own (tcpcc.KernelName).
//
// It is not pinned: it hangs on a file descriptor of this process. A crash
// takes it out of the kernel with no undo made, and a namespace whose default
// it was keeps it until that sysctl's own undo, at the next start. Pinned, it
// would outlive a crash for no use: the next start puts everything back before
// it takes a call.
type BPFCongestion struct {
	Program string `json:"program"`
}

// HeldRTO holds the retransmission timers of this network namespace's
// connections with peers in a prefix (tcp.HoldRTO). It hangs on a file
// descriptor too.
type HeldRTO struct {
	Peers     netip.Prefix `json:"peers"`
	Reference bool         `json:"reference,omitempty"` // as the reference TCP wants it, which must be loaded
}

// WindowClamp bounds the windows of this network namespace's connections with
// peers in a prefix (tcp.ClampWindow). It hangs on a file descriptor too.
type WindowClamp struct {
	Peers    netip.Prefix `json:"peers"`
	Segments int          `json:"segments"`
}

// loadedUndo closes what was loaded; a former life's went with it.
type loadedUndo struct {
	Key string `json:"key"`
	// Congestion is the name in the kernel that must be gone; empty: none.
	Congestion string `json:"congestion,omitempty"`
}

func (b BPFCongestion) String() string { return "bpf congestion control " + b.Program }

func (h HeldRTO) String() string {
	if h.Reference {
		return "reference timer for peers in " + h.Peers.String()
	}
	return "fixed rto for peers in " + h.Peers.String()
}

func (w WindowClamp) String() string {
	return fmt.Sprintf("window of %d segments for peers in %s", w.Segments, w.Peers)
}

func (p policy) checkBPFCongestion(b BPFCongestion) (reason, cure string) {
	if !slices.Contains(tcpcc.Programs(), b.Program) {
		return fmt.Sprintf("%.40q is not a variant that there is a program of (%s)", b.Program, strings.Join(tcpcc.Programs(), ", ")), ""
	}
	if b.Program == tcpcc.Reference && p.feedback == "" {
		return "only an emulated radio knows why a frame was lost", "use the reference TCP in a rehearsal"
	}
	return "", ""
}

func (p policy) checkHeldRTO(h HeldRTO) (reason, cure string) {
	if !h.Peers.Addr().Is4() {
		return "the peers are no IPv4 network", ""
	}
	return p.checkWithin("prefix of peers", h.Peers)
}

func (p policy) checkWindowClamp(w WindowClamp) (reason, cure string) {
	if w.Segments < 1 || w.Segments > wire.MaxWindowPackets {
		return fmt.Sprintf("a window of %d segments is outside 1 to %d", w.Segments, wire.MaxWindowPackets), ""
	}
	return p.checkHeldRTO(HeldRTO{Peers: w.Peers})
}

func (k *kernel) prepareBPF(c Change) (undo, error) {
	u := loadedUndo{Key: c.target()}
	if c.BPFCongestion != nil {
		var err error
		if u.Congestion, err = tcpcc.KernelName(c.BPFCongestion.Program, k.world.Cookie); err != nil {
			return undo{}, err
		}
		if there, err := offered(u.Congestion); err != nil {
			return undo{}, err
		} else if there {
			return undo{}, &Refused{Reason: fmt.Sprintf("the kernel has a congestion control %s already", u.Congestion), Cure: "end the other agent of this network namespace"}
		}
	}
	if c.HeldRTO != nil && c.HeldRTO.Reference && k.reference() == nil {
		return undo{}, &Refused{Reason: "the reference TCP is not loaded"}
	}
	return undo{Loaded: &u}, nil
}

// reference is the reference TCP if it is loaded.
func (k *kernel) reference() *tcp.Congestion {
	c, _ := k.loaded[Change{BPFCongestion: &BPFCongestion{Program: tcpcc.Reference}}.target()].(*causeFeed)
	if c == nil {
		return nil
	}
	return c.congestion
}

func (k *kernel) applyBPF(c Change, u undo) error {
	if k.loaded[u.Loaded.Key] != nil {
		return nil
	}
	what, err := k.load(c, u.Loaded.Congestion)
	if err != nil {
		return err
	}
	k.loaded[u.Loaded.Key] = what
	return nil
}

func (k *kernel) load(c Change, name string) (io.Closer, error) {
	if c.TCPEvents != nil {
		return tcp.TraceEvents(k.world.Cookie, c.TCPEvents.connections())
	}
	if c.WindowClamp != nil {
		return tcp.ClampWindow(tcp.Clamp{Of: tcp.Of{Cookie: k.world.Cookie, Peers: c.WindowClamp.Peers}, Segments: c.WindowClamp.Segments})
	}
	if c.HeldRTO != nil {
		t := tcp.Timer{Of: tcp.Of{Cookie: k.world.Cookie, Peers: c.HeldRTO.Peers}}
		if c.HeldRTO.Reference {
			t.Reference = k.reference()
		}
		return tcp.HoldRTO(t)
	}
	made, err := tcp.Register(c.BPFCongestion.Program, name)
	if err != nil || c.BPFCongestion.Program != tcpcc.Reference {
		return made, err
	}
	return feedCauses(made, k.feedback), nil
}

// unloadTime is how long the kernel may take to drop what a dead process held.
const unloadTime = 3 * time.Second

func (k *kernel) revertBPF(u undo) (string, error) {
	if u.Loaded == nil {
		return "", nil
	}
	if k.loaded[u.Loaded.Key] != nil {
		return "", k.unload(u.Loaded.Key)
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
			return "", fmt.Errorf("congestion control %s is still there, and another process holds it", u.Loaded.Congestion)
		}
	}
}

// unload closes what is loaded by a key, if anything is.
func (k *kernel) unload(key string) error {
	what := k.loaded[key]
	if what == nil {
		return nil
	}
	delete(k.loaded, key)
	return what.Close()
}

// offered tells whether the kernel has a congestion control of this name.
func offered(name string) (bool, error) {
	names, err := readSysctl("/proc/sys/net/ipv4/tcp_available_congestion_control")
	return slices.Contains(strings.Fields(names), name), err
}
