package host

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/node-agent/radio/quirk"
)

// Radio has a radio's interface join an ad hoc cell or an 802.11s mesh on a
// channel, be an access point there or that one's station, with rates of 802.11a, b or g only: never those of 802.11n and
// later, which would answer for another radio than the one under test.
type Radio struct {
	Interface         string   `json:"interface"`
	Mode              string   `json:"mode"`     // adhoc | mesh | ap | managed, which is a station
	Standard          string   `json:"standard"` // 802.11a | 802.11b | 802.11g
	Channel           int      `json:"channel"`
	SSID              string   `json:"ssid"`
	BSSID             string   `json:"bssid,omitempty"`               // adhoc; absent: the cell that is heard, or a new one
	RateMbps          *float64 `json:"rate_mbps,omitempty"`           // fixed; absent: the driver's rate control
	TxPowerDbm        *float64 `json:"tx_power_dbm,omitempty"`        // absent: as the driver has it
	RTSThresholdBytes *int     `json:"rts_threshold_bytes,omitempty"` // absent: as the driver has it
	RetryLimit        *int     `json:"retry_limit,omitempty"`         // of frames shorter than the RTS threshold, and of longer ones
	// Keep is where the interface's addresses stay. All others of IPv4 belong to
	// a network that it leaves: they are taken off, lest they be sent from.
	Keep netip.Prefix `json:"keep"`
}

// joinTime bounds the joining of a cell: a radio that scans for it first takes
// some seconds. A station waits for its access point, which another node begins
// at the same time by a program of its own, and asks anew while it is not there.
const (
	joinTime     = 10 * time.Second
	associate    = 20 * time.Second
	connectEvery = 2 * time.Second
)

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

func (r Radio) describe() string {
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

// errNoRadio says that an interface is there but is no radio's.
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

// applyRadio joins, unless the interface is in the very network already.
func (k *kernel) applyRadio(r Radio, u undo) (err error) {
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

// in tells whether the interface is in a network.
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
		return fmt.Errorf("%w: the radio is switched off: run `rfkill unblock wlan`, or switch it on at the machine", err)
	}
	return err
}

// awaitJoined waits until the interface is in the network, and looks whether
// it is the one that was asked for: some drivers say yes and do otherwise. ended
// tells that the program which keeps the network up has ended; nil where none does.
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
			err := fmt.Errorf("join %q with BSSID %q on %d MHz: %s later the radio is in %s", n.SSID, n.BSSID, n.MHz, patience, there)
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

// look tells whether the interface is in a network of that name, and what there is.
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
