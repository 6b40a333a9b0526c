//go:build e2e

package android

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// netd is what Android's netd makes of a phone's networks, by its sources (server/RouteController.cpp and .h of
// system/netd): each network has a table and a mark, no rule leads to the table main, and sockets without a mark, as
// those of programs that Android's own libc has not made, have the default network's. What differs between versions
// are the rules' priorities.
type netd struct {
	android                                                                            string
	root, explicit, output, system, legacy, local, implicit, localRoutes, defaultRules int
	// The rule by which an interface is chosen is for the system alone, and each user has a default network.
	guarded bool
}

var netds = []netd{
	// The tags android-10.0.0_r41 and android-11.0.0_r48.
	{android: "10 and 11", root: 10500, explicit: 13000, output: 14000, system: 15000, legacy: 16000, local: 17000,
		implicit: 19000, defaultRules: 22000},
	// android-12.1.0_r22.
	{android: "12", root: 11000, explicit: 16000, output: 17000, system: 18000, legacy: 19000, local: 20000,
		implicit: 23000, defaultRules: 29000},
	// CalyxOS 13 to 15 and LineageOS 20 to 22: "Adjust IP rules to accommodate UID-based firewall".
	{android: "13 to 15 with a firewall of users", root: 11000, explicit: 16000, output: 17000, system: 18000,
		legacy: 19000, local: 20000, implicit: 23000, localRoutes: 26000, defaultRules: 29000, guarded: true},
	newestNetd,
}

// newestNetd is that of android-13.0.0_r1, android-14.0.0_r29 and the snapshot of 15 of July 2024; the source of 16 was
// not seen.
var newestNetd = netd{android: "13 to 15", root: 11000, explicit: 16000, output: 17000, system: 18000, legacy: 19000,
	local: 20000, implicit: 23000, localRoutes: 26000, defaultRules: 31000}

// network is one that the phone is in.
type network struct {
	link      string
	table, id int
	routes    []string // of its table
}

var (
	mobile = network{"rmnet0", 1003, 100, []string{"default via 100.64.7.1 onlink"}}
	// tethered is a machine at the phone's USB, for which netd has a fixed table (ROUTE_TABLE_LOCAL_NETWORK).
	tethered = network{"ctl0", 97, 99, []string{"10.98.0.0/24"}}
	// wifi has no internet, which its table does not know.
	wifi = network{"wlan0", 1002, 101, []string{"10.77.0.0/24", "default via 10.77.0.254 onlink"}}
)

// rules are words after ip, which replace all rules but the kernel's first. The default network is the mobile one.
func (n netd) rules(others ...network) []string {
	out := []string{"rule flush",
		"rule add pref 10000 fwmark 0xc0000/0xd0000 lookup 99", // ROUTE_TABLE_LEGACY_SYSTEM
		fmt.Sprintf("rule add pref %d fwmark 0x0/0x10000 lookup 99", n.system),
		fmt.Sprintf("rule add pref %d fwmark 0x0/0x10000 lookup 98", n.legacy), // ROUTE_TABLE_LEGACY_NETWORK
		fmt.Sprintf("rule add pref %d fwmark 0x0/0x10000 lookup 97", n.local)}
	for _, of := range append(others, mobile) {
		for _, to := range of.routes {
			out = append(out, fmt.Sprintf("route replace %s dev %s table %d", to, of.link, of.table))
		}
		chosen := ""
		if n.guarded && of.table != tethered.table {
			chosen = "fwmark 0xc0000/0xc0000 "
		}
		out = append(out,
			fmt.Sprintf("rule add pref %d iif lo oif %s uidrange 0-0 lookup %d", n.root, of.link, of.table),
			fmt.Sprintf("rule add pref %d fwmark %#x/0x1ffff iif lo lookup %d", n.explicit, 0x10000|of.id, of.table),
			fmt.Sprintf("rule add pref %d %siif lo oif %s lookup %d", n.output, chosen, of.link, of.table))
		if of.table != tethered.table {
			out = append(out, fmt.Sprintf("rule add pref %d fwmark %#x/0x1ffff iif lo lookup %d", n.implicit, of.id,
				of.table))
		}
	}
	if n.localRoutes != 0 {
		out = append(out, "route replace 100.64.7.0/30 dev rmnet0 table 1000000003",
			fmt.Sprintf("rule add pref %d fwmark 0x0/0x10000 iif lo lookup 1000000003", n.localRoutes))
	}
	users := ""
	if n.guarded {
		users = "uidrange 10000-99999 "
	}
	return append(out, fmt.Sprintf("rule add pref %d fwmark 0x0/0xffff iif lo %slookup %d", n.defaultRules, users,
		mobile.table), "rule add pref 32000 unreachable")
}

// marks are words after iptables: what comes in has the mark of its network, which a connection that is accepted then
// has, too (modifyIncomingPacketMark; init.rc of system/core sets the sysctls).
func marks(of ...network) (out []string) {
	for _, n := range of {
		out = append(out, fmt.Sprintf("-t mangle -A INPUT -i %s -j MARK --set-mark %#x/0xffefffff", n.link,
			0x30000|n.id))
	}
	return out
}

// obey puts a namespace under netd's rules.
func (n netd) obey(t *testing.T, ns *testnet.NS, others ...network) {
	t.Helper()
	for _, line := range n.rules(others...) {
		ns.Run(t, "ip", strings.Fields(line)...)
	}
}

// haveMobileData gives a namespace mobile data, of which nothing but other is behind it, and marks what comes in.
func haveMobileData(t *testing.T, ns *testnet.NS, others ...network) (lte *testnet.NS) {
	t.Helper()
	lte = testnet.NewNS(t, "lte")
	testnet.Veth(t, ns, mobile.link, "100.64.7.2/30", lte, "rmnet0", "100.64.7.1/30")
	ns.Run(t, "sysctl", "-qw", "net.ipv4.tcp_fwmark_accept=1", "net.ipv4.fwmark_reflect=1")
	for _, line := range marks(append(slices.Clone(others), mobile)...) {
		ns.Run(t, "iptables-legacy", append([]string{"-w"}, strings.Fields(line)...)...)
	}
	return lte
}
