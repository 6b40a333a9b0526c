package change

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
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

func (b BPFCongestion) Target() string { return b.String() }
func (b BPFCongestion) String() string { return "bpf congestion control " + b.Program }

func (b BPFCongestion) check(p Policy) (reason, cure string) {
	if !slices.Contains(tcpcc.Programs(), b.Program) {
		return fmt.Sprintf("%.40q is not a variant that there is a program of (%s)", b.Program,
			strings.Join(tcpcc.Programs(), ", ")), ""
	}
	if b.Program == tcpcc.Reference && p.Feedback == "" {
		return "only an emulated radio knows why a frame was lost", "use the reference TCP in a rehearsal"
	}
	return "", ""
}

func (b BPFCongestion) prepare(k *Kernel, _ uint64) (u *loadedUndo, err error) {
	u = unloads(b)
	if u.Loaded.Congestion, err = tcpcc.KernelName(b.Program, k.netns.Cookie); err != nil {
		return nil, err
	}
	there, err := offered(u.Loaded.Congestion)
	if there {
		err = &Refused{Reason: fmt.Sprintf("the kernel has a congestion control %s already", u.Loaded.Congestion),
			Cure: "end the other agent of this network namespace"}
	}
	return u, err
}

func (b BPFCongestion) apply(k *Kernel, u *loadedUndo) error {
	return k.load(u, func() (io.Closer, error) {
		made, err := tcp.Register(b.Program, u.Loaded.Congestion)
		if err != nil || b.Program != tcpcc.Reference {
			return made, err
		}
		return feedCauses(made, k.feedback), nil
	})
}

// reference is the reference TCP if it is loaded.
func (k *Kernel) reference() *tcp.Congestion {
	c, _ := k.loaded[BPFCongestion{Program: tcpcc.Reference}.Target()].(*causeFeed)
	if c == nil {
		return nil
	}
	return c.congestion
}
