package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// Radio has a radio's interface join an ad hoc cell or an 802.11s mesh on a channel, be an access point there or that
// one's station, with rates of 802.11a, b or g only: never those of 802.11n and later, which would answer for another
// radio than the one under test.
type Radio struct {
	Interface string `json:"interface"`
	Mode      string `json:"mode"`     // adhoc | mesh | ap | managed, which is a station
	Standard  string `json:"standard"` // 802.11a | 802.11b | 802.11g
	Channel   int    `json:"channel"`
	SSID      string `json:"ssid"`
	// adhoc; absent: the cell that is heard, or a new one
	BSSID             string   `json:"bssid,omitempty"`
	RateMbps          *float64 `json:"rate_mbps,omitempty"`           // fixed; absent: the driver's rate control
	TxPowerDbm        *float64 `json:"tx_power_dbm,omitempty"`        // absent: as the driver has it
	RTSThresholdBytes *int     `json:"rts_threshold_bytes,omitempty"` // absent: as the driver has it
	// of frames shorter than the RTS threshold, and of longer ones
	RetryLimit *int `json:"retry_limit,omitempty"`
	// Keep is where the interface's addresses stay. All others of IPv4 belong to
	// a network that it leaves: they are taken off, lest they be sent from.
	Keep netip.Prefix `json:"keep"`
}

// rates are those of a standard, and those of them that every station of a
// cell must have (IEEE 802.11-2020, 17.2.3.3, 16.2.3.3 and 18.1.2).
var (
	ratesDSSS = []float64{1, 2, 5.5, 11}
	ratesOFDM = []float64{6, 9, 12, 18, 24, 36, 48, 54}
	rates     = map[string]struct{ all, basic []float64 }{
		"802.11a": {ratesOFDM, []float64{6, 12, 24}},
		"802.11b": {ratesDSSS, ratesDSSS},
		"802.11g": {slices.Concat(ratesDSSS, ratesOFDM), ratesDSSS},
	}
)

func (r Radio) target() string { return "radio " + r.Interface }

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

// network is what is joined. A fixed rate is a basic one: a driver takes none
// that the cell's stations need not have.
func (r Radio) network() nl80211.Network {
	n := nl80211.Network{Mode: r.Mode, SSID: r.SSID, BSSID: strings.ToLower(r.BSSID), MHz: nl80211.Frequency(r.Channel),
		Width: nl80211.WidthNoHT, BasicMbps: rates[r.Standard].basic}
	if r.RateMbps != nil {
		n.McastMbps = *r.RateMbps
		if !slices.Contains(n.BasicMbps, *r.RateMbps) {
			n.BasicMbps = append(slices.Clone(n.BasicMbps), *r.RateMbps)
		}
	}
	return n
}

// allowed are the rates that the driver may use.
func (r Radio) allowed() []float64 {
	if r.RateMbps != nil {
		return []float64{*r.RateMbps}
	}
	return rates[r.Standard].all
}

// radioModes are those that an interface may be set to.
func radioModes() []string { return []string{"adhoc", "mesh", modeAP, modeStation} }

// The strongest transmitter that 802.11 knows of in these bands is 1 W; more
// than that is a mistake in a plan.
const (
	txPowerMaxDbm  = 30
	rtsMaxBytes    = 2347 // dot11RTSThreshold (IEEE 802.11-2020, annex C)
	retryLimitsMax = 255
)

func (r Radio) check(p policy) (reason, cure string) {
	if reason, cure = p.checkInterface(r.Interface); reason != "" {
		return reason, cure
	}
	standard, known := rates[r.Standard]
	switch {
	case !slices.Contains(radioModes(), r.Mode):
		return fmt.Sprintf("mode %q is none of %s", r.Mode, strings.Join(radioModes(), ", ")), ""
	case !known:
		return fmt.Sprintf("standard %q is none of 802.11a, 802.11b and 802.11g", r.Standard), ""
	case len(r.SSID) < 1 || len(r.SSID) > 32:
		return fmt.Sprintf("an SSID of %d bytes; 1 to 32 are allowed", len(r.SSID)), ""
	case nl80211.Frequency(r.Channel) == 0 || (r.Channel > 14) != (r.Standard == "802.11a"):
		return fmt.Sprintf("channel %d is none of %s", r.Channel, r.Standard), ""
	case r.RateMbps != nil && !slices.Contains(standard.all, *r.RateMbps):
		return fmt.Sprintf("%g Mbit/s is not a rate of %s", *r.RateMbps, r.Standard), ""
	case r.TxPowerDbm != nil && !(*r.TxPowerDbm >= 0 && *r.TxPowerDbm <= txPowerMaxDbm):
		return fmt.Sprintf("transmit power %g dBm is outside 0 to %d dBm", *r.TxPowerDbm, txPowerMaxDbm), ""
	case r.RTSThresholdBytes != nil && (*r.RTSThresholdBytes < 0 || *r.RTSThresholdBytes > rtsMaxBytes):
		return fmt.Sprintf("RTS threshold %d is outside 0 to %d bytes", *r.RTSThresholdBytes, rtsMaxBytes), ""
	case r.RetryLimit != nil && (*r.RetryLimit < 1 || *r.RetryLimit > retryLimitsMax):
		return fmt.Sprintf("retry limit %d is outside 1 to %d", *r.RetryLimit, retryLimitsMax), ""
	}
	return checkBSSID(r)
}

// checkBSSID takes an individual address (IEEE 802.11-2020, 9.2.4.3.4).
func checkBSSID(r Radio) (reason, cure string) {
	if r.BSSID == "" {
		return "", ""
	}
	mac, err := net.ParseMAC(r.BSSID)
	switch {
	case r.Mode == "mesh":
		return "a mesh has no BSSID", "leave it out"
	case r.Mode == modeAP:
		return "an access point's BSSID is its own address", "leave it out"
	case err != nil || len(mac) != 6:
		return fmt.Sprintf("%q is not a BSSID", r.BSSID), "write it as 02:11:22:33:44:55"
	case mac[0]&1 != 0:
		return fmt.Sprintf("BSSID %s is the address of a group", r.BSSID), "begin it with 02"
	}
	return "", ""
}

// prepareRadio refuses what this radio, this place or its present use forbids,
// each with its cure, and reads what the change alters.
func (r Radio) prepare(k *kernel, id uint64) (u *radioUndo, err error) {
	link, err := findLink(r.Interface)
	if err != nil {
		return nil, err
	}
	d, err := openRadio(r.Interface)
	switch {
	case errors.Is(err, nl80211.ErrNone) || errors.Is(err, errNoRadio):
		return nil, &Refused{Reason: r.Interface + " is not a radio: " + err.Error(),
			Cure: "correct `interface` in agent.yaml, load the radio's driver, or say `radio: {mode: none}` in the " +
				"campaign"}
	case err != nil:
		return nil, err
	}
	defer func() { err = errors.Join(err, d.conn.Close()) }()
	for _, check := range []func(Radio) (reason, cure string){d.checkMode, d.checkChannel, d.checkKill, d.checkUse,
		d.checkOthers} {
		if reason, cure := check(r); reason != "" {
			return nil, &Refused{Reason: reason, Cure: cure}
		}
	}
	state, err := readInterface(link)
	if err != nil {
		return nil, err
	}
	up := link.Attrs().Flags&net.FlagUp != 0
	state.Up = &up
	former, err := d.former()
	if err != nil {
		return nil, err
	}
	former.Rates, former.Joins = r.network().MHz, r.SSID
	program, err := k.prepareAccessPoint(id, r, link.Attrs().Index)
	if err != nil {
		return nil, err
	}
	return &radioUndo{Radio: former, Interface: state, AccessPoint: program}, nil
}

// apply joins, unless the interface is in the very network already.
func (r Radio) apply(_ *kernel, u *radioUndo) (err error) {
	d, err := openRadio(r.Interface)
	if err != nil {
		return fmt.Errorf("open radio %q: %w", r.Interface, err)
	}
	defer func() { err = errors.Join(err, d.conn.Close()) }()
	want := r.network()
	joined, err := d.in(want)
	switch {
	case err != nil:
	case r.Mode == modeAP && (!joined || len(findDaemon(*u.AccessPoint)) == 0):
		err = d.begin(want, *u.AccessPoint)
	case !joined:
		err = d.join(want, r.TxPowerDbm)
	}
	if err == nil {
		err = takeAddressesOff(r)
	}
	if err == nil {
		err = d.tune(r)
	}
	if err == nil && r.TxPowerDbm != nil && d.shared() {
		err = d.settlePower(r.TxPowerDbm)
	}
	if err != nil {
		return fmt.Errorf("set radio %q: %w", r.Interface, err)
	}
	return nil
}

// takeAddressesOff leaves the addresses to keep. The undo has them all.
func takeAddressesOff(r Radio) error {
	link, err := findLink(r.Interface)
	if err != nil {
		return err
	}
	addrs, err := redump(func() ([]netlink.Addr, error) { return netlink.AddrList(link, netlink.FAMILY_V4) })
	if err != nil {
		return fmt.Errorf("list addresses of %q: %w", r.Interface, err)
	}
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok && r.Keep.Contains(ip) {
			continue
		}
		if err := netlink.AddrDel(link, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("take address %s off %q: %w", a.IPNet, r.Interface, err)
		}
	}
	return nil
}

// radioUndo has the interface leave what the change joined.
type radioUndo struct {
	placed
	Radio     radioState     `json:"radio"`
	Interface interfaceState `json:"interface"`
	// AccessPoint is the process that keeps the radio one.
	AccessPoint *daemonProcess `json:"access_point,omitempty"`
}

func (u *radioUndo) void(*kernel) bool {
	return (u.AccessPoint == nil || len(findDaemon(*u.AccessPoint)) == 0) && u.Interface.void()
}

func (u *radioUndo) revertLasting(*kernel) error {
	if u.AccessPoint == nil {
		return nil
	}
	return stopDaemon(*u.AccessPoint)
}

func (u *radioUndo) revert(k *kernel) (string, error) {
	stopped := u.revertLasting(k)
	note, err := inTurn(u.Radio.revert, u.Interface.revert)
	if err = errors.Join(stopped, err); err == nil && u.AccessPoint != nil {
		err = removeDaemonDir(*u.AccessPoint)
	}
	return note, err
}

// radioState is how an interface of a radio was set.
type radioState struct {
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

// revert leaves what the change joined and sets the interface as it was.
// Addresses, routes and whether it is up come after it.
func (was radioState) revert() (note string, err error) {
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
