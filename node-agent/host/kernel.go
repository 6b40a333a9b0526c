package host

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/node-agent/manager"
)

// kernel is the machine itself, in the network namespace of this process.
type kernel struct {
	dir       string            // where daemons' files go
	binaries  map[string]string // daemon → path, checked
	socketUID int               // who may read a daemon's own socket
	feedback  string            // the radio-feedback socket, for daemons; empty: none
	netns     bootNetns
	log       *slog.Logger
	loaded    map[string]io.Closer // what hangs on this process in the kernel, by the changes' targets
	managers  manager.Managers     // of the machine's Wi-Fi
}

func newKernel(dir string, binaries map[string]string, socketUID int, feedback string, log *slog.Logger) (*kernel,
	error) {
	w, err := presentNetns()
	if err != nil {
		return nil, err
	}
	return &kernel{log: log, dir: dir, binaries: binaries, socketUID: socketUID, feedback: feedback, netns: w,
		loaded: map[string]io.Closer{}, managers: manager.Here()}, nil
}

func (k *kernel) prepare(id uint64, c Change) (undo, error) {
	_, kind, err := kindOf(c)
	if err != nil {
		return nil, err
	}
	u, err := kind.prepare(k, id, c)
	if err != nil {
		return nil, explain(c, err)
	}
	*u.place() = k.netns
	return u, nil
}

func (k *kernel) apply(c Change, u undo) error {
	_, kind, err := kindOf(c)
	if err != nil {
		return err
	}
	return kind.apply(k, c, u)
}

// explain turns what the kernel said while a change was prepared into a
// refusal: nothing has been changed yet.
func explain(c Change, err error) error {
	var refused *Refused
	if errors.As(err, &refused) {
		refused.Change = c.String()
		return refused
	}
	var missing netlink.LinkNotFoundError
	if errors.As(err, &missing) {
		return &Refused{Change: c.String(), Reason: err.Error(), Cure: "plug the radio in, or name another interface " +
			"in agent.yaml"}
	}
	if absent(err) {
		return &Refused{Change: c.String(), Reason: err.Error(), Cure: "this kernel, or this namespace, has no such " +
			"setting"}
	}
	return err
}

// revert takes back what is left of a change: of another namespace or boot only what did
// not go with that.
func (k *kernel) revert(u undo) (string, error) {
	made := *u.place()
	if made == k.netns || !u.bound() {
		return u.revert(k)
	}
	err := u.revertLasting(k)
	if how := made.lives(k.netns); how != "" {
		err = errors.Join(err, fmt.Errorf("it was made in another network namespace, which still exists: "+
			"run `%s fieldmesh-agent restore`", how))
	}
	return "its namespace or boot is gone", err
}

func (k *kernel) void(u undo) bool { return *u.place() == k.netns && u.void(k) }
