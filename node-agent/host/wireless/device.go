// Package wireless sets the radio of an interface, by nl80211: whether the radio
// can be in a network, the joining of it, and how the radio was before, to be
// put back. It remembers nothing: node-agent/host does, and alone uses it.
package wireless

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/host/process"
	"fieldmesh.dev/fieldmesh/node-agent/host/reach"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/node-agent/radio/quirk"
)

// Former reads how the interface is set.
func (d *Device) Former() (State, error) {
	i := d.Interface
	u := State{Interface: i.Name, Index: i.Index, Mode: i.Mode,
		RTS: d.Phy.RTSThreshold, RetryShort: d.Phy.RetryShort, RetryLong: d.Phy.RetryLong}
	if i.MHz != 0 {
		u.TxPowerDbm = i.TxPowerDbm
	}
	var err error
	if u.PowerSave, err = d.Conn.PowerSave(i.Index); err != nil && !Unsupported(err) {
		return u, err
	}
	if i.Mode != "adhoc" || i.MHz == 0 {
		return u, nil
	}
	cell, err := d.Conn.Cell(i.Index)
	if err != nil || cell == nil {
		return u, err
	}
	u.Network = &nl80211.Network{Mode: i.Mode, SSID: cell.SSID, BSSID: cell.BSSID, MHz: cell.MHz, Width: i.Width,
		BasicMbps: cell.BasicMbps}
	return u, nil
}

// untune puts power, thresholds, rates and sleep back. It notes rates that may stay.
func (d *Device) untune(was State) (note string, _ error) {
	var rates, power error
	// Rates can be given back on an interface that is up only.
	if f := d.Phy.At(was.Rates); f != nil && d.Interface.Mode != "monitor" && setUp(was.Interface, true) == nil {
		if rates = d.Conn.SetRates(was.Index, *f, nil); Unsupported(rates) {
			rates = nil
		}
	}
	if !was.PowerStays {
		power = d.GivePowerBack(was.TxPowerDbm)
	}
	var sleep error
	if was.PowerSave {
		sleep = d.sleep(true)
	}
	err := errors.Join(power, sleep, d.SetLimits(was.RTS, was.RetryShort, was.RetryLong))
	// ath10k and ath11k (EPERM) and mwifiex (EINVAL) set rates in a network only. With the first two an interface that
	// goes down and up has all rates again; mwifiex's are its firmware's.
	switch {
	case d.Interface.MHz != 0:
	case errors.Is(rates, unix.EPERM):
		rates = setUp(was.Interface, false)
	case errors.Is(rates, unix.EINVAL):
		rates = nil
		note = was.Interface + " may keep its limited rates until a reboot: its driver sets them in a network only"
	}
	return note, errors.Join(rates, err)
}

// SetLimits sets what all interfaces of a radio share.
func (d *Device) SetLimits(rts uint32, short, long uint8) error {
	var errs []error
	if d.Phy.RTSThreshold != rts {
		errs = append(errs, d.Conn.SetRTS(d.Interface.Index, rts))
	}
	if d.Phy.RetryShort != short || d.Phy.RetryLong != long {
		errs = append(errs, d.Conn.SetRetries(d.Interface.Index, short, long))
	}
	return errors.Join(errs...)
}

// GivePowerBack gives the transmit power back. The kernel tells the power, not
// whether somebody had fixed it: it is left to the driver again, and fixed only
// where that gives another.
func (d *Device) GivePowerBack(was *float64) error {
	if same(d.Interface.TxPowerDbm, was) {
		return nil
	}
	if err := d.Conn.SetTxPower(d.Interface.Index, nil); err != nil && !errors.Is(err, unix.ENODEV) {
		return err
	}
	i, err := d.Conn.Interface(d.Interface.Name)
	if err != nil || i == nil || was == nil || same(i.TxPowerDbm, was) {
		return err
	}
	return d.Conn.SetTxPower(d.Interface.Index, was)
}

func same(a, b *float64) bool { return a != nil && b != nil && math.Abs(*a-*b) < 0.005 }

// Device is an interface with its radio, and a connection to ask about both.
type Device struct {
	Conn      *nl80211.Conn
	Interface nl80211.Interface
	Phy       nl80211.Phy
}

// Open reads an interface and its radio. The caller closes the connection.
func Open(name string) (*Device, error) {
	conn, err := nl80211.Open()
	if err != nil {
		return nil, err
	}
	d := &Device{Conn: conn}
	if err := d.read(name); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return d, nil
}

var errNoRadio = errors.New("no radio's interface")

// NoRadio reports whether an error of Open says that an interface is not a
// radio's, or that the kernel knows no radios.
func NoRadio(err error) bool { return errors.Is(err, errNoRadio) || errors.Is(err, nl80211.ErrNone) }

func (d *Device) read(name string) error {
	i, err := d.Conn.Interface(name)
	if err != nil {
		return err
	}
	if i == nil {
		return errNoRadio
	}
	d.Interface = *i
	phys, err := d.Conn.Phys()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(phys, func(p nl80211.Phy) bool { return p.Index == i.Phy })
	if at < 0 {
		return errNoRadio
	}
	d.Phy = phys[at]
	return nil
}

// In reports whether the interface is in a network.
func (d *Device) In(n nl80211.Network) (bool, error) {
	i := d.Interface
	if i.Mode != n.Mode || i.MHz != n.MHz || i.Width != n.Width {
		return false, nil
	}
	switch n.Mode {
	case "mesh":
		return false, nil // the kernel does not tell which one
	case ModeAP:
		return i.SSID == n.SSID, nil
	}
	cell, err := d.Conn.Cell(i.Index)
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

// Join changes the interface's mode and joins; what it was in, it leaves.
func (d *Device) Join(n nl80211.Network, txPowerDbm *float64) error {
	d.listen(n.MHz)
	if err := d.quit(); err != nil {
		return err
	}
	// What sleeps hears late. Only in managed mode do drivers take this: an interface that leaves it is asked here, and
	// one that comes into it by Tune.
	if err := d.sleep(false); err != nil {
		return err
	}
	if err := d.mode(n.Mode); err != nil {
		return err
	}
	if txPowerDbm != nil { // before the first beacon is heard all over the place
		if err := d.Conn.SetTxPower(d.Interface.Index, txPowerDbm); err != nil {
			return err
		}
	}
	if err := d.Conn.Join(d.Interface.Index, n); err != nil {
		if errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("%w: another interface of this radio is in use", err)
		}
		return err
	}
	return d.awaitJoined(n, nil)
}

// scanTime bounds a look at a channel.
const scanTime = 5 * time.Second

// listen has the radio hear who else uses a channel; what it heard is told by
// its caps. A driver that does not scan now says nothing, and none of it keeps
// a trial from beginning.
func (d *Device) listen(mhz int) {
	if setUp(d.Interface.Name, true) == nil {
		_ = d.Scan(mhz) // see above
	}
}

// Scan has the radio listen on a channel, an access point too if it is its own, which it does not leave.
func (d *Device) Scan(mhz int) error {
	ctx, cancel := context.WithTimeout(context.Background(), scanTime)
	defer cancel()
	return nl80211.Scan(ctx, d.Interface.Index, mhz, d.Interface.Mode == ModeAP && d.Interface.MHz == mhz)
}

func (d *Device) quit() error {
	if d.Interface.Mode == "adhoc" || d.Interface.Mode == "mesh" {
		return d.Conn.Leave(d.Interface.Index, d.Interface.Mode)
	}
	return nil
}

// mode gives the interface a mode, which it must be down for, and brings it up.
func (d *Device) mode(mode string) error {
	if d.Interface.Mode != mode {
		if err := setUp(d.Interface.Name, false); err != nil {
			return err
		}
		if err := d.Conn.SetMode(d.Interface.Index, mode); err != nil {
			return err
		}
		d.Interface.Mode = mode
	}
	return setUp(d.Interface.Name, true)
}

func setUp(name string, up bool) error {
	link, err := netstack.FindLink(name)
	if err != nil {
		return err
	}
	err = netstack.SetLink(link, &up, nil)
	if errors.Is(err, unix.ERFKILL) {
		return fmt.Errorf("%w: the radio is switched off: run `rfkill unblock wlan`, or switch it on at the machine",
			err)
	}
	return err
}

// awaitJoined waits until the interface is in the network, and checks whether it is
// the one that was asked for: some drivers say yes and do otherwise. ended tells
// that the program which keeps the network up has ended; nil where none does.
func (d *Device) awaitJoined(n nl80211.Network, ended <-chan error) error {
	patience := joinTime
	if n.Mode == ModeStation || n.Mode == ModeAP {
		patience = associate
	}
	deadline, asked := time.Now().Add(patience), time.Now()
	for {
		if err := d.read(d.Interface.Name); err != nil {
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
		if n.Mode == ModeStation && !joined && time.Since(asked) > connectEvery {
			asked = time.Now()
			if err := d.Conn.Join(d.Interface.Index, n); err != nil {
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
			if n.Mode == ModeStation && !joined {
				err = reach.Error{Err: err}
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
func (d *Device) look(n nl80211.Network) (joined bool, there string, seen quirk.Seen, err error) {
	i := d.Interface
	seen = quirk.Seen{Want: &n, Interface: i}
	there = fmt.Sprintf("%s on %d MHz", i.Mode, i.MHz)
	joined = i.MHz != 0
	switch n.Mode {
	case ModeAP:
		return joined && i.Mode == ModeAP && i.SSID == n.SSID, there, seen, nil
	case "adhoc", ModeStation:
		cell, err := d.Conn.Cell(i.Index)
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

// Tune sets what may be set in a network.
func (d *Device) Tune(r Settings) error {
	index := d.Interface.Index
	var errs []error
	if r.Mode == ModeStation { // nothing else sleeps
		errs = append(errs, d.sleep(false))
	}
	if r.TxPowerDbm != nil {
		errs = append(errs, d.Conn.SetTxPower(index, r.TxPowerDbm))
	}
	if r.RTSThresholdBytes != nil {
		errs = append(errs, d.Conn.SetRTS(index, uint32(*r.RTSThresholdBytes)))
	}
	if r.RetryLimit != nil {
		errs = append(errs, d.Conn.SetRetries(index, uint8(*r.RetryLimit), uint8(*r.RetryLimit)))
	}
	f := d.Phy.At(nl80211.Frequency(r.Channel))
	if f == nil {
		return errors.Join(append(errs, fmt.Errorf("the radio has lost channel %d", r.Channel))...)
	}
	switch err := d.Conn.SetRates(index, *f, r.allowed()); {
	case err != nil && Unsupported(err) && r.RateMbps == nil && r.Standard != "802.11b":
		// A driver with rate control of its own: the width without HT already
		// leaves it the rates of 802.11a and g only.
	case err != nil:
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// sleep lets the interface sleep between beacons, or forbids it, where its driver takes that. What is then in force is
// read back and recorded.
func (d *Device) sleep(may bool) error {
	if err := d.Conn.SetPowerSave(d.Interface.Index, may); !Unsupported(err) {
		return err
	}
	return nil
}

// Unsupported reports whether a driver does not know what it was asked for.
func Unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTSUP)
}

// SettlePower has a power that was set, or is that of fewer interfaces again,
// come into force: with drivers that know one channel at a time, Linux 6.12 works
// it out when the channel is set next, as it is when a scan has ended. A driver that does
// not scan now keeps its power.
func (d *Device) SettlePower(want *float64) error {
	if err := d.read(d.Interface.Name); err != nil || d.Interface.TxPowerDbm == nil ||
		same(d.Interface.TxPowerDbm, want) {
		return err
	}
	d.listen(d.Interface.MHz)
	return d.read(d.Interface.Name)
}

// BeginAccessPoint has the interface be an access point.
func (d *Device) BeginAccessPoint(n nl80211.Network, p process.Daemon) error {
	d.listen(n.MHz)
	if err := d.quit(); err != nil {
		return err
	}
	ended, err := p.Start(p.Binary, accessPointConfig(n), []string{"-D", "nl80211", "-i", p.Interface, "-c",
		p.ConfigPath()})
	if err != nil {
		return err
	}
	if err := d.awaitJoined(n, ended); err != nil {
		return fmt.Errorf("%w; %s said: %s", err, p.Name, p.LastWords())
	}
	return nil
}

// accessPointConfig is wpa_supplicant's whole configuration (wpa_supplicant.conf(5)):
// an open network without the rates of 802.11n and later. It opens no control
// socket, and looks for nobody first (ap_scan=2): the channel is the plan's. The
// SSID is in hexadecimal, in which nothing has to be quoted.
func accessPointConfig(n nl80211.Network) string {
	return fmt.Sprintf("ap_scan=2\np2p_disabled=1\nnetwork={\n ssid=%s\n mode=2\n frequency=%d\n key_mgmt=NONE\n "+
		"disable_ht=1\n disable_vht=1\n}\n",
		hex.EncodeToString([]byte(n.SSID)), n.MHz)
}
