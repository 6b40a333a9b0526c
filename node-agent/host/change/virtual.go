package change

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
	"fieldmesh.dev/fieldmesh/node-agent/host/wireless"
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

func (v Virtual) Target() string { return v.String() }

// String is what a pending change is known by.
func (v Virtual) String() string { return fmt.Sprintf("interface %s beside %s", v.Interface, v.Beside) }

// ownedInterface is an interface that hangs on this process by its connection.
type ownedInterface struct {
	*nl80211.Conn
	index int
}

// prepare refuses what cannot be made there, and reads what the two interfaces
// share.
func (v Virtual) prepare(k *Kernel, _ uint64) (u *virtualUndo, err error) {
	link, err := netstack.FindLink(v.Beside)
	if err != nil {
		return nil, err
	}
	d, err := wireless.Open(v.Beside)
	if wireless.NoRadio(err) {
		return nil, &Refused{Reason: v.Beside + " is not a radio: " + err.Error(),
			Cure: "correct `phy_of` in agent.yaml, or load the radio's driver"}
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Conn.Close()) }()
	own := &net.Interface{Index: link.Attrs().Index, Name: v.Beside, HardwareAddr: link.Attrs().HardwareAddr}
	if reason, cure := checkVirtual(d, k.managers, v, own); reason != "" {
		return nil, &Refused{Reason: reason, Cure: cure}
	}
	mac, err := wireless.AddressBeside(link.Attrs())
	if err != nil {
		return nil, err
	}
	i := d.Interface
	out := madeInterface{Interface: v.Interface, MAC: mac.String(), Beside: v.Beside, Index: i.Index,
		RTS: d.Phy.RTSThreshold, RetryShort: d.Phy.RetryShort, RetryLong: d.Phy.RetryLong, MHz: i.MHz}
	if i.MHz != 0 { // in no network the power means nothing
		out.TxPowerDbm = i.TxPowerDbm
	}
	if out.PowerSave, err = d.Conn.PowerSave(i.Index); err != nil && !wireless.Unsupported(err) {
		return nil, err
	}
	return &virtualUndo{Virtual: out}, nil
}

// apply makes the interface, unless it is there. The radio does not sleep then:
// where its own interface does, it sleeps for both.
func (v Virtual) apply(k *Kernel, u *virtualUndo) error {
	there, err := k.made(u.Virtual)
	if err != nil {
		return err
	}
	d, err := wireless.Open(v.Beside)
	if err != nil {
		return fmt.Errorf("open radio %q: %w", v.Beside, err)
	}
	if u.Virtual.PowerSave {
		err = d.Conn.SetPowerSave(d.Interface.Index, false)
	}
	if there != nil || err != nil {
		return errors.Join(err, d.Conn.Close())
	}
	return k.makeVirtual(d, v, u.Virtual)
}

// makeVirtual keeps the connection, on which the interface hangs.
func (k *Kernel) makeVirtual(d *wireless.Device, v Virtual, u madeInterface) error {
	mac, err := net.ParseMAC(u.MAC)
	if err == nil {
		err = k.unload(u.key()) // one that went with its radio
	}
	var i nl80211.Interface
	if err == nil {
		i, err = d.Conn.NewInterface(d.Phy.Index, v.Interface, v.Mode, mac)
	}
	if err != nil {
		return errors.Join(err, d.Conn.Close())
	}
	k.loaded[u.key()] = ownedInterface{d.Conn, i.Index}
	if strings.EqualFold(i.MAC, d.Interface.MAC) {
		return fmt.Errorf("make interface %q: its driver gives it the address of %s, and a radio that is two "+
			"stations needs two: name %s itself as `interface`, without `phy_of`", v.Interface, v.Beside, v.Beside)
	}
	return nil
}

// made finds the interface that a change made; nil when it has gone, or never
// was. One of this process's life is known by its index, whatever happened to
// its name and address since.
func (k *Kernel) made(u madeInterface) (*nl80211.Interface, error) {
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
func (k *Kernel) hasMade(index int) bool {
	for _, what := range k.loaded {
		if own, ok := what.(ownedInterface); ok && own.index == index {
			return true
		}
	}
	return false
}

func (v Virtual) check(p Policy) (reason, cure string) {
	if reason, cure = p.CheckInterface(v.Interface); reason != "" {
		return reason, cure
	}
	switch {
	case p.Beside == "":
		return "there is no interface beside which one may be made", "name the machine's own one as phy_of in " +
			"agent.yaml"
	case v.Beside != p.Beside:
		return fmt.Sprintf("an interface may be made beside %s, not beside %q", p.Beside, v.Beside),
			"correct beside in agent.yaml"
	case !slices.Contains(wireless.Modes(), v.Mode):
		return fmt.Sprintf("mode %q is none of %s", v.Mode, strings.Join(wireless.Modes(), ", ")), ""
	case nl80211.Frequency(v.Channel) == 0:
		return fmt.Sprintf("channel %d is none of 2.4 and 5 GHz", v.Channel), ""
	}
	return "", ""
}

// checkVirtual looks at the radio of the machine's own interface.
func checkVirtual(d *wireless.Device, m manager.Managers, v Virtual, own *net.Interface) (reason, cure string) {
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
	if reason, cure = d.CheckMode(v.Beside, v.Mode); reason != "" {
		return reason, cure
	}
	return d.CheckShared(v.Interface, v.Mode, v.Channel, v.Beside)
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

// void: without the made interface the undo still has how the radio was, of which it is made again.
func (u *virtualUndo) void(*Kernel) bool { return netstack.Vanished(u.Virtual.Index) }

// revert takes the interface away, if it is the very one. After a crash the
// kernel has done so, or is about to.
func (u *virtualUndo) revert(k *Kernel) (note string, err error) {
	there, err := k.made(u.Virtual)
	if err == nil && there == nil {
		note = netstack.Gone(u.Virtual.Interface)
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
	link, err := netstack.SameLink(u.Index)
	if err != nil || link == nil {
		return err
	}
	d, err := wireless.Open(link.Attrs().Name)
	if wireless.NoRadio(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Conn.Close()) }()
	err = d.SetLimits(u.RTS, u.RetryShort, u.RetryLong)
	if u.PowerSave {
		if e := d.Conn.SetPowerSave(u.Index, true); !wireless.Unsupported(e) {
			err = errors.Join(err, e)
		}
	}
	if u.TxPowerDbm != nil && d.Interface.MHz == u.MHz { // on another channel it has another by right
		err = errors.Join(err, d.SettlePower(u.TxPowerDbm), d.GivePowerBack(u.TxPowerDbm))
	}
	return err
}
