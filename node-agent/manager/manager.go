// Package manager speaks to the programs that manage a machine's Wi-Fi on
// behalf of its user: NetworkManager, wpa_supplicant, Android. It finds out
// which of them holds an interface, has it let go and take it again. It decides
// nothing and remembers nothing: node-agent/host does, and alone uses it.
package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// Held is how a manager holds an interface: plain data, so that it can lie on
// disk until the interface is given back.
type Held struct {
	Manager   string `json:"manager"`
	Interface string `json:"interface"`
	// Connection is the UUID of NetworkManager's profile that was in use, empty for none.
	Connection string `json:"connection,omitempty"`
	// Lasting: that the interface was let go outlives a reboot.
	Lasting bool `json:"lasting,omitempty"`
	// Scans: Android scans with Wi-Fi off, too.
	Scans bool `json:"scans,omitempty"`
	// Off: Android's Wi-Fi is off, and only scans.
	Off bool `json:"off,omitempty"`
}

// Addresses reports whether the manager gives the interface addresses and routes itself once it has it back: Android,
// and NetworkManager with a profile.
func (h Held) Addresses() bool { return h.Manager == Android || h.Connection != "" }

// The managers that are known.
const (
	NetworkManager = "NetworkManager"
	Supplicant     = "wpa_supplicant"
	Android        = "Android's Wi-Fi service"
)

// patience is how long a manager has to do what it is told.
const patience = 10 * time.Second

// Managers are those of one machine. The zero value is not usable: Here makes
// one.
type Managers struct {
	bus      string   // D-Bus's system bus
	controls []string // folders of wpa_supplicant's control sockets
	android  string   // folder of Android's own programs
	sleep    func(time.Duration)
}

// Here are the managers of this machine. Their places are not configurable:
// root speaks to them.
func Here() Managers {
	return Managers{bus: "/run/dbus/system_bus_socket", controls: []string{"/run/wpa_supplicant",
		"/var/run/wpa_supplicant"}, android: "/system/bin", sleep: time.Sleep}
}

// Find tells who holds an interface: nobody, one, or more of them. A manager
// that does not run, or that leaves the interface alone, is not among them.
func (m Managers) Find(iface *net.Interface) ([]Held, error) {
	var out []Held
	held, err := m.findNetworkManager(iface)
	if err != nil {
		return nil, fmt.Errorf("ask NetworkManager about %q: %w", iface.Name, err)
	}
	if held == nil { // it has a wpa_supplicant of its own, and tells that one
		if held, err = m.findSupplicant(iface); err != nil {
			return nil, fmt.Errorf("ask wpa_supplicant about %q: %w", iface.Name, err)
		}
	}
	if held != nil {
		out = append(out, *held)
	}
	if held, err = m.findAndroid(iface); err != nil {
		return nil, fmt.Errorf("ask Android about its Wi-Fi: %w", err)
	}
	if held != nil {
		out = append(out, *held)
	}
	return out, nil
}

// noticeTime is how long NetworkManager may take to see an interface that has
// just come: udev looks at it first.
const noticeTime = 3 * time.Second

// FindNew is Find for an interface that may have just come, made or plugged in. Where
// NetworkManager runs and does not hold it, it may be about to: that is waited for.
func (m Managers) FindNew(name string) ([]Held, error) {
	for deadline := time.Now().Add(noticeTime); ; time.Sleep(50 * time.Millisecond) {
		iface, err := net.InterfaceByName(name) // its address may be another one by now
		if err != nil {
			return nil, err
		}
		held, err := m.Find(iface)
		if err != nil || len(held) > 0 || time.Now().After(deadline) {
			return held, err
		}
		runs := false
		err = m.with(name, func(_ context.Context, nm *networkManager, _ dbus.ObjectPath) error {
			runs = nm != nil
			return nil
		})
		if err != nil || !runs {
			return nil, err
		}
	}
}

// LetGo has a manager leave its interface alone, and returns when it does.
func (m Managers) LetGo(h Held) error {
	letGo, _ := m.of(h)
	if err := letGo(h); err != nil {
		return fmt.Errorf("have %s leave %q alone: %w", h.Manager, h.Interface, err)
	}
	return nil
}

// TakeBack gives a manager its interface back; one that has it already does
// not notice. It does not wait for a network to be joined.
func (m Managers) TakeBack(h Held) error {
	_, takeBack := m.of(h)
	if err := takeBack(h); err != nil {
		return fmt.Errorf("give %q back to %s: %w", h.Interface, h.Manager, err)
	}
	return nil
}

// of is how the manager of an interface lets it go and takes it back.
func (m Managers) of(h Held) (letGo, takeBack func(Held) error) {
	switch h.Manager {
	case NetworkManager:
		return m.networkManagerLetsGo, m.networkManagerTakesBack
	case Supplicant:
		return m.supplicantLetsGo, m.supplicantTakesBack
	case Android:
		return m.androidLetsGo, m.androidTakesBack
	}
	unknown := func(Held) error { return errors.New("no such manager is known") }
	return unknown, unknown
}

// Names lists the managers of some interfaces, for a record.
func Names(held []Held) string {
	var out []string
	for _, h := range held {
		if !slices.Contains(out, h.Manager) {
			out = append(out, h.Manager)
		}
	}
	return strings.Join(out, ", ")
}

// await asks until it holds or the patience is over; what tells what was seen last.
func await(holds func() (ok bool, what string, err error)) error { return awaitWithin(patience, holds) }

func awaitWithin(patience time.Duration, holds func() (ok bool, what string, err error)) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ok, what, err := holds()
		if ok || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s later it is still %s", patience, what)
		}
	}
}
