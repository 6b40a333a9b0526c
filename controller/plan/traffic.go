package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/plan/draw"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// minMSS is the smallest MSS that Linux honours (TCP_MIN_MSS, include/net/tcp.h).
const minMSS = 88

// maxMSS is what a 1500-byte MTU leaves beside the IPv4 and TCP headers.
const maxMSS = 1460

// traffic judges every flow, and the flows beside each other.
func (c *check) traffic() {
	c.need("traffic", "a mapping from a flow's name to the flow")
	flows := c.tree.Child("traffic")
	if flows == nil || flows.Shape != tree.Map {
		return
	}
	measured, main, parts := 0, false, c.participants()
	servers := map[string]string{} // node and port → flow
	for _, e := range flows.Entries {
		if e.Value.Shape != tree.Map {
			return
		}
		c.flow(e.Key, e.Value)
		for _, f := range c.decodeFlows(e) {
			if !f.Background {
				measured++
				main = main || f.From == c.role("sender") && f.To == c.role("receiver") || f.From == f.To ||
					!slices.Contains(parts, f.From) || !slices.Contains(parts, f.To) // drawn, or at fault
			}
			c.ownPort(e, f, servers)
		}
		c.dataPorts(e)
	}
	c.drawnFlows(flows)
	if measured == 0 && len(flows.Entries) > 0 {
		c.add(flows.Home, "trial.traffic: every flow is background; allowed: at least one that is measured")
	}
	if measured > 0 && !main && !c.p.archived {
		c.add(flows.Home, "trial.traffic: no measured flow goes from sender %s to receiver %s; allowed: one without "+
			"from and to, or from: sender, to: receiver", c.role("sender"), c.role("receiver"))
	}
}

// ownPort keeps the servers of flows apart. One whose node is drawn may be on
// any node, and so shares its port with no other flow.
func (c *check) ownPort(e tree.Entry, f wire.Flow, servers map[string]string) {
	node := f.Server()
	port := ":" + strconv.Itoa(f.Port)
	at := e.At
	if given := e.Value.Child("port"); given != nil {
		at = given.At
	}
	if f.Port == wire.DefaultControlPort || f.Port == wire.DefaultGoPort {
		c.add(at, "trial.traffic.%s.port: agents themselves listen on port %d; allowed: another port", e.Key, f.Port)
		return
	}
	if f.Port == wire.ProbePort && f.Kind != "iperf3_tcp" && c.has("routing.probe_hz") && !c.p.archived {
		c.add(at, "trial.traffic.%s.port: with routing.probe_hz agents listen on UDP port %d for the probe; allowed: "+
			"another port", e.Key, f.Port)
		return
	}
	other, taken := servers[node+port]
	if !taken && node != draw.Random {
		other, taken = servers[draw.Random+port]
	} else if !taken {
		other, taken = servers[port]
	}
	if taken && node != "" {
		c.add(at, "trial.traffic.%s.port: %d on node %s is taken by flow %s; allowed: a port of its own", e.Key, f.Port,
			node, other)
	}
	servers[node+port], servers[port] = e.Key, e.Key
}

// dataPorts keeps datagrams off the ports by which captures and the emulated
// radio know routing's packets: they would count as overhead, and not as data.
func (c *check) dataPorts(e tree.Entry) {
	for _, f := range c.decodeFlows(e) {
		if f.Kind == "iperf3_tcp" || f.Port < 1 || f.Port > math.MaxUint16 {
			continue
		}
		if of := signalling.AtPort(uint16(f.Port)); of != nil {
			at := e.At
			if given := e.Value.Child("port"); given != nil {
				at = given.At
			}
			c.add(at, "trial.traffic.%s.port: datagrams to port %d would count as packets of the routing protocol "+
				"%s; allowed: a port that no routing protocol has",
				e.Key, f.Port, strings.Join(of, ", "))
			return
		}
	}
}

func (c *check) flow(name string, m *tree.Node) {
	path := "traffic." + name + "."
	c.need(path+"kind", "iperf3_tcp, iperf3_udp, delay or cbr")
	c.flowEnds(name, m)
	kind := m.TextAt("kind")
	if kind != "" && kind != wire.KindDelay {
		c.unfit(path+"interval_ms", "for kind "+kind, "leave it out, or kind delay")
	}
	switch kind {
	case "iperf3_tcp":
		c.unfit(path+"bitrate_bps", "for kind iperf3_tcp, whose rate is TCP's", "leave it out")
		c.unfit(path+"total_bps", "for kind iperf3_tcp, whose rate is TCP's", "leave it out")
		if mss := m.NumberAt("payload_bytes"); mss != nil && (*mss < minMSS || *mss > maxMSS) {
			c.add(m.Child("payload_bytes").At, "trial.%spayload_bytes: %s cannot be a segment's payload; allowed: %d "+
				"to %d bytes for kind iperf3_tcp", path, formatNumber(*mss), minMSS, maxMSS)
		}
	case "iperf3_udp", wire.KindCBR, wire.KindDelay:
		c.need(path+"payload_bytes", "a number of bytes, which kind "+kind+" needs")
		c.unfit(path+"window_bytes", "for kind "+kind, "leave it out; a window is TCP's")
		c.unfit(path+"streams", "for kind "+kind+", which is one stream", "leave it out, or write several flows")
		c.datagrams(path, kind, m)
	}
	c.across(name, m)
	window, warmup := c.duration(), c.warmupS()
	start := m.NumberOrZero("start_s")
	end := start + m.NumberOrZero("duration_s")
	if window > 0 && (start < -warmup || start >= window || end > window+0.001) {
		at := m.Home
		for _, key := range []string{"start_s", "duration_s"} {
			if v := m.Child(key); v != nil {
				at = v.At
			}
		}
		c.add(at, "trial.traffic.%s: from %s s to %s s is not inside the window; allowed: %s to %s s",
			name, formatNumber(start), formatNumber(max(start, end)), formatNumber(0-warmup), formatNumber(window))
	}
	if within := m.NumberAt("start_within_s"); within != nil {
		c.unfit(path+"duration_s", "beside start_within_s, with which a flow lasts to the window's end", "leave it out")
		if window > 0 && start+*within >= window {
			c.add(m.Child("start_within_s").At, "trial.%sstart_within_s: a flow may begin at %s s, when the window of "+
				"%s s has closed; allowed: below %s s", path, formatNumber(start+*within), formatNumber(window),
				formatNumber(window-start))
		}
	}
	c.wholeSeconds(name, m, start, window)
}

// datagrams judges how large a flow's datagrams are, and how far apart.
func (c *check) datagrams(path, kind string, m *tree.Node) {
	bytes, bps := m.WholeAt("payload_bytes"), rate(m)
	if kind != "iperf3_udp" {
		c.unfit(path+"reverse", "for kind "+kind+", which its sender begins", "leave it out, or exchange from and to")
		if bytes != nil && *bytes < wire.DelayBytesMin {
			c.add(m.Child("payload_bytes").At, "trial.%spayload_bytes: %d bytes cannot hold a datagram's stamps; "+
				"allowed: %d to %d bytes for kind %s", path, *bytes, wire.DelayBytesMin, wire.DelayBytesMax, kind)
		}
	}
	switch {
	case kind == wire.KindDelay:
		c.need(path+"interval_ms", "a number of ms from one datagram to the next")
		c.unfit(path+"bitrate_bps", "for kind delay, whose rate its interval sets", "leave it out")
		c.unfit(path+"total_bps", "for kind delay, whose rate its interval sets", "leave it out")
		c.unfit(path+"background", "for kind delay, which is measured", "leave it out")
	case c.lacks(path + "total_bps"):
		c.need(path+"bitrate_bps", "a number of bit/s, which kind "+kind+" needs; or total_bps, that of all its "+
			"flows together")
	default:
		c.unfit(path+"bitrate_bps", "beside total_bps", "one of them")
	}
	if b := m.BoolAt("background"); kind == wire.KindCBR && b != nil && !*b {
		c.unfit(path+"background", "for kind cbr, which loads the network", "true, or kind iperf3_udp")
	}
	if kind != wire.KindCBR || bytes == nil || bps == nil {
		return
	}
	apart := wire.Flow{Kind: kind, PayloadBytes: bytes, BitrateBps: bps}.ApartMs()
	if apart < wire.CBRMsMin || apart > wire.CBRMsMax {
		c.add(m.Child("payload_bytes").At, "trial.%spayload_bytes: %d bytes at %s bit/s are a datagram every %s ms; "+
			"allowed: one every %d to %d ms for kind cbr", path, *bytes, formatNumber(roundTo(*bps, 1e3)),
			formatNumber(roundTo(apart, 1e3)), wire.CBRMsMin, wire.CBRMsMax)
	}
}

// acrossNone is for a level that takes back what the section trial says.
const acrossNone = "none"

// across judges a flow that is led over a relay of another.
func (c *check) across(name string, m *tree.Node) {
	path := "traffic." + name + ".across"
	if m.Child("across") == nil || m.TextAt("across") == acrossNone {
		return
	}
	if c.p.fieldTree.Lookup("mobility") == nil {
		c.unfit(path, "without field.mobility, which says where nodes are", "leave it out, or write the section")
	}
	if c.flowEnd(m, "from") != draw.Random {
		c.unfit(path, "between two nodes that are named", "from: random and to: random")
	}
	c.unfit("traffic."+name+".flows", "beside across", "several flows, each with across")
	c.unfit("traffic."+name+".unique_ends", "beside across", "leave it out")
	crossed := c.tree.Lookup("traffic." + m.TextAt("across"))
	if crossed == nil || crossed.Child("across") != nil || crossed.Child("flows") != nil {
		var could []string
		for _, e := range c.tree.Child("traffic").EntriesOrNone() {
			if e.Value.Child("across") == nil && e.Value.Child("flows") == nil {
				could = append(could, e.Key)
			}
		}
		c.add(m.Child("across").At, "trial.%s: %s is no flow that can be crossed; allowed: %s", path,
			m.Child("across").Show(), orNone(could))
	}
}

// wholeSeconds: iperf3 sends for whole seconds only, so that a flow of a part of
// one would go on beyond its time, unless the window's close ends it.
func (c *check) wholeSeconds(name string, m *tree.Node, start, window float64) {
	lasts := m.NumberAt("duration_s")
	if lasts == nil || *lasts == math.Trunc(*lasts) || window <= 0 || start+*lasts > window-0.001 ||
		(wire.Flow{Kind: m.TextAt("kind")}).Timed() {
		return
	}
	c.add(m.Child("duration_s").At, "trial.traffic.%s.duration_s: iperf3 cannot send for %s s; allowed: whole "+
		"seconds, or to the window's end at %s s, as without this key",
		name, formatNumber(*lasts), formatNumber(window))
}

// flowEnd is the node at one end of a flow; from is the sender and to the receiver unless the flow says otherwise.
func (c *check) flowEnd(m *tree.Node, key string) string {
	role := m.TextAt(key)
	if role == "" {
		if m.Child(key) != nil {
			return "" // at fault, and reported
		}
		role = map[string]string{"from": "sender", "to": "receiver"}[key]
	}
	switch role {
	case "sender", "receiver":
		return c.role(role)
	case "car", "roadside":
		return c.tree.TextAt(role)
	}
	return role
}

// rate is a flow's own: its share of the rate of all that are drawn with it.
func rate(m *tree.Node) *float64 {
	total := m.NumberAt("total_bps")
	if total == nil {
		return m.NumberAt("bitrate_bps")
	}
	return new(*total / float64(flowsOf(m)))
}

func (c *check) flowEnds(name string, m *tree.Node) {
	for _, key := range []string{"from", "to"} {
		n := m.Child(key)
		if !n.Fine() || n.Shape != tree.Text {
			continue
		}
		switch node := c.flowEnd(m, key); {
		case node == draw.Random:
		case node == "" && (n.Text == "car" || n.Text == "roadside") && c.lacks(n.Text):
			c.add(n.At, "trial.traffic.%s.%s: no node has the role %s; allowed: the name of a node, or name "+
				"trial.%s too", name, key, n.Text, n.Text)
		case node != "" && !slices.Contains(c.participants(), node):
			c.add(n.At, "trial.traffic.%s.%s: node %s takes no part in the trial; allowed: a node with a role, such "+
				"as one of trial.relays", name, key, node)
		}
	}
	from, to := c.flowEnd(m, "from"), c.flowEnd(m, "to")
	if from != "" && from != draw.Random && from == to && c.role("sender") != c.role("receiver") {
		at := m.Home
		for _, key := range []string{"from", "to"} {
			if v := m.Child(key); v != nil {
				at = v.At
			}
		}
		c.add(at, "trial.traffic.%s: it goes from node %s to itself; allowed: two nodes", name, from)
	}
}
