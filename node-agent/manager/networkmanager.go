package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

// Names of NetworkManager's D-Bus interface.
const (
	nmName       = "org.freedesktop.NetworkManager"
	nmPath       = dbus.ObjectPath("/org/freedesktop/NetworkManager")
	nmDevice     = nmName + ".Device"
	nmActive     = nmName + ".Connection.Active"
	nmSettings   = nmName + ".Settings"
	nmNoDevice   = nmName + ".UnknownDevice"
	nmNoProfile  = nmSettings + ".InvalidConnection"
	nmActivation = nmName + ".ActivateConnection"
	nmDenied     = ".PermissionDenied" // ends the errors of several interfaces
)

// States of a device (NMDeviceState).
const (
	nmUnmanaged    = 10
	nmUnavailable  = 20
	nmDisconnected = 30
	nmActivated    = 100
)

// errAbsent says that NetworkManager does not run.
var errAbsent = errors.New("NetworkManager does not run: start it (systemctl start NetworkManager); a reboot gives " +
	"the interface back too")

// networkManager is a connection to a NetworkManager that runs.
type networkManager struct {
	conn *dbus.Conn
}

// openNetworkManager gives nil, nil where none runs; it starts none.
func (m Managers) openNetworkManager(ctx context.Context) (*networkManager, error) {
	conn, err := dbus.Dial("unix:path="+m.bus, dbus.WithContext(ctx))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open D-Bus: %w", err)
	}
	if err = conn.Auth(nil); err == nil {
		err = conn.Hello()
	}
	runs := false
	if err == nil {
		err = conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.NameHasOwner", 0, nmName).Store(&runs)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open D-Bus: %w", err), conn.Close())
	}
	if !runs {
		return nil, conn.Close()
	}
	return &networkManager{conn: conn}, nil
}

// with calls f with NetworkManager and its object for an interface; the object
// is empty where it knows none, and nm nil where none runs.
func (m Managers) with(iface string, f func(ctx context.Context, nm *networkManager,
	device dbus.ObjectPath) error) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	nm, err := m.openNetworkManager(ctx)
	if err != nil {
		return err
	}
	if nm == nil {
		return f(ctx, nil, "")
	}
	defer func() { err = errors.Join(err, nm.conn.Close()) }()
	var device dbus.ObjectPath
	err = nm.conn.Object(nmName, nmPath).CallWithContext(ctx, nmName+".GetDeviceByIpIface", dbus.FlagNoAutoStart,
		iface).Store(&device)
	var refused dbus.Error
	if errors.As(err, &refused) && refused.Name == nmNoDevice {
		device, err = "", nil
	}
	if err != nil {
		return err
	}
	return f(ctx, nm, device)
}

// get reads a property into a value.
func (nm *networkManager) get(ctx context.Context, object dbus.ObjectPath, iface, name string, into any) error {
	var v dbus.Variant
	err := nm.conn.Object(nmName, object).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get",
		dbus.FlagNoAutoStart, iface, name).Store(&v)
	if err == nil {
		err = v.Store(into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

func (nm *networkManager) state(ctx context.Context, device dbus.ObjectPath) (state uint32, err error) {
	return state, nm.get(ctx, device, nmDevice, "State", &state)
}

// profile is the UUID of the profile that a device uses, empty for none.
func (nm *networkManager) profile(ctx context.Context, device dbus.ObjectPath) (uuid string, err error) {
	var active dbus.ObjectPath
	if err := nm.get(ctx, device, nmDevice, "ActiveConnection", &active); err != nil || active == "/" {
		return "", err
	}
	err = nm.get(ctx, active, nmActive, "Uuid", &uuid)
	var gone dbus.Error
	if errors.As(err, &gone) { // it ended between the two questions
		return "", nil
	}
	return uuid, err
}

// allowed makes a call until NetworkManager allows it, or the patience is over.
// It allows root everything, but asks D-Bus who calls, and denies a call when
// the answer takes more than 2 s ("Unable to determine UID of the request"), as
// on a busy machine.
func allowed(patience time.Duration, call func() error) error {
	var denied dbus.Error
	return awaitWithin(patience, func() (bool, string, error) {
		err := call()
		if errors.As(err, &denied) && strings.HasSuffix(denied.Name, nmDenied) {
			return false, "denied: " + denied.Error(), nil
		}
		return true, "", err
	})
}

func (nm *networkManager) manage(ctx context.Context, device dbus.ObjectPath, on bool) error {
	return allowed(patience, func() error {
		return nm.conn.Object(nmName, device).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Set",
			dbus.FlagNoAutoStart, nmDevice, "Managed", dbus.MakeVariant(on)).Err
	})
}

func (m Managers) findNetworkManager(iface *net.Interface) (held *Held, err error) {
	err = m.with(iface.Name, func(ctx context.Context, nm *networkManager, device dbus.ObjectPath) error {
		if device == "" {
			return nil
		}
		state, err := nm.state(ctx, device)
		if err != nil || state <= nmUnmanaged {
			return err
		}
		// One in another namespace may have an interface of that name.
		var mac string
		if err := nm.get(ctx, device, nmDevice, "HwAddress", &mac); err != nil ||
			!strings.EqualFold(mac, iface.HardwareAddr.String()) {
			return err
		}
		held = &Held{Manager: NetworkManager, Interface: iface.Name}
		held.Connection, err = nm.profile(ctx, device)
		return err
	})
	return held, err
}

func (m Managers) networkManagerLetsGo(h Held) error {
	return m.with(h.Interface, func(ctx context.Context, nm *networkManager, device dbus.ObjectPath) error {
		if device == "" {
			return nil
		}
		if err := nm.manage(ctx, device, false); err != nil {
			return err
		}
		return await(func() (bool, string, error) {
			state, err := nm.state(ctx, device)
			return state == nmUnmanaged, fmt.Sprintf("in state %d", state), err
		})
	})
}

// networkManagerTakesBack also starts the profile that was in use: one that is
// not started by itself would not come back. A device that somebody has had it
// take back and use since stays as it is. That a network is out of reach now is
// no failure; that the device cannot join any is one.
func (m Managers) networkManagerTakesBack(h Held) error {
	return m.with(h.Interface, func(ctx context.Context, nm *networkManager, device dbus.ObjectPath) error {
		if nm == nil {
			return errAbsent
		}
		if device == "" {
			return nil // the interface is gone
		}
		state, err := nm.state(ctx, device)
		if err != nil {
			return err
		}
		if state > nmUnmanaged {
			if now, err := nm.profile(ctx, device); err != nil || now != "" {
				return err
			}
		}
		if err := nm.manage(ctx, device, true); err != nil {
			return err
		}
		err = await(func() (_ bool, _ string, err error) {
			state, err = nm.state(ctx, device)
			return state >= nmDisconnected, fmt.Sprintf("in state %d", state), err
		})
		if err != nil && state != nmUnavailable {
			return err
		}
		return nm.reconnect(ctx, device, h.Connection, err)
	})
}

// reconnect has a device use a profile again, unless that was deleted.
// unavailable says why the device can join no network, as without wpa_supplicant.
func (nm *networkManager) reconnect(ctx context.Context, device dbus.ObjectPath, uuid string, unavailable error) error {
	if uuid == "" {
		return nil
	}
	if now, err := nm.profile(ctx, device); err != nil || now == uuid {
		return err
	}
	var settings, active dbus.ObjectPath
	err := nm.conn.Object(nmName, nmPath+"/Settings").CallWithContext(ctx, nmSettings+".GetConnectionByUuid",
		dbus.FlagNoAutoStart, uuid).Store(&settings)
	var refused dbus.Error
	if errors.As(err, &refused) && refused.Name == nmNoProfile {
		return nil
	}
	if err == nil && unavailable != nil {
		err = fmt.Errorf("it manages the device, but cannot join the network of before: see that wpa_supplicant runs, "+
			"then restore again: %w", unavailable)
	}
	if err != nil {
		return err
	}
	err = allowed(patience, func() error {
		return nm.conn.Object(nmName, nmPath).CallWithContext(ctx, nmActivation, dbus.FlagNoAutoStart, settings, device,
			dbus.ObjectPath("/")).Store(&active)
	})
	if errors.As(err, &refused) {
		return nil // its network is not to be had: NetworkManager manages again
	}
	return err
}
