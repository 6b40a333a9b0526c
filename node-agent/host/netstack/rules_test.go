package netstack

import (
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// rule is one as the kernel lists it.
func rule(priority, table int, set func(*netlink.Rule)) netlink.Rule {
	r := netlink.NewRule()
	r.Priority, r.Table, r.Family, r.Protocol = priority, table, unix.AF_INET, unix.RTPROT_KERNEL
	if set != nil {
		set(r)
	}
	return *r
}

func TestWhichRulesLeadToMain(t *testing.T) {
	local, main := rule(0, unix.RT_TABLE_LOCAL, nil), rule(32766, unix.RT_TABLE_MAIN, nil)
	for name, c := range map[string]struct {
		rules []netlink.Rule
		want  bool
	}{
		"the kernel's own": {[]netlink.Rule{local, main, rule(32767, unix.RT_TABLE_DEFAULT, nil)}, true},
		"a kernel without": {nil, true},
		"netd's": {[]netlink.Rule{local, rule(31000, 1003, func(r *netlink.Rule) { r.Mask = new(uint32(0xffff)) }),
			rule(32000, 0, nil)}, false},
		"a VPN's before": {[]netlink.Rule{local, rule(5270, 52, nil), main}, false},
		"wg-quick's": {[]netlink.Rule{local, rule(32764, unix.RT_TABLE_MAIN, func(r *netlink.Rule) {
			r.SuppressPrefixlen = 0
		}), rule(32765, 51820, func(r *netlink.Rule) { r.Invert, r.Mark = true, 51820 }), main}, false},
		"main for one user": {[]netlink.Rule{local, rule(23000, unix.RT_TABLE_MAIN, func(r *netlink.Rule) {
			r.UIDRange = netlink.NewRuleUIDRange(0, 0)
		})}, false},
		"main for one network": {[]netlink.Rule{local, rule(100, unix.RT_TABLE_MAIN, func(r *netlink.Rule) {
			r.Dst = IPNet(netip.MustParsePrefix("10.0.0.0/8"))
		}), main}, false},
		"nothing but local": {[]netlink.Rule{local}, false},
	} {
		if got := LeadToMain(c.rules); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
