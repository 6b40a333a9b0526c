package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// androidIptables is Android's, on the system's read-only partition. Its netd has
// it drop what is not tethered (tetherctrl_FORWARD of TetherController.cpp), and
// what one of its rules drops, no chain of nftables can let pass.
const androidIptables = "/system/bin/iptables"

// Forward lets pass, on Android, what is forwarded from an interface out of the same
// one, as a relay does. Elsewhere nothing is changed: a firewall there is its
// owner's.
type Forward struct {
	Interface string `json:"interface"`
}

func (f Forward) Target() string                       { return f.String() }
func (f Forward) check(p Policy) (reason, cure string) { return p.CheckInterface(f.Interface) }

func (f Forward) String() string {
	return "forwarding on " + f.Interface + " past Android's filter, if any"
}

func (f Forward) prepare(*Kernel, uint64) (*forwardUndo, error) {
	if _, err := os.Stat(androidIptables); errors.Is(err, fs.ErrNotExist) {
		return &forwardUndo{}, nil
	}
	there, err := f.there()
	if err != nil || there {
		return &forwardUndo{}, err
	}
	return &forwardUndo{Forward: &f}, nil
}

func (f Forward) apply(_ *Kernel, u *forwardUndo) error {
	if u.Forward == nil {
		return nil
	}
	there, err := f.there()
	if err != nil || there {
		return err
	}
	_, err = f.iptables("-I")
	return err
}

// there reports whether the rule is in force.
func (f Forward) there() (bool, error) {
	missing, err := f.iptables("-C")
	if missing {
		return false, nil
	}
	return err == nil, err
}

// iptablesTime is what one call may take: netd holds the lock for its own.
const iptablesTime = 10 * time.Second

// iptables makes one call about the rule. missing: it ended with 1, which says of
// -C that there is no such rule.
func (f Forward) iptables(do string) (missing bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), iptablesTime)
	defer cancel()
	args := []string{"-w", "5", do, "FORWARD", "-i", f.Interface, "-o", f.Interface, "-j", "ACCEPT"}
	cmd := exec.CommandContext(ctx, androidIptables, args...)
	cmd.Env, cmd.Dir = []string{}, "/"
	// It may wait for netd's lock: left behind by this process, it would change what was undone meanwhile.
	runtime.LockOSThread() // the parent-death signal follows the thread
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("run %s %s: %w: %.200s", androidIptables, strings.Join(args, " "), err,
			strings.TrimSpace(string(out)))
	}
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 1, err
}

// forwardUndo takes a rule out that was not there before.
type forwardUndo struct {
	placed
	Forward *Forward `json:"forward,omitempty"` // absent: none was added
}

func (*forwardUndo) void(*Kernel) bool { return false }

func (u *forwardUndo) revert(*Kernel) (string, error) {
	if u.Forward == nil {
		return "", nil
	}
	there, err := u.Forward.there()
	if err != nil || !there {
		return "", err
	}
	_, err = u.Forward.iptables("-D")
	return "", err
}
