package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
	"fieldmesh.dev/fieldmesh/node-agent/provenance"
)

// radioOf is a Wi-Fi radio of this machine.
type radioOf struct {
	Interface string   `json:"interface,omitempty"` // absent: the radio has none
	Radio     string   `json:"radio"`
	Driver    string   `json:"driver,omitempty"`
	Modes     []string `json:"modes"`
	Channels  []int    `json:"channels"` // on which a network may be begun
}

// radios lists the machine's Wi-Fi radios; none where the kernel has no 802.11 stack.
func radios() (out []radioOf, err error) {
	conn, err := nl80211.Open()
	if errors.Is(err, nl80211.ErrNone) {
		return []radioOf{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	phys, err := conn.Phys()
	if err != nil {
		return nil, err
	}
	interfaces, err := conn.Interfaces()
	if err != nil {
		return nil, err
	}
	for _, p := range phys {
		r := radioOf{Radio: p.Name, Modes: p.Modes, Channels: p.Usable()}
		if at := slices.IndexFunc(interfaces, func(i nl80211.Interface) bool { return i.Phy == p.Index }); at >= 0 {
			r.Interface = interfaces[at].Name
			r.Driver = provenance.Driver(r.Interface)
		}
		out = append(out, r)
	}
	return out, nil
}

// canBeNode reports whether the radio joins networks without an access point.
func (r radioOf) canBeNode() bool {
	return len(r.Channels) > 0 && (slices.Contains(r.Modes, "adhoc") || slices.Contains(r.Modes, "mesh"))
}

// verdict says what the radio is good for, by what its driver lists.
func (r radioOf) verdict() string {
	var networks []string
	for _, mode := range []struct{ name, word string }{{"adhoc", "ad hoc (IBSS)"}, {"mesh", "802.11s mesh"}} {
		if slices.Contains(r.Modes, mode.name) {
			networks = append(networks, mode.word)
		}
	}
	switch {
	case len(r.Channels) == 0:
		return "cannot be a node: no channel is allowed here; set the country, as with `iw reg set DE`"
	case len(networks) > 0:
		return "can be a node: " + strings.Join(networks, ", ")
	case slices.Contains(r.Modes, "ap"):
		return "neither ad hoc nor mesh: can be the access point, or a station, of a campaign with " +
			"`mode: infrastructure`"
	case slices.Contains(r.Modes, "managed"):
		return "neither ad hoc nor mesh: can be a station of a campaign with `mode: infrastructure`"
	}
	return "cannot be a node: its driver offers " + cmp.Or(strings.Join(r.Modes, ", "), "no mode")
}

// radioLines tell each radio and its verdict, why they are unknown, or what to do without any.
func radioLines(all []radioOf, unknown string) []string {
	if unknown != "" {
		return []string{"radio       unknown: " + unknown}
	}
	if len(all) == 0 {
		return []string{"radio       none: plug in a Wi-Fi adapter whose driver has ad hoc (IBSS) or mesh mode; " +
			"if one is in, `dmesg` says which driver or firmware it lacks"}
	}
	var out []string
	for _, r := range all {
		driver := cmp.Or(r.Driver, "of an unknown driver")
		out = append(out, fmt.Sprintf("%-11s %s: %s", cmp.Or(r.Interface, r.Radio), driver, r.verdict()))
	}
	return out
}
