package host

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/node-agent/manager"
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

func (v Virtual) target() string { return v.String() }

// String is what a pending change is known by.
func (v Virtual) String() string { return fmt.Sprintf("interface %s beside %s", v.Interface, v.Beside) }

// ownedInterface is an interface that hangs on this process by its connection.
type ownedInterface struct {
	*nl80211.Conn
	index int
}

// prepare refuses what cannot be made there, and reads what the two interfaces
// share.
func (v Virtual) prepare(k *kernel, _ uint64) (u *virtualUndo, err error) {
	link, err := findLink(v.Beside)
	if err != nil {
		return nil, err
	}
	d, err := openRadio(v.Beside)
	if errors.Is(err, nl80211.ErrNone) || errors.Is(err, errNoRadio) {
		return nil, &Refused{Reason: v.Beside + " is not a radio: " + err.Error(),
			Cure: "correct `phy_of` in agent.yaml, or load the radio's driver"}
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.conn.Close()) }()
	own := &net.Interface{Index: link.Attrs().Index, Name: v.Beside, HardwareAddr: link.Attrs().HardwareAddr}
	if reason, cure := d.checkVirtual(k.managers, v, own); reason != "" {
		return nil, &Refused{Reason: reason, Cure: cure}
	}
	mac, err := addressBeside(link.Attrs())
	if err != nil {
		return nil, err
	}
	i := d.iface
	out := madeInterface{Interface: v.Interface, MAC: mac.String(), Beside: v.Beside, Index: i.Index,
		RTS: d.phy.RTSThreshold, RetryShort: d.phy.RetryShort, RetryLong: d.phy.RetryLong, MHz: i.MHz}
	if i.MHz != 0 { // in no network the power means nothing
		out.TxPowerDbm = i.TxPowerDbm
	}
	if out.PowerSave, err = d.conn.PowerSave(i.Index); err != nil && !unsupported(err) {
		return nil, err
	}
	return &virtualUndo{Virtual: out}, nil
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
		if !slices.ContainsFunc(append(taken, own), func(other net.HardwareAddr) bool {
			return slices.Equal(other, mac)
		}) {
			return mac, nil
		}
	}
	return nil, fmt.Errorf("no address beside %s is free", own)
}

// apply makes the interface, unless it is there. The radio does not sleep then:
// where its own interface does, it sleeps for both.
func (v Virtual) apply(k *kernel, u *virtualUndo) error {
	there, err := k.made(u.Virtual)
	if err != nil {
		return err
	}
	d, err := openRadio(v.Beside)
	if err != nil {
		return fmt.Errorf("open radio %q: %w", v.Beside, err)
	}
	if u.Virtual.PowerSave {
		err = d.conn.SetPowerSave(d.iface.Index, false)
	}
	if there != nil || err != nil {
		return errors.Join(err, d.conn.Close())
	}
	return k.makeVirtual(d, v, u.Virtual)
}

// makeVirtual keeps the connection, on which the interface hangs.
func (k *kernel) makeVirtual(d *radioDevice, v Virtual, u madeInterface) error {
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
		return fmt.Errorf("make interface %q: its driver gives it the address of %s, and a radio that is two "+
			"stations needs two: name %s itself as `interface`, without `phy_of`", v.Interface, v.Beside, v.Beside)
	}
	return k.managers.AwaitNotice(v.Beside, v.Interface)
}

// made finds the interface that a change made; nil when it has gone, or never
// was. One of this process's life is known by its index, whatever happened to
// its name and address since.
func (k *kernel) made(u madeInterface) (*nl80211.Interface, error) {
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

// hasMade reports whether an interface was made by this process.
func (k *kernel) hasMade(index int) bool {
	for _, what := range k.loaded {
		if own, ok := what.(ownedInterface); ok && own.index == index {
			return true
		}
	}
	return false
}

func (v Virtual) check(p policy) (reason, cure string) {
	if reason, cure = p.checkInterface(v.Interface); reason != "" {
		return reason, cure
	}
	switch {
	case p.beside == "":
		return "there is no interface beside which one may be made", "name the machine's own one as phy_of in " +
			"agent.yaml"
	case v.Beside != p.beside:
		return fmt.Sprintf("an interface may be made beside %s, not beside %q", p.beside, v.Beside),
			"correct beside in agent.yaml"
	case !slices.Contains(radioModes(), v.Mode):
		return fmt.Sprintf("mode %q is none of %s", v.Mode, strings.Join(radioModes(), ", ")), ""
	case nl80211.Frequency(v.Channel) == 0:
		return fmt.Sprintf("channel %d is none of 2.4 and 5 GHz", v.Channel), ""
	}
	return "", ""
}

// checkVirtual looks at the radio of the machine's own interface.
func (d *radioDevice) checkVirtual(m manager.Managers, v Virtual, own *net.Interface) (reason, cure string) {
	if _, err := net.InterfaceByName(v.Interface); err == nil {
		return fmt.Sprintf("there is an interface %s already, which this agent did not make", v.Interface),
			fmt.Sprintf("take it away (iw dev %s del), or name another one as `interface` in agent.yaml", v.Interface)
	}
	held, err := m.Find(own) // whoever cannot be asked now is asked again before the interface is set
	if errors.Is(err, manager.ErrByHand) || slices.ContainsFunc(held, func(h manager.Held) bool {
		return h.Manager == manager.Android
	}) {
		return manager.Android + " leaves no part of its radio to others",
			fmt.Sprintf("leave `phy_of` out of agent.yaml and name %s as `interface`: Wi-Fi is switched off for "+
				"the run", v.Beside)
	}
	if reason, cure = d.checkMode(Radio{Interface: v.Beside, Mode: v.Mode}); reason != "" {
		return reason, cure
	}
	return d.checkShared(v.Interface, v.Mode, v.Channel, v.Beside)
}

// virtualUndo takes the interface away and gives its radio back as it was.
type virtualUndo struct {
	placed
	Virtual madeInterface `json:"virtual"`
}

// madeInterface is an interface that was made, and how its radio was.
type madeInterface struct {
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

func (u madeInterface) key() string {
	return Virtual{Interface: u.Interface, Beside: u.Beside}.String()
}

func (u *virtualUndo) void(k *kernel) bool {
	there, err := k.made(u.Virtual)
	return err == nil && there == nil
}

// revert takes the interface away, if it is the very one. After a crash the
// kernel has done so, or is about to.
func (u *virtualUndo) revert(k *kernel) (note string, err error) {
	there, err := k.made(u.Virtual)
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
func (u madeInterface) giveBack() (err error) {
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
