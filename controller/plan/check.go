package plan

import (
	"cmp"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/radios"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// check judges one cell's merged trial: what must be there, and what cannot
// go together. What is wrong with a value by itself was reported by its rule.
type check struct {
	p    *parse
	tree *tree.Node
	cell string
}

func (c *check) all() {
	c.nodes()
	c.course()
	c.speed()
	c.window()
	c.gate()
	c.warmup()
	c.conditions()
	c.acceptance()
	c.radio()
	c.fieldFits()
	c.traffic()
	c.transport()
	c.network()
}

func (c *check) add(at tree.Position, format string, args ...any) {
	c.p.findings.AddIn(c.cell, at, format, args...)
}

// need reports a key that is missing. It keeps silent where the key may be
// there under a misspelt name, or be a faulty factor's to bring.
func (c *check) need(path, what string) {
	if c.p.unsure {
		return
	}
	n, walked := c.tree, ""
	for key := range strings.SplitSeq(path, ".") {
		if n.Shape != tree.Map || n.Strange {
			return
		}
		next := n.Child(key)
		if next == nil {
			where := "trial"
			if walked != "" {
				where = rooted(walked)
			}
			missing := strings.TrimPrefix(strings.TrimPrefix(path, walked), ".")
			c.add(n.Home, "%s: key %q is missing; allowed: %s", where, missing, what)
			return
		}
		n, walked = next, joinPlain(walked, key)
	}
}

// rooted is a key of the merged trial as the file has it.
func rooted(path string) string {
	if path == "acceptance" || strings.HasPrefix(path, "acceptance.") {
		return path
	}
	return "trial." + path
}

// unfit reports a key that has no meaning beside another one.
func (c *check) unfit(path, why, allowed string) {
	if n := c.tree.Lookup(path); n != nil {
		c.add(n.Home, "%s: %s is not allowed %s; allowed: %s", rooted(path), n.Show(), why, allowed)
	}
}

// has reports whether a key is there, at fault or not.
func (c *check) has(path string) bool { return c.tree.Lookup(path) != nil }

// lacks reports whether a key is surely not there: not misspelt, and not left out by a faulty factor.
func (c *check) lacks(path string) bool {
	n := c.tree
	for key := range strings.SplitSeq(path, ".") {
		if n.Shape != tree.Map || n.Strange {
			return false
		}
		if n = n.Child(key); n == nil {
			return !c.p.unsure
		}
	}
	return false
}

// role is the node that sender, receiver or initiator names, directly or by another role; empty when it names none.
func (c *check) role(key string) string {
	name := c.tree.TextAt(key)
	switch name {
	case "car", "roadside":
		return c.tree.TextAt(name)
	case "sender", "receiver":
		if key == "initiator" {
			return c.role(name)
		}
	}
	return name
}

// accessPointFits: stations wait for their access point while they are armed, and the initiator is armed last.
func (c *check) accessPointFits() {
	ap := c.accessPoint()
	if ap == "" {
		return
	}
	at := c.tree.Lookup("radio.access_point").At
	switch {
	case !slices.Contains(c.participants(), ap):
		c.add(at, "trial.radio.access_point: node %s takes no part in the trial; allowed: a node with a role", ap)
	case ap == c.initiator():
		c.add(at, "trial.radio.access_point: node %s opens the gate, and is in the network last; allowed: another "+
			"node, such as the roadside's", ap)
	}
}

// accessPoint is the node that radio.access_point names, directly or by its role.
func (c *check) accessPoint() string {
	name := c.tree.TextAt("radio.access_point")
	switch name {
	case "car", "roadside", "sender", "receiver":
		return c.role(name)
	}
	return name
}

// initiator is the car's node where a car drives: its GPS opens the gate.
// Without a car it is the sender's, unless the file says otherwise.
func (c *check) initiator() string {
	if name := c.role("initiator"); name != "" {
		return name
	}
	if car := c.tree.TextAt("car"); car != "" {
		return car
	}
	return c.role("sender")
}

func (c *check) nodes() {
	c.need("sender", "a node, car or roadside")
	c.need("receiver", "a node, car or roadside")
	for _, key := range []string{"sender", "receiver", "initiator"} {
		if by := c.tree.TextAt(key); (by == "car" || by == "roadside") && c.lacks(by) {
			c.add(c.tree.Child(key).At, "trial.%s: no node has the role %s; allowed: the name of a node, or name "+
				"trial.%s too", key, by, by)
		}
	}
	m := c.tree
	if car := m.TextAt("car"); car != "" && car == m.TextAt("roadside") {
		c.add(m.Child("roadside").At, "trial.roadside: node %s is the car already; allowed: another node", car)
	}
	if sender := c.role("sender"); sender != "" && sender == c.role("receiver") {
		c.add(m.Child("receiver").At, "trial.receiver: node %s is the sender already; allowed: another node", sender)
	}
	if initiator, car := c.role("initiator"), m.TextAt("car"); initiator != "" && car != "" && initiator != car {
		c.add(m.Child("initiator").At, "trial.initiator: node %s is not in the car, whose place and speed open the "+
			"gate; allowed: car", initiator)
	}
	relays := m.Child("relays")
	if !relays.Fine() {
		return
	}
	for _, item := range relays.Items {
		if slices.Contains([]string{c.role("sender"), c.role("receiver"), m.TextAt("car"), m.TextAt("roadside")},
			item.Text) {
			c.add(item.At, "trial.relays: node %s has another role already; allowed: a node without one", item.Text)
		}
	}
}

// participants are the nodes that take part in the trial.
func (c *check) participants() []string {
	m := c.tree
	out := []string{c.role("sender"), c.role("receiver"), c.initiator(), m.TextAt("car"), m.TextAt("roadside")}
	for _, item := range m.Child("relays").ItemsOrNone() {
		out = append(out, item.Text)
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// network asks that nodes without a routing protocol can reach each other, and
// that nothing is wanted of a daemon that there is not.
func (c *check) network() {
	protocol := cmp.Or(c.tree.TextAt("routing.protocol"), noRouting)
	for _, k := range wire.RoutingKeys() {
		if !slices.Contains(k.Protocols, protocol) {
			c.unfit("routing."+k.Key, "with protocol "+protocol+", "+k.Else, "leave it out, or one of "+
				strings.Join(k.Protocols, ", "))
		}
	}
	routing := wire.Routing{Protocol: protocol, Ready: c.tree.TextAt("routing.ready")}
	if key, why, allowed := routing.Futile(); key != "" && protocol != noRouting && !c.p.archived {
		c.unfit("routing."+key, why, allowed)
	}
	snap := c.tree.WholeAt("capture.snap_bytes")
	if routing.CarriesData() && snap != nil && *snap < wire.SnapBytesDSR && !c.p.archived {
		c.unfit("capture.snap_bytes", "with DSR's header before TCP's", "from "+formatNumber(wire.SnapBytesDSR)+" on")
	}
	if protocol != noRouting {
		return
	}
	from, to := c.p.prefixOf(c.role("sender")), c.p.prefixOf(c.role("receiver"))
	if !from.IsValid() || !to.IsValid() {
		return
	}
	if !from.Masked().Contains(to.Addr()) || !to.Masked().Contains(from.Addr()) {
		at := c.p.addressAt[c.role("receiver")]
		c.add(at, "nodes: %s of receiver %s and %s of sender %s are not in one network, and routing is none; "+
			"allowed: addresses of one network, or a routing protocol", to, c.role("receiver"), from, c.role("sender"))
	}
}

// radio judges keys of the radio against its mode and standard.
func (c *check) radio() {
	const path = "radio."
	c.need("radio.mode", "adhoc, mesh, infrastructure, hotspot or none")
	mode, standard := c.tree.TextAt("radio.mode"), c.tree.TextAt("radio.standard")
	switch mode {
	case "none":
		for _, key := range (object{(schema{}).radioKeys()}).keys()[1:] {
			c.unfit(path+key, "with mode none, which leaves the interface as it is", "no other key of radio")
		}
		return
	case "adhoc", "mesh", wire.ModeInfrastructure:
		c.need("radio.standard", "802.11a, 802.11b or 802.11g; in a rehearsal also 802.11n or 802.11ac")
		c.need("radio.channel", "a channel of the standard")
		c.need("radio.ssid", "text of 1 to 32 bytes")
	case wire.ModeHotspot:
		c.hotspot()
	}
	switch mode {
	case "mesh":
		c.unfit("radio.bssid", "with mode mesh, which has no BSSID", "leave it out")
	case wire.ModeInfrastructure, wire.ModeHotspot:
		c.unfit("radio.bssid", "with mode "+mode+", whose BSSID is the access point's own address",
			"leave it out")
		c.need("radio.access_point", "the node that is the access point, by its name or role")
		c.accessPointFits()
	}
	if mode != "" && !(wire.Radio{Mode: mode}).HasAccessPoint() {
		c.unfit("radio.access_point", "with mode "+mode+", which has none", "leave it out, or mode: infrastructure")
	}
	if standard != "" {
		c.oneOf("radio.channel", radios.Channels(standard), "a channel of "+standard, "")
		c.oneOf("radio.rate_mbps", radios.Rates(standard), "a rate of "+standard, " Mbit/s")
	}
}

// oneOf reports a number that is none of some.
func (c *check) oneOf(key string, some []float64, what, unit string) {
	if n := c.tree.NumberAt(key); n != nil && !slices.Contains(some, *n) {
		c.add(c.tree.Lookup(key).At, "trial.%s: %s is not %s; allowed: %s%s", key, formatNumber(*n), what,
			joinNumbers(some), unit)
	}
}

// hotspot judges what only Android's own hotspot needs, and what it has no say in.
func (c *check) hotspot() {
	c.need("radio.channel", "a channel of 2.4 or 5 GHz")
	c.need("radio.ssid", "text of 2 to 32 letters, digits, dots, hyphens, underscores and blanks between them")
	for _, key := range []string{"standard", "tx_power_dbm", "rate_mbps", "rts_threshold_bytes", "retry_limit"} {
		c.unfit("radio."+key, "with mode hotspot, in which Android sets it", "leave it out: the records say what is "+
			"in force as far as the phone tells")
	}
	if c.tree.TextAt("routing.protocol") == "olsrd" && !c.p.archived {
		c.unfit("routing.protocol", "with mode hotspot, where Android gives the interface an address first, and olsrd "+
			"knows the node by the first", "another routing protocol, or mode: infrastructure")
	}
	c.oneOf("radio.channel", radios.Channels("802.11n"), "a channel of 2.4 or 5 GHz", "")
	if ssid := c.tree.TextAt("radio.ssid"); ssid != "" && !wire.HotspotSSID(ssid) {
		c.add(c.tree.Lookup("radio.ssid").At, "trial.radio.ssid: %q is not a name that Android's command takes; "+
			"allowed: 2 to 32 letters, digits, dots, hyphens, underscores and blanks between them", ssid)
	}
}

func (c *check) acceptance() {
	m := c.tree
	if c.lacks("speed_mps") {
		for _, key := range []string{"speed_band_mps", "in_band_share_min"} {
			c.unfit("acceptance."+key, "without trial.speed_mps, which it would be judged against",
				"name a speed, or leave it out")
		}
		return
	}
	if c.lacks("acceptance.speed_band_mps") {
		c.unfit("acceptance.in_band_share_min", "without acceptance.speed_band_mps",
			"give the band too, or leave it out")
	}
	gate := m.BoolAt("gate.speed_band")
	if c.lacks("acceptance.in_band_share_min") && !isOn(gate) && (c.lacks("gate.speed_band") || isOff(gate)) &&
		!c.p.archived {
		c.unfit("acceptance.speed_band_mps", "with neither in_band_share_min nor trial.gate.speed_band: true, without "+
			"which it judges nothing", "give one of them, or leave it out")
	}
	band, speed := m.NumberAt("acceptance.speed_band_mps"), m.NumberAt("speed_mps")
	if band != nil && speed != nil && *band >= *speed {
		c.add(m.Lookup("acceptance.speed_band_mps").At, "acceptance.speed_band_mps: %s is not allowed with speed_mps "+
			"%s, since a car that stands would be in the band; allowed: below the speed",
			formatNumber(*band), formatNumber(*speed))
	}
}
