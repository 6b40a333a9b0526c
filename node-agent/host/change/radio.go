package change

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/host/process"
	"fieldmesh.dev/fieldmesh/node-agent/host/wireless"
)

// Radio has a radio's interface join an ad hoc cell or an 802.11s mesh on a channel, be an access point there or that
// one's station, with rates of 802.11a, b or g only: never those of 802.11n and later, which would answer for another
// radio than the one under test.
type Radio wireless.Settings

func (r Radio) Target() string { return "radio " + r.Interface }

func (r Radio) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "radio %s %s %q %s channel %d", r.Interface, r.Mode, r.SSID, r.Standard, r.Channel)
	if r.BSSID != "" {
		fmt.Fprintf(&b, " bssid %s", r.BSSID)
	}
	if r.RateMbps != nil {
		fmt.Fprintf(&b, " rate %g Mbit/s", *r.RateMbps)
	}
	if r.TxPowerDbm != nil {
		fmt.Fprintf(&b, " power %g dBm", *r.TxPowerDbm)
	}
	if r.RTSThresholdBytes != nil {
		fmt.Fprintf(&b, " rts %d", *r.RTSThresholdBytes)
	}
	if r.RetryLimit != nil {
		fmt.Fprintf(&b, " retries %d", *r.RetryLimit)
	}
	return b.String()
}

func (r Radio) check(p Policy) (reason, cure string) {
	if reason, cure = p.CheckInterface(r.Interface); reason != "" {
		return reason, cure
	}
	return wireless.Settings(r).Fault()
}

// prepare refuses what this radio, this place or its present use forbids,
// each with its cure, and reads what the change alters.
func (r Radio) prepare(k *Kernel, id uint64) (u *radioUndo, err error) {
	link, err := netstack.FindLink(r.Interface)
	if err != nil {
		return nil, err
	}
	d, err := wireless.Open(r.Interface)
	switch {
	case wireless.NoRadio(err):
		return nil, &Refused{Reason: r.Interface + " is not a radio: " + err.Error(),
			Cure: "correct `interface` in agent.yaml, load the radio's driver, or say `radio: {mode: none}` in the " +
				"campaign"}
	case err != nil:
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Conn.Close()) }()
	if reason, cure := d.Refuses(wireless.Settings(r)); reason != "" {
		return nil, &Refused{Reason: reason, Cure: cure}
	}
	state, err := netstack.ReadInterface(link)
	if err != nil {
		return nil, err
	}
	state.Up = new(netstack.IsUp(link))
	former, err := d.Former()
	if err != nil {
		return nil, err
	}
	former.Rates, former.Joins, former.PowerStays = wireless.Settings(r).Network().MHz, r.SSID, r.TxPowerDbm == nil
	program, err := k.prepareAccessPoint(id, r, link.Attrs().Index)
	if err != nil {
		return nil, err
	}
	return &radioUndo{Radio: former, Interface: state, AccessPoint: program}, nil
}

// apply joins, unless the interface is in the very network already.
func (r Radio) apply(_ *Kernel, u *radioUndo) (err error) {
	d, err := wireless.Open(r.Interface)
	if err != nil {
		return fmt.Errorf("open radio %q: %w", r.Interface, err)
	}
	defer func() { err = errors.Join(err, d.Conn.Close()) }()
	want := wireless.Settings(r).Network()
	joined, err := d.In(want)
	switch {
	case err != nil:
	case r.Mode == wireless.ModeAP && (!joined || !u.AccessPoint.Runs()):
		err = d.BeginAccessPoint(want, *u.AccessPoint)
	case !joined:
		err = d.Join(want, r.TxPowerDbm)
	}
	if err == nil {
		err = takeAddressesOff(r, &u.Interface)
	}
	if err == nil {
		err = d.Tune(wireless.Settings(r))
	}
	if err == nil && r.TxPowerDbm != nil {
		err = d.SettlePower(r.TxPowerDbm)
	}
	if err != nil {
		return fmt.Errorf("set radio %q: %w", r.Interface, err)
	}
	return nil
}

// takeAddressesOff takes those of the network that the interface leaves. One that it got since then stays: the undo
// does not have it.
func takeAddressesOff(r Radio, was *netstack.InterfaceState) error {
	link, err := netstack.FindLink(r.Interface)
	if err != nil {
		return err
	}
	for _, p := range was.Prefixes() {
		if !p.Addr().Is4() || r.Keep.Contains(p.Addr()) {
			continue
		}
		err := netlink.AddrDel(link, &netlink.Addr{IPNet: netstack.IPNet(p)})
		if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("take address %s off %q: %w", p, r.Interface, err)
		}
	}
	return nil
}

// radioUndo has the interface leave what the change joined.
type radioUndo struct {
	placed
	Radio     wireless.State          `json:"radio"`
	Interface netstack.InterfaceState `json:"interface"`
	// AccessPoint is the process that keeps the radio one.
	AccessPoint *process.Daemon `json:"access_point,omitempty"`
}

func (u *radioUndo) void(*Kernel) bool {
	return (u.AccessPoint == nil || !u.AccessPoint.Runs()) && u.Interface.Void()
}

func (u *radioUndo) revertLasting(*Kernel) error {
	if u.AccessPoint == nil {
		return nil
	}
	return u.AccessPoint.Stop()
}

func (u *radioUndo) revert(k *Kernel) (string, error) {
	stopped := u.revertLasting(k)
	was := k.unlessHeld(u.Interface)
	note, err := inTurn(u.Radio.Revert, was.Revert)
	if err = errors.Join(stopped, err); err == nil && u.AccessPoint != nil {
		err = removeDaemonDir(*u.AccessPoint)
	}
	return note, err
}

func (u *radioUndo) on() (string, int) { return u.Radio.Interface, u.Radio.Index }
