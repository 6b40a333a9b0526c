package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/node-agent/radio/quirk"
)

// former reads how the interface is set.
func (d *radioDevice) former() (radioState, error) {
	i := d.iface
	u := radioState{Interface: i.Name, Index: i.Index, Mode: i.Mode,
		RTS: d.phy.RTSThreshold, RetryShort: d.phy.RetryShort, RetryLong: d.phy.RetryLong}
	if i.MHz != 0 {
		u.TxPowerDbm = i.TxPowerDbm
	}
	var err error
	if u.PowerSave, err = d.conn.PowerSave(i.Index); err != nil && !unsupported(err) {
		return u, err
	}
	if i.Mode != "adhoc" || i.MHz == 0 {
		return u, nil
	}
	cell, err := d.conn.Cell(i.Index)
	if err != nil || cell == nil {
		return u, err
	}
	u.Network = &nl80211.Network{Mode: i.Mode, SSID: cell.SSID, BSSID: cell.BSSID, MHz: cell.MHz, Width: i.Width,
		BasicMbps: cell.BasicMbps}
	return u, nil
}

// untune puts power, thresholds and rates back.
func (d *radioDevice) untune(was radioState) error {
	var errs []error
	// Rates can be given back on an interface that is up only.
	if f := d.phy.At(was.Rates); f != nil && d.iface.Mode != "monitor" && setUp(was.Interface, true) == nil {
		if err := d.conn.SetRates(was.Index, *f, nil); !unsupported(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, d.setLimits(was.RTS, was.RetryShort, was.RetryLong), d.power(was.TxPowerDbm))...)
}

// setLimits sets what all interfaces of a radio share.
func (d *radioDevice) setLimits(rts uint32, short, long uint8) error {
	var errs []error
	if d.phy.RTSThreshold != rts {
		errs = append(errs, d.conn.SetRTS(d.iface.Index, rts))
	}
	if d.phy.RetryShort != short || d.phy.RetryLong != long {
		errs = append(errs, d.conn.SetRetries(d.iface.Index, short, long))
	}
	return errors.Join(errs...)
}

// power gives the transmit power back. The kernel tells the power, not whether
// somebody had fixed it: it is left to the driver again, and fixed only where
// that gives another.
func (d *radioDevice) power(was *float64) error {
	if same(d.iface.TxPowerDbm, was) {
		return nil
	}
	if err := d.conn.SetTxPower(d.iface.Index, nil); err != nil && !errors.Is(err, unix.ENODEV) {
		return err
	}
	i, err := d.conn.Interface(d.iface.Name)
	if err != nil || i == nil || was == nil || same(i.TxPowerDbm, was) {
		return err
	}
	return d.conn.SetTxPower(d.iface.Index, was)
}

func same(a, b *float64) bool { return a != nil && b != nil && math.Abs(*a-*b) < 0.005 }

// radioDevice is an interface with its radio, and a connection to ask about both.
type radioDevice struct {
	conn  *nl80211.Conn
	iface nl80211.Interface
	phy   nl80211.Phy
}

func openRadio(name string) (*radioDevice, error) {
	conn, err := nl80211.Open()
	if err != nil {
		return nil, err
	}
	d := &radioDevice{conn: conn}
	if err := d.read(name); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return d, nil
}

// errNoRadio says that an interface is there but is not a radio's.
var errNoRadio = errors.New("no radio's interface")

func (d *radioDevice) read(name string) error {
	i, err := d.conn.Interface(name)
	if err != nil {
		return err
	}
	if i == nil {
		return errNoRadio
	}
	d.iface = *i
	phys, err := d.conn.Phys()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(phys, func(p nl80211.Phy) bool { return p.Index == i.Phy })
	if at < 0 {
		return errNoRadio
	}
	d.phy = phys[at]
	return nil
}

// in reports whether the interface is in a network.
func (d *radioDevice) in(n nl80211.Network) (bool, error) {
	i := d.iface
	if i.Mode != n.Mode || i.MHz != n.MHz || i.Width != n.Width {
		return false, nil
	}
	switch n.Mode {
	case "mesh":
		return false, nil // the kernel does not tell which one
	case modeAP:
		return i.SSID == n.SSID, nil
	}
	cell, err := d.conn.Cell(i.Index)
	return err == nil && cell != nil && cell.SSID == n.SSID && (n.BSSID == "" || n.BSSID == cell.BSSID), err
}

// joinTime bounds the joining of a cell: a radio that scans for it first takes
// some seconds. A station waits for its access point, which another node begins
// at the same time by a program of its own, and asks again while it is not
// there.
const (
	joinTime     = 10 * time.Second
	associate    = 20 * time.Second
	connectEvery = 2 * time.Second
)

// join changes the interface's mode and joins; what it was in, it leaves.
func (d *radioDevice) join(n nl80211.Network, txPowerDbm *float64) error {
	d.listen(n.MHz)
	if err := d.quit(); err != nil {
		return err
	}
	// Only in managed mode do drivers take this; what sleeps hears late.
	if err := d.conn.SetPowerSave(d.iface.Index, false); err != nil && !unsupported(err) {
		return err
	}
	if err := d.mode(n.Mode); err != nil {
		return err
	}
	if txPowerDbm != nil { // before the first beacon is heard all over the place
		if err := d.conn.SetTxPower(d.iface.Index, txPowerDbm); err != nil {
			return err
		}
	}
	if err := d.conn.Join(d.iface.Index, n); err != nil {
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("%w: another interface of this radio is in use", err)
		}
		return err
	}
	return d.awaitJoined(n, nil)
}

// scanTime bounds the look at the channel before the join.
const scanTime = 5 * time.Second

// listen has the radio hear who else uses a channel; what it heard is told by
// its caps. A driver that does not scan now says nothing, and none of it keeps
// a trial from beginning.
func (d *radioDevice) listen(mhz int) {
	ctx, cancel := context.WithTimeout(context.Background(), scanTime)
	defer cancel()
	if setUp(d.iface.Name, true) == nil {
		_ = nl80211.Scan(ctx, d.iface.Index, mhz) // see above
	}
}

func (d *radioDevice) quit() error {
	if d.iface.Mode == "adhoc" || d.iface.Mode == "mesh" {
		return d.conn.Leave(d.iface.Index, d.iface.Mode)
	}
	return nil
}

// mode gives the interface a mode, which it must be down for, and brings it up.
func (d *radioDevice) mode(mode string) error {
	if d.iface.Mode != mode {
		if err := setUp(d.iface.Name, false); err != nil {
			return err
		}
		if err := d.conn.SetMode(d.iface.Index, mode); err != nil {
			return err
		}
		d.iface.Mode = mode
	}
	return setUp(d.iface.Name, true)
}

func setUp(name string, up bool) error {
	link, err := findLink(name)
	if err != nil {
		return err
	}
	err = setLink(link, &up, nil)
	if errors.Is(err, unix.ERFKILL) {
		return fmt.Errorf("%w: the radio is switched off: run `rfkill unblock wlan`, or switch it on at the machine",
			err)
	}
	return err
}

// awaitJoined waits until the interface is in the network, and checks whether it is
// the one that was asked for: some drivers say yes and do otherwise. ended tells
// that the program which keeps the network up has ended; nil where none does.
func (d *radioDevice) awaitJoined(n nl80211.Network, ended <-chan error) error {
	patience := joinTime
	if n.Mode == modeStation || n.Mode == modeAP {
		patience = associate
	}
	deadline, asked := time.Now().Add(patience), time.Now()
	for {
		if err := d.read(d.iface.Name); err != nil {
			return err
		}
		joined, there, seen, err := d.look(n)
		if err != nil {
			return err
		}
		lies := quirk.Find(seen)
		if joined && len(lies) == 0 {
			return nil
		}
		if n.Mode == modeStation && !joined && time.Since(asked) > connectEvery {
			asked = time.Now()
			if err := d.conn.Join(d.iface.Index, n); err != nil {
				return err
			}
		}
		// A cell that is heard later may be joined in the place of one that was made.
		if time.Now().After(deadline) {
			err := fmt.Errorf("join %q with BSSID %q on %d MHz: %s later the radio is in %s", n.SSID, n.BSSID, n.MHz,
				patience, there)
			for _, l := range lies {
				err = fmt.Errorf("%w; %s", err, l)
			}
			return err
		}
		select {
		case err := <-ended: // never, where nothing keeps it up
			return errors.Join(errors.New("what keeps the network up ended at once"), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// look reports whether the interface is in a network of that name, and what there
// is.
func (d *radioDevice) look(n nl80211.Network) (joined bool, there string, seen quirk.Seen, err error) {
	i := d.iface
	seen = quirk.Seen{Want: &n, Interface: i}
	there = fmt.Sprintf("%s on %d MHz", i.Mode, i.MHz)
	joined = i.MHz != 0
	switch n.Mode {
	case modeAP:
		return joined && i.Mode == modeAP && i.SSID == n.SSID, there, seen, nil
	case "adhoc", modeStation:
		cell, err := d.conn.Cell(i.Index)
		if err != nil {
			return false, there, seen, err
		}
		if seen.Cell = cell; cell != nil {
			there = fmt.Sprintf("%q with BSSID %s on %d MHz", cell.SSID, cell.BSSID, cell.MHz)
		}
		joined = joined && cell != nil && cell.SSID == n.SSID
	}
	return joined, there, seen, nil
}

// tune sets what may be set in a network.
func (d *radioDevice) tune(r Radio) error {
	index := d.iface.Index
	var errs []error
	if r.TxPowerDbm != nil {
		errs = append(errs, d.conn.SetTxPower(index, r.TxPowerDbm))
	}
	if r.RTSThresholdBytes != nil {
		errs = append(errs, d.conn.SetRTS(index, uint32(*r.RTSThresholdBytes)))
	}
	if r.RetryLimit != nil {
		errs = append(errs, d.conn.SetRetries(index, uint8(*r.RetryLimit), uint8(*r.RetryLimit)))
	}
	f := d.phy.At(nl80211.Frequency(r.Channel))
	if f == nil {
		return errors.Join(append(errs, fmt.Errorf("the radio has lost channel %d", r.Channel))...)
	}
	switch err := d.conn.SetRates(index, *f, r.allowed()); {
	case err != nil && unsupported(err) && r.RateMbps == nil && r.Standard != "802.11b":
		// A driver with rate control of its own: the width without HT already
		// leaves it the rates of 802.11a and g only.
	case err != nil:
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTSUP)
}

// shared reports whether another interface of the radio is in a network.
func (d *radioDevice) shared() bool {
	all, err := d.conn.Interfaces()
	return err == nil && slices.ContainsFunc(all, func(i nl80211.Interface) bool {
		return i.Phy == d.phy.Index && i.Index != d.iface.Index && i.MHz != 0
	})
}

// settlePower has a power that was set, or is that of fewer interfaces again,
// come into force: on a radio that several use, Linux 6.12 works it out when a
// scan has ended, with drivers that know one channel at a time.
func (d *radioDevice) settlePower(want *float64) error {
	if err := d.read(d.iface.Name); err != nil || same(d.iface.TxPowerDbm, want) {
		return err
	}
	d.listen(d.iface.MHz)
	return d.read(d.iface.Name)
}
