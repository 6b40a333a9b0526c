package change

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/manager"
)

// Kernel is the machine itself, in the network namespace of this process.
type Kernel struct {
	dir       string            // where daemons' files go
	binaries  map[string]string // daemon → path, checked
	socketUID int               // who may read a daemon's own socket
	feedback  string            // the radio-feedback socket, for daemons; empty: none
	netns     Netns
	log       *slog.Logger
	loaded    map[string]io.Closer // what hangs on this process in the kernel, by the changes' targets
	managers  manager.Managers     // of the machine's Wi-Fi
	lent      map[int]bool         // interfaces, by index, of which managers were set aside in this process's life
}

// NewKernel is for a state directory. What is put into binaries later, changes may
// start too.
func NewKernel(dir string, binaries map[string]string, socketUID int, feedback string, log *slog.Logger) (*Kernel,
	error) {
	w, err := presentNetns()
	if err != nil {
		return nil, err
	}
	return &Kernel{log: log, dir: dir, binaries: binaries, socketUID: socketUID, feedback: feedback, netns: w,
		loaded: map[string]io.Closer{}, managers: manager.Here(), lent: map[int]bool{}}, nil
}

// Prepare reads what a change would alter. A *Refused says that it cannot be made
// here.
func (k *Kernel) Prepare(id uint64, c Change) (Undo, error) {
	_, kind, err := kindOf(c)
	if err != nil {
		return nil, err
	}
	u, err := kind.prepare(k, id, c)
	if err != nil {
		return nil, explain(c, err)
	}
	*u.Place() = k.netns
	return u, nil
}

// Apply makes a change that was prepared.
func (k *Kernel) Apply(c Change, u Undo) error {
	_, kind, err := kindOf(c)
	if err != nil {
		return err
	}
	name, index := u.on()
	if link, err := netstack.SameLink(index); index != 0 && err == nil && link != nil && link.Attrs().Name != name {
		return &Refused{Change: c.String(), Reason: fmt.Sprintf("the interface that was %s is called %s now", name,
			link.Attrs().Name), Cure: "put the node back (fieldmesh nodes restore), and give the interface its name " +
			"again"}
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
	if netstack.Absent(err) {
		return &Refused{Change: c.String(), Reason: err.Error(), Cure: "this kernel, or this namespace, has no such " +
			"setting"}
	}
	return err
}

// Revert takes back what is left of a change: of another namespace or boot only what did
// not go with that.
func (k *Kernel) Revert(u Undo) (string, error) {
	if k.Here(u) {
		return u.revert(k)
	}
	err := u.revertLasting(k)
	if how := u.Place().lives(k.netns); how != "" {
		err = errors.Join(err, fmt.Errorf("it was made in another network namespace, %s", how))
	}
	return "its namespace or boot is gone", err
}

// heldBy tells which managers of the machine's Wi-Fi hold an interface.
func (k *Kernel) heldBy(link netlink.Link) ([]manager.Held, error) {
	a := link.Attrs()
	return k.managers.Find(&net.Interface{Index: a.Index, Name: a.Name, HardwareAddr: a.HardwareAddr})
}

// unlessHeld is how an undo puts an interface back: as it was. But where a manager of Wi-Fi has it, again or by now, it
// stays up, with the addresses that the manager gives it: its owner uses it.
func (k *Kernel) unlessHeld(was netstack.InterfaceState) netstack.InterfaceState {
	link, err := netstack.SameLink(was.Index)
	if err != nil || link == nil || !netstack.IsUp(link) {
		return was
	}
	held, err := k.heldBy(link)
	if err != nil { // it is put back as the change found it
		return was
	}
	for _, h := range held {
		was.Up = new(true)
		if h.Addresses() {
			was.Addresses, was.Routes = nil, nil
		}
	}
	return was
}

// Here reports whether a change is in force in this boot and namespace: it was made in them, or is bound to none.
func (k *Kernel) Here(u Undo) bool { return *u.Place() == k.netns || !u.bound() }

// Void reports whether there is nothing left to take back here.
func (k *Kernel) Void(u Undo) bool { return *u.Place() == k.netns && u.void(k) }
