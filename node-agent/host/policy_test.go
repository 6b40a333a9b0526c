package host

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

func ptr[T any](v T) *T { return &v }

// hotspot is one that is allowed, spoilt.
func traced(port, client, streams int) change.TCPEvents {
	return change.TCPEvents{Flows: []change.TracedFlow{{Port: port, ClientPort: client, Streams: streams}}}
}

func hotspot(spoil func(*change.Hotspot)) change.Hotspot {
	h := change.Hotspot{Interface: "wlan0", SSID: "fieldmesh", Channel: 6, Passphrase: strings.Repeat("a1", 16),
		Network: netip.MustParsePrefix("10.77.0.0/24")}
	spoil(&h)
	return h
}

//attack:face changes to other interfaces than the one under test | the interfaces are those of the configuration
//attack:face addresses, routes and rules that turn the machine's other traffic aside | they lie in the networks of
//attack:and the configuration
//attack:face sysctls of the machine by a path or another name | a list of keys, each with its bounds
//attack:face programs that are no routing daemons, or lie elsewhere | a list of daemons, at the paths of the
//attack:and configuration
//attack:face options and second lines in the place of names that programs and their files are given | names have a
//attack:and form of their own
//attack:face values that harm the machine | a sysctl is one that trials set, within their bounds
//attack:face a number of connections so large that counting them takes all memory | they are bounded, not listed
func TestEscapesAreRefused(t *testing.T) {
	wlan, any4 := "wlan0", netip.MustParsePrefix("0.0.0.0/0")
	prefix := netip.MustParsePrefix
	inside := prefix("10.77.0.0/16")
	cases := []struct {
		name string
		c    change.Change
		want string
	}{
		{"nothing", nil, "not a kind of change"},
		{"the address of a change", &change.Link{Interface: wlan, Up: ptr(true)}, "not a kind of change"},
		{"other interface", change.Link{Interface: "eth0", Up: ptr(false)}, `"eth0" is not among`},
		{"traversal as interface", change.Link{Interface: "../eth0", Up: ptr(false)}, "not among"},
		{"link without a wish", change.Link{Interface: wlan}, "neither up nor"},
		{"connections without an end", traced(5001, 50000, 1<<62), "1 to 128 can be followed"},
		{"connections beyond the last port", traced(5001, 65535, 2), "a port outside"},
		{"a port at the end of numbers", traced(5001, math.MaxInt, 2), "a port outside"},
		{"small mtu", change.Link{Interface: wlan, MTUBytes: ptr(1279)}, "1280 to 9216"},
		{"large mtu", change.Link{Interface: wlan, MTUBytes: ptr(65536)}, "1280 to 9216"},
		{"address outside", address("192.168.1.1/24"), "outside the allowed prefixes"},
		{"address wider than allowed", address("10.77.0.1/8"), "outside the allowed prefixes"},
		{"address unset", change.Address{Interface: wlan}, "missing or not valid"},
		{"mapped address", address("::ffff:10.77.0.1/120"), "not a plain unicast address"},
		{"default route", change.Route{Interface: wlan, Destination: any4}, "outside the allowed prefixes"},
		{"route outside", route("10.78.0.0/24"), "outside the allowed prefixes"},
		{"route with host bits", route("10.77.0.1/24"), "bits set"},
		{"forwarding of another", change.Forward{Interface: "eth0"}, `"eth0" is not among`},
		{"rule for all networks", change.Rule{Network: any4}, "network 0.0.0.0/0 is outside the allowed prefixes"},
		{"rule with host bits", change.Rule{Network: prefix("10.77.0.1/24")}, "bits set"},
		{"gateway outside", change.Route{Interface: wlan, Destination: inside,
			Via: ptr(netip.MustParseAddr("10.78.0.1"))}, "gateway 10.78.0.1/32 is outside"},
		{"gateway of other family", change.Route{Interface: wlan, Destination: inside,
			Via: ptr(netip.MustParseAddr("fd77::1"))}, "one family"},
		{"source outside", change.Route{Interface: wlan, Destination: inside,
			Source: ptr(netip.MustParseAddr("8.8.8.8"))}, "source 8.8.8.8/32 is outside"},
		{"congestion control", change.Route{Interface: wlan, Destination: inside, Congestion: "reno; reboot"},
			"name of a congestion control"},
		{"negative metric", change.Route{Interface: wlan, Destination: inside, Metric: -1}, "metric -1"},
		{"kernel sysctl", sysctl("kernel.core_pattern", "x"), "not among those"},
		{"sysctl traversal", sysctl("net.ipv4.tcp_../../../kernel/core_pattern", "x"), "not among those"},
		{"sysctl with slashes", sysctl("net/ipv4/tcp_sack", "0"), "not among those"},
		{"sysctl device traversal", sysctl("net.ipv4.conf.../../../kernel.rp_filter", "0"),
			"not the name of an interface"},
		{"sysctl device dots", sysctl("net.ipv4.conf....rp_filter", "0"), "not the name of an interface"},
		{"sysctl of other device", sysctl("net.ipv4.conf.eth0.rp_filter", "0"), `"eth0" is not among`},
		{"sysctl of default", sysctl("net.ipv4.conf.default.rp_filter", "0"), "not the name of an interface"},
		{"sysctl key of one device for all", sysctl("net.ipv6.conf.all.disable_ipv6", "1"), "not among those"},
		{"all forwarding", sysctl("net.ipv4.conf.all.forwarding", "1"), "not among those"},
		{"secret", sysctl("net.ipv4.tcp_fastopen_key", "0"), "not among those"},
		{"memory of the machine's TCP", sysctl("net.ipv4.tcp_rmem", "1 1 1"), "not among those"},
		{"a flood unanswered", sysctl("net.ipv4.tcp_syncookies", "0"), "not among those"},
		{"connections given up at once", sysctl("net.ipv4.tcp_retries2", "0"), "not the one value that is set, 255"},
		{"connecting given up at once", sysctl("net.ipv4.tcp_syn_retries", "1"), "not the one value that is set, 127"},
		{"others forgotten", change.TCPMetrics{Peers: any4}, "prefix of peers 0.0.0.0/0 is outside"},
		{"redirects obeyed", sysctl("net.ipv4.conf.all.accept_redirects", "1"), "not the one value that is set, 0"},
		{"IPv6 turned on", sysctl("net.ipv6.conf.wlan0.disable_ipv6", "0"), "not the one value that is set, 1"},
		{"RTO of 10 minutes", sysctl("net.ipv4.tcp_rto_max_ms", "600000"), "not a number from 1000 to 120000"},
		{"RTO of 1 ms", sysctl("net.ipv4.tcp_rto_min_us", "1000"), "not a number from 10000 to 60000000"},
		{"value with a sign", sysctl(sack, "+1"), "not a number from 0 to 1"},
		{"value with a line", sysctl(sack, "0\n1"), "not a number"},
		{"value with a path", sysctl(sack, "/etc/passwd"), "not a number"},
		{"no value", sysctl(sack, ""), "not a number"},
		{"long value", sysctl(sack, strings.Repeat("1", 200)), "not a number"},
		{"congestion control of two words", sysctl("net.ipv4.tcp_congestion_control", "reno cubic"), "not the name"},
		{"shell as daemon", change.Daemon{Name: "bash", Interface: wlan, Announce: inside}, "not a daemon"},
		{"path as daemon", change.Daemon{Name: "../../bin/sh", Interface: wlan, Announce: inside}, "not a daemon"},
		{"daemon elsewhere", change.Daemon{Name: babeld, Interface: "eth0", Announce: inside}, "not among"},
		{"daemon announces the world", change.Daemon{Name: babeld, Interface: wlan, Announce: any4},
			"outside the allowed"},
		{"interface beside another", change.Virtual{Interface: wlan, Beside: "eth0", Mode: "adhoc", Channel: 6},
			"no interface beside which"},
		{"hotspot elsewhere", hotspot(func(h *change.Hotspot) { h.Interface = "eth0" }), `"eth0" is not among`},
		{"option as hotspot", hotspot(func(h *change.Hotspot) { h.SSID = "-f" }), "is not one of 2 to 32"},
		{"two lines as hotspot", hotspot(func(h *change.Hotspot) { h.SSID = "a\nb" }), "is not one of 2 to 32"},
		{"option as passphrase", hotspot(func(h *change.Hotspot) { h.Passphrase = "-b 5 0123456789ab" }),
			"the passphrase is not"},
		{"hotspot on no channel", hotspot(func(h *change.Hotspot) { h.Channel = 15 }), "channel 15 is none"},
		{"hotspot beside all networks", hotspot(func(h *change.Hotspot) { h.Network = any4 }), "outside the allowed"},
		{"daemon's hello", change.Daemon{Name: babeld, Interface: wlan, Announce: inside, HelloS: ptr(0.0)},
			"hello interval"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			refused := testPolicy().Check(c.c)
			if refused == nil {
				t.Fatalf("%s is allowed", c.c)
			}
			if !strings.Contains(refused.Error(), c.want) {
				t.Errorf("refused with %q, want %q in it", refused, c.want)
			}
		})
	}
}

func TestWhatTrialsNeedIsAllowed(t *testing.T) {
	gateway := netip.MustParseAddr("10.77.0.2")
	for _, c := range []change.Change{
		linkUp(), change.Link{Interface: "wlan0", MTUBytes: ptr(1500)}, address("10.77.0.1/24"), address("fd77::1/64"),
		route("10.77.0.0/24"), change.Rule{Network: netip.MustParsePrefix("10.77.0.0/24")},
		change.Route{Interface: "wlan0", Destination: netip.MustParsePrefix("10.77.3.0/24"),
			Via: &gateway, Source: &gateway, Metric: 5, Congestion: "reno"},
		sysctl("net.ipv4.tcp_congestion_control", "reno"), sysctl("net.ipv4.tcp_rto_min_us", "200000"),
		sysctl("net.ipv4.ip_forward", "1"), sysctl("net.ipv4.conf.wlan0.rp_filter", "0"),
		sysctl("net.ipv4.conf.all.rp_filter", "0"), sysctl("net.ipv6.conf.wlan0.disable_ipv6", "1"),
		routingDaemon(), hotspot(func(*change.Hotspot) {}),
	} {
		if refused := testPolicy().Check(c); refused != nil {
			t.Errorf("%s: %v", c, refused)
		}
	}
}

func FuzzDecodeRequest(f *testing.F) {
	f.Add([]byte(`{"apply":{"scope":"run","changes":[{"link":{"interface":"wlan0","up":true}},{"address":{"interface":"wlan0","prefix":"10.77.0.1/24"}}]}}`))
	f.Add([]byte(`{"apply":{"scope":"trial","changes":[{"sysctl":{"key":"net.ipv4.conf.wlan0.rp_filter","value":"0"}},{"daemon":{"name":"babeld","interface":"wlan0","announce":"10.77.0.0/16","hello_s":1}}]}}`))
	f.Add([]byte(`{"apply":{"scope":"trial","changes":[{"route":{"interface":"wlan0","destination":"10.77.3.0/24","via":"10.77.0.2","metric":3,"congestion":"reno"}}]}}`))
	f.Add([]byte(`{"apply":{"scope":"run","changes":[{"virtual":{"interface":"wlan0","beside":"wlan1","mode":"adhoc","channel":6}}]}}`))
	f.Add([]byte(`{"restore":{"scope":""}}`))
	f.Add([]byte(`{"status":{}}`))
	f.Add([]byte(`{"scan":{"interface":"wlan0","channel":6}} {}`))
	fuzz.Run(f, func(t *testing.T, data []byte) {
		r, err := decodeRequest(data)
		if err != nil || r.Apply == nil {
			return
		}
		p := testPolicy()
		for _, c := range r.Apply.changes() {
			if p.Check(c) != nil {
				continue
			}
			if s, is := c.(change.Sysctl); is {
				if !strings.HasPrefix(s.Key, "net.ipv") || strings.ContainsAny(s.Key, "/\x00") || len(s.Value) > 15 {
					t.Fatalf("%s is allowed", s)
				}
			}
		}
	})
}
