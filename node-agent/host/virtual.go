package host

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// Virtual makes an interface on the radio of the machine's own one, which stays
// in its network. The two share the radio's time, its thresholds and limits of
// retries and, with most chips, its channel.
type Virtual struct {
	Interface string `json:"interface"`
	Beside    string `json:"beside"`
	// Mode and Channel are those of the first network that it is to be in: what
	// the radio cannot have at once is refused before anything is changed.
	Mode    string `json:"mode"`
	Channel int    `json:"channel"`
}

// String says in words what the change does; a pending change is known by it.
func (v Virtual) String() string { return fmt.Sprintf("interface %s beside %s", v.Interface, v.Beside) }

// virtualUndo takes the interface away and gives its radio back as it was.
type virtualUndo struct {
	Interface string `json:"interface"`
	// MAC was chosen before the interface was made, and tells it from one that
	// somebody else makes under the name: its index is not known before.
	MAC        string   `json:"mac"`
	Beside     string   `json:"beside"`
	Index      int      `json:"index"` // of Beside
	RTS        uint32   `json:"rts_threshold_bytes"`
	RetryShort uint8    `json:"retry_short"`
	RetryLong  uint8    `json:"retry_long"`
	PowerSave  bool     `json:"power_save"`             // of Beside
	MHz        int      `json:"mhz,omitempty"`          // that Beside was on; 0: in no network
	TxPowerDbm *float64 `json:"tx_power_dbm,omitempty"` // that Beside had there
}

func (u virtualUndo) key() string { return Virtual{Interface: u.Interface, Beside: u.Beside}.String() }

// ownedInterface is an interface that hangs on this process by its connection.
type ownedInterface struct {
	*nl80211.Conn
	index int
}

// prepareVirtual refuses what cannot be made there, and reads what the two
// interfaces share.
func (k *kernel) prepareVirtual(v Virtual) (u undo, err error) {
	link, err := findLink(v.Beside)
	if err != nil {
		return undo{}, err
	}
	d, err := openRadio(v.Beside)
	if errors.Is(err, nl80211.ErrNone) || errors.Is(err, errNoRadio) {
		return undo{}, &Refused{Reason: v.Beside + " is no radio: " + err.Error(), Cure: "correct `beside` in agent.yaml, or load the radio's driver"}
	}
	if err != nil {
		return undo{}, err
	}
	defer func() { err = errors.Join(err, d.conn.Close()) }()
	own := &net.Interface{Index: link.Attrs().Index, Name: v.Beside, HardwareAddr: link.Attrs().HardwareAddr}
	if reason, cure := d.checkVirtual(k.managers, v, own); reason != "" {
		return undo{}, &Refused{Reason: reason, Cure: cure}
	}
	mac, err := addressBeside(link.Attrs())
	if err != nil {
		return undo{}, err
	}
	i := d.iface
	out := virtualUndo{Interface: v.Interface, MAC: mac.String(), Beside: v.Beside, Index: i.Index,
		RTS: d.phy.RTSThreshold, RetryShort: d.phy.RetryShort, RetryLong: d.phy.RetryLong, MHz: i.MHz}
	if i.MHz != 0 { // in no network the power means nothing
		out.TxPowerDbm = i.TxPowerDbm
	}
	if out.PowerSave, err = d.conn.PowerSave(i.Index); err != nil && !unsupported(err) {
		return undo{}, err
	}
	return undo{Virtual: &out}, nil
}

// What makes an address of a station a local one, and the bits beside it in
// which those of one radio may differ: chips listen to several by a mask, and
// some compare no others (IEEE 802-2014, 8.2; mt76 in the kernel).
const (
	localBit   = 1 << 1
	firstShift = 2
	shifts     = 8
)

// addressBeside is an address for an interface beside that of an own one, which
// no other interface here has. It is the same in every run. Drivers that have
// several to give begin at the first: this begins at the last.
func addressBeside(own *netlink.LinkAttrs) (net.HardwareAddr, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var taken []net.HardwareAddr
	for _, i := range all {
		taken = append(taken, i.HardwareAddr)
	}
	if len(own.PermHWAddr) > 0 { // a manager may have given it a random one for its scans
		return localAddress(own.PermHWAddr, taken)
	}
	return localAddress(own.HardwareAddr, taken)
}

func localAddress(own net.HardwareAddr, taken []net.HardwareAddr) (net.HardwareAddr, error) {
	if len(own) != 6 {
		return nil, fmt.Errorf("%q is not the address of an 802.11 station", own)
	}
	for n := shifts - 1; n >= 0; n-- {
		mac := slices.Clone(own)
		mac[0] = (mac[0] | localBit) ^ byte(n<<firstShift)
		if !slices.ContainsFunc(append(taken, own), func(other net.HardwareAddr) bool { return slices.Equal(other, mac) }) {
			return mac, nil
		}
	}
	return nil, fmt.Errorf("no address beside %s is free", own)
}

// applyVirtual makes the interface, unless it is there. The radio does not sleep
// then: where its own interface does, it sleeps for both.
func (k *kernel) applyVirtual(v Virtual, u virtualUndo) error {
	there, err := k.made(u)
	if err != nil {
		return err
	}
	d, err := openRadio(v.Beside)
	if err != nil {
		return fmt.Errorf("open radio %q: %w", v.Beside, err)
	}
	if u.PowerSave {
		err = d.conn.SetPowerSave(d.iface.Index, false)
	}
	if there != nil || err != nil {
		return errors.Join(err, d.conn.Close())
	}
	return k.makeVirtual(d, v, u)
}

// makeVirtual keeps the connection, on which the interface hangs.
func (k *kernel) makeVirtual(d *radioDevice, v Virtual, u virtualUndo) error {
	mac, err := net.ParseMAC(u.MAC)
	if err == nil {
		err = k.unload(u.key()) // one that went with its radio
	}
	var i nl80211.Interface
	if err == nil {
		i, err = d.conn.NewInterface(d.phy.Index, v.Interface, v.Mode, mac)
	}
	if err != nil {
		return errors.Join(err, d.conn.Close())
	}
	k.loaded[u.key()] = ownedInterface{d.conn, i.Index}
	if strings.EqualFold(i.MAC, d.iface.MAC) {
		return fmt.Errorf("make interface %q: its driver gives it the address of %s, and a radio that is two stations needs two: name %s itself as `interface`, without `beside`", v.Interface, v.Beside, v.Beside)
	}
	return k.managers.AwaitNotice(v.Beside, v.Interface)
}

// made finds the interface that a change made; nil when it has gone, or never
// was. One of this process's life is known by its index, whatever became of its
// name and address since.
func (k *kernel) made(u virtualUndo) (*nl80211.Interface, error) {
	conn, err := nl80211.Open()
	if errors.Is(err, nl80211.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := conn.Interfaces()
	if err = errors.Join(err, conn.Close()); err != nil {
		return nil, err
	}
	own, hangs := k.loaded[u.key()].(ownedInterface)
	at := slices.IndexFunc(all, func(i nl80211.Interface) bool {
		if hangs {
			return i.Index == own.index
		}
		return i.Name == u.Interface && strings.EqualFold(i.MAC, u.MAC)
	})
	if at < 0 {
		return nil, nil
	}
	return &all[at], nil
}

// hasMade tells whether an interface was made by this process.
func (k *kernel) hasMade(index int) bool {
	for _, what := range k.loaded {
		if own, ok := what.(ownedInterface); ok && own.index == index {
			return true
		}
	}
	return false
}

// revertVirtual takes the interface away, if it is the very one. After a crash
// the kernel has done so, or is about to.
func (k *kernel) revertVirtual(u undo) (note string, err error) {
	if u.Virtual == nil {
		return "", nil
	}
	there, err := k.made(*u.Virtual)
	if err == nil && there == nil {
		note = gone(u.Virtual.Interface)
	}
	if there != nil {
		err = deleteInterface(there.Index)
	}
	return note, errors.Join(err, k.unload(u.Virtual.key()), u.Virtual.giveBack())
}

func deleteInterface(index int) error {
	conn, err := nl80211.Open()
	if err != nil {
		return err
	}
	return errors.Join(conn.DeleteInterface(index), conn.Close())
}

// giveBack sets what the radio's interfaces share as it was. The undo of the
// trial's network does so too, but only while its interface is there.
func (u virtualUndo) giveBack() (err error) {
	link, err := sameLink(u.Beside, u.Index)
	if err != nil || link == nil {
		return err
	}
	d, err := openRadio(u.Beside)
	if errors.Is(err, errNoRadio) || errors.Is(err, nl80211.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.conn.Close()) }()
	err = d.setLimits(u.RTS, u.RetryShort, u.RetryLong)
	if u.PowerSave {
		if e := d.conn.SetPowerSave(u.Index, true); !unsupported(e) {
			err = errors.Join(err, e)
		}
	}
	if u.TxPowerDbm != nil && d.iface.MHz == u.MHz { // on another channel it has another by right
		err = errors.Join(err, d.settlePower(u.TxPowerDbm), d.power(u.TxPowerDbm))
	}
	return err
}

// shared tells whether another interface of the radio is in a network.
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
