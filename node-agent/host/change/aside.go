package change

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/manager"
)

// Aside has those that manage the machine's Wi-Fi for its user leave an
// interface alone: NetworkManager, wpa_supplicant, Android. Otherwise they scan
// in the middle of a window, or join another network. Where nobody manages it,
// nothing is changed.
type Aside struct {
	Interface string `json:"interface"`
}

func (a Aside) Target() string                       { return a.String() }
func (a Aside) check(p Policy) (reason, cure string) { return p.CheckInterface(a.Interface) }
func (a Aside) String() string                       { return "managers of " + a.Interface + " aside" }

func (a Aside) prepare(k *Kernel, _ uint64) (*asideUndo, error) {
	link, err := netstack.FindLink(a.Interface)
	if err != nil {
		return nil, err
	}
	attrs := link.Attrs()
	held, err := k.managers.FindNew(a.Interface)
	if errors.Is(err, manager.ErrByHand) {
		return nil, &Refused{Reason: err.Error(), Cure: "use Android 11 or newer, or a laptop for this node"}
	}
	if err != nil || len(held) == 0 {
		return &asideUndo{Aside: lentInterface{Interface: attrs.Name, Index: attrs.Index}}, err
	}
	// Whoever lets go may set the interface down, and what it bore is lost then.
	link, state, err := netstack.FindInterface(a.Interface)
	if err != nil {
		return nil, err
	}
	state.Up = new(netstack.IsUp(link))
	for _, h := range held {
		if h.Addresses() || k.lent[attrs.Index] { // they may be of another network by then, or are the run's
			state.Addresses, state.Routes = nil, nil
		}
	}
	lent := lentInterface{Interface: attrs.Name, Index: attrs.Index, Held: held, Made: k.hasMade(attrs.Index)}
	return &asideUndo{Aside: lent, Interface: &state}, nil
}

func (a Aside) apply(k *Kernel, u *asideUndo) error {
	k.lent[u.Aside.Index] = true
	for _, h := range u.Aside.Held {
		if err := k.managers.LetGo(h); err != nil {
			return err
		}
	}
	if len(u.Aside.Held) == 0 {
		return nil
	}
	return awaitQuiet(a.Interface)
}

// How long an interface stays as it is before it counts as left alone, and how
// long that is waited for.
const (
	quietTime  = time.Second
	quietLimit = 5 * time.Second
)

// awaitQuiet waits until nobody changes an interface any more. NetworkManager
// says that it has let go before it has taken its addresses and routes off: the
// next change would take what is about to go for what is to be put back.
func awaitQuiet(name string) error {
	link, err := netstack.FindLink(name)
	if err != nil {
		return err
	}
	var last netstack.InterfaceState
	var up bool
	since, deadline := time.Now(), time.Now().Add(quietLimit)
	for {
		now, err := netstack.ReadInterface(link)
		if err != nil {
			return err
		}
		if link, err = netstack.FindLink(name); err != nil {
			return err
		}
		// Messages of addresses hold lifetimes that run; their number tells enough.
		isUp := netstack.IsUp(link)
		if isUp != up || len(now.Addresses) != len(last.Addresses) || len(now.Routes) != len(last.Routes) {
			since = time.Now()
		}
		last, up = now, isUp
		if time.Since(since) >= quietTime || time.Now().After(deadline) {
			return nil
		}
		time.Sleep(quietTime / 10)
	}
}

// asideUndo gives the interface back to those who held it.
type asideUndo struct {
	placed
	Aside     lentInterface            `json:"aside"`
	Interface *netstack.InterfaceState `json:"interface,omitempty"`
}

// lentInterface is an interface and who held it.
type lentInterface struct {
	Interface string         `json:"interface"`
	Index     int            `json:"index"`
	Held      []manager.Held `json:"held,omitempty"`
	// Made: the interface was made for the run and goes with it: nobody wants it back.
	Made bool `json:"made,omitempty"`
}

// void: what a manager was told for good is not void without the interface. Where nobody held it
// and somebody does now, that one is to be set aside.
func (u *asideUndo) void(k *Kernel) bool {
	if len(u.Aside.Held) == 0 {
		link, err := netstack.SameLink(u.Aside.Index)
		if err != nil || link == nil {
			return err == nil
		}
		held, err := k.heldBy(link)
		return err == nil && len(held) > 0
	}
	lasting := func(h manager.Held) bool { return h.Lasting }
	return !slices.ContainsFunc(u.Aside.Held, lasting) && netstack.Vanished(u.Aside.Index)
}

// revertLasting gives back what even a reboot did not.
func (u *asideUndo) revertLasting(k *Kernel) error { return u.giveBack(k, true) }

// revert gives the interface back as it was given up: wpa_supplicant wants it
// up. What NetworkManager takes off when it begins to manage is put back after
// that.
func (u *asideUndo) revert(k *Kernel) (string, error) {
	delete(k.lent, u.Aside.Index)
	lasting := u.revertLasting(k)
	note, err := inTurn(func() (string, error) { return u.revertHeld(k) }, u.Interface.Revert)
	return note, errors.Join(lasting, err)
}

func (u *asideUndo) revertHeld(k *Kernel) (string, error) {
	if len(u.Aside.Held) == 0 || u.Aside.Made {
		return "", nil
	}
	note, err := u.Interface.Revert()
	if err != nil {
		err = fmt.Errorf("before %s has it back: %w", manager.Names(u.Aside.Held), err)
	}
	return note, errors.Join(err, u.giveBack(k, false))
}

func (u *asideUndo) giveBack(k *Kernel, lasting bool) error {
	var errs []error
	now, err := netstack.SameLink(u.Aside.Index)
	for _, h := range slices.Backward(u.Aside.Held) {
		if err == nil && now != nil {
			h.Interface = now.Attrs().Name
		}
		if h.Lasting == lasting {
			errs = append(errs, k.managers.TakeBack(h))
		}
	}
	return errors.Join(errs...)
}

func (u *asideUndo) on() (string, int) { return u.Aside.Interface, u.Aside.Index }
