package host

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/manager"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

func (p policy) checkVirtual(v Virtual) (reason, cure string) {
	if reason, cure = p.checkInterface(v.Interface); reason != "" {
		return reason, cure
	}
	switch {
	case p.beside == "":
		return "there is no interface beside which one may be made", "name the machine's own one as beside in agent.yaml"
	case v.Beside != p.beside:
		return fmt.Sprintf("an interface may be made beside %s, not beside %q", p.beside, v.Beside), "correct beside in agent.yaml"
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
	if errors.Is(err, manager.ErrByHand) || slices.ContainsFunc(held, func(h manager.Held) bool { return h.Manager == manager.Android }) {
		return manager.Android + " leaves no part of its radio to others", fmt.Sprintf("leave `beside` out of agent.yaml and name %s as `interface`: Wi-Fi is switched off for the run", v.Beside)
	}
	if reason, cure = d.checkMode(Radio{Interface: v.Beside, Mode: v.Mode}); reason != "" {
		return reason, cure
	}
	return d.checkShared(v.Interface, v.Mode, v.Channel, v.Beside)
}

// checkShared refuses a network that the interface cannot be in while the
// radio's other interfaces, those that are up and the named one, are what they are.
func (d *radioDevice) checkShared(name, mode string, channel int, beside string) (reason, cure string) {
	all, err := d.conn.Interfaces()
	if err != nil {
		return "", "" // the join says what is wrong
	}
	for _, other := range all {
		up := func() bool {
			i, err := net.InterfaceByName(other.Name)
			return err == nil && i.Flags&net.FlagUp != 0
		}
		// Monitors, and the parts of an access point, are software: they need no place.
		if other.Phy != d.phy.Index || other.Name == name || other.Mode == "monitor" || other.Mode == "ap-vlan" || other.Name != beside && !up() {
			continue
		}
		if reason, cure = sharedBy(d.phy, mode, channel, other); reason != "" {
			return reason, cure
		}
	}
	return "", ""
}

// sharedBy says why a radio cannot have an interface of a mode on a channel
// beside another one.
func sharedBy(phy nl80211.Phy, mode string, channel int, other nl80211.Interface) (reason, cure string) {
	alone := fmt.Sprintf("name %s itself as `interface` in agent.yaml, without `beside`: it leaves its own network for the run", other.Name)
	channels := phy.Beside(mode, other.Mode)
	if channels == 0 {
		cure = alone + "; or give the node a second radio"
		for _, instead := range []string{"adhoc", "mesh"} {
			if phy.Offers(instead) && phy.Beside(instead, other.Mode) > 0 {
				cure += "; or plan mode " + instead
			}
		}
		return fmt.Sprintf("the radio (%s) cannot be in %s mode beside %s, which is %s: at once it can have %s", phy.Name, mode, other.Name, other.Mode, combinations(phy)), cure
	}
	if channels == 1 && other.MHz != 0 && other.MHz != nl80211.Frequency(channel) {
		is := fmt.Sprintf("channel %d", nl80211.Channel(other.MHz))
		if nl80211.Channel(other.MHz) == 0 {
			is = fmt.Sprintf("%d MHz", other.MHz)
		}
		return fmt.Sprintf("%s is in its own network on %s, the plan wants channel %d, and the radio (%s) can be on one channel only", other.Name, is, channel, phy.Name),
			fmt.Sprintf("set that network's access point to channel %d, plan %s, or leave the network: nmcli device disconnect %s; or %s", channel, is, other.Name, alone)
	}
	return "", ""
}

// combinations words what a radio can have at once.
func combinations(phy nl80211.Phy) string {
	var out []string
	for _, c := range phy.Combinations {
		out = append(out, c.String())
	}
	if len(out) == 0 {
		return "one interface only"
	}
	return strings.Join(out, "; ")
}
