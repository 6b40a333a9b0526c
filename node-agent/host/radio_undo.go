package host

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// radioUndo is how an interface of a radio was set.
type radioUndo struct {
	Interface  string           `json:"interface"`
	Index      int              `json:"index"`
	Mode       string           `json:"mode"`
	Network    *nl80211.Network `json:"network,omitempty"`      // that it was in
	TxPowerDbm *float64         `json:"tx_power_dbm,omitempty"` // absent: in no network, where it means nothing
	PowerSave  bool             `json:"power_save"`
	RTS        uint32           `json:"rts_threshold_bytes"`
	RetryShort uint8            `json:"retry_short"`
	RetryLong  uint8            `json:"retry_long"`
	Rates      int              `json:"rates_mhz"` // rates are limited on this channel's band
	Joins      string           `json:"joins_ssid,omitempty"`
}

// former reads how the interface is set.
func (d *radioDevice) former() (radioUndo, error) {
	i := d.iface
	u := radioUndo{Interface: i.Name, Index: i.Index, Mode: i.Mode,
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
	u.Network = &nl80211.Network{Mode: i.Mode, SSID: cell.SSID, BSSID: cell.BSSID, MHz: cell.MHz, Width: i.Width, BasicMbps: cell.BasicMbps}
	return u, nil
}

// revertRadio leaves what the change joined and sets the interface as it was.
// Addresses, routes and whether it is up come after it (revertInterface).
func revertRadio(u undo) (note string, err error) {
	if u.Radio == nil {
		return "", nil
	}
	was := *u.Radio
	link, err := sameLink(was.Interface, was.Index)
	if err != nil || link == nil {
		return gone(was.Interface), err
	}
	d, err := openRadio(was.Interface)
	if errors.Is(err, errNoRadio) || errors.Is(err, nl80211.ErrNone) {
		return gone(was.Interface), nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, d.conn.Close()) }()
	if was.Network != nil {
		if in, err := d.in(*was.Network); err == nil && in {
			return "", d.untune(was)
		}
	}
	err = errors.Join(d.untune(was), d.quit())
	if d.iface.Mode == modeStation && was.Joins != "" && d.iface.SSID == was.Joins {
		err = errors.Join(err, d.conn.Leave(was.Index, modeStation))
	}
	if d.iface.Mode != was.Mode {
		err = errors.Join(err, setUp(was.Interface, false), d.conn.SetMode(was.Index, was.Mode))
	}
	if was.PowerSave {
		if e := d.conn.SetPowerSave(was.Index, true); !unsupported(e) {
			err = errors.Join(err, e)
		}
	}
	if was.Network != nil {
		err = errors.Join(err, setUp(was.Interface, true), d.conn.Join(was.Index, *was.Network))
	}
	return "", err
}

// untune puts power, thresholds and rates back.
func (d *radioDevice) untune(was radioUndo) error {
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
