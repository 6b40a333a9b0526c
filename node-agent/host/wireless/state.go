package wireless

import (
	"errors"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// State is how an interface of a radio was set.
type State struct {
	Interface  string           `json:"interface"`
	Index      int              `json:"index"`
	Mode       string           `json:"mode"`
	Network    *nl80211.Network `json:"network,omitempty"`      // that it was in
	TxPowerDbm *float64         `json:"tx_power_dbm,omitempty"` // absent: in no network, where it means nothing
	PowerStays bool             `json:"power_stays,omitempty"`  // the change sets none
	PowerSave  bool             `json:"power_save"`
	RTS        uint32           `json:"rts_threshold_bytes"`
	RetryShort uint8            `json:"retry_short"`
	RetryLong  uint8            `json:"retry_long"`
	Rates      int              `json:"rates_mhz"` // rates are limited on this channel's band
	Joins      string           `json:"joins_ssid,omitempty"`
}

// Revert leaves what the change joined and sets the interface as it was.
// Addresses, routes and whether it is up come after it.
func (was State) Revert() (note string, err error) {
	link, err := netstack.SameLink(was.Index)
	if err != nil || link == nil {
		return netstack.Gone(was.Interface), err
	}
	was.Interface = link.Attrs().Name
	d, err := Open(was.Interface)
	if NoRadio(err) {
		return netstack.Gone(was.Interface), nil
	}
	if err != nil {
		return "", err
	}
	note, err = was.revert(d)
	return note, errors.Join(err, d.Conn.Close())
}

func (was State) revert(d *Device) (note string, err error) {
	if was.Network != nil {
		if in, err := d.In(*was.Network); err == nil && in {
			return d.untune(was)
		}
	}
	note, err = d.untune(was)
	err = errors.Join(err, d.quit())
	if d.Interface.Mode == ModeStation && was.Joins != "" && d.Interface.SSID == was.Joins {
		err = errors.Join(err, d.Conn.Leave(was.Index, ModeStation))
	}
	if d.Interface.Mode != was.Mode {
		err = errors.Join(err, setUp(was.Interface, false), d.Conn.SetMode(was.Index, was.Mode))
	}
	if was.PowerSave { // again: untune may have asked in a mode whose driver does not take it
		err = errors.Join(err, d.sleep(true))
	}
	if was.Network != nil {
		err = errors.Join(err, setUp(was.Interface, true), d.Conn.Join(was.Index, *was.Network))
	}
	return note, err
}
