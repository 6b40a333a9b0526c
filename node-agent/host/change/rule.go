package change

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/netstack"
)

// RulePriority is that of a Rule: before those of Android's netd, which begin at
// 10000 (RULE_PRIORITY_VPN_OVERRIDE_SYSTEM, server/RouteController.h of system/netd).
const RulePriority = 9999

// Rule has packets for a network looked up in the table main, where the
// addresses' and the changes' routes are, before the machine's own rules are
// asked: Android's lead to tables of its own only, and those of a VPN may lead
// into it. Where the rules lead to main at once, nothing is changed: with any
// rule of somebody's own the kernel looks its routes up in a longer way from then
// on (fib_has_custom_rules in net/ipv4/fib_rules.c), which no undo takes back.
type Rule struct {
	Network netip.Prefix `json:"network"`
}

func (r Rule) Target() string { return r.String() }
func (r Rule) String() string { return fmt.Sprintf("look-up of %s in main first", r.Network) }

func (r Rule) check(p Policy) (reason, cure string) {
	if reason, cure = p.checkWithin("network", r.Network); reason != "" {
		return reason, cure
	}
	if r.Network != r.Network.Masked() || r.Network.Addr().Is4In6() {
		return "network has bits set beyond its length", "write " + r.Network.Masked().String()
	}
	return "", ""
}

func (r Rule) prepare(*Kernel, uint64) (*ruleUndo, error) {
	unneeded, err := r.unneeded()
	if err != nil {
		return nil, err
	}
	if unneeded {
		return &ruleUndo{Unneeded: &r}, nil
	}
	return &ruleUndo{Rule: &r}, nil
}

// unneeded reports whether the machine's own rules do already what the rule is for.
func (r Rule) unneeded() (bool, error) {
	family := netlink.FAMILY_V4
	if r.Network.Addr().Is6() {
		family = netlink.FAMILY_V6
	}
	rules, err := netstack.Rules(family)
	own := r.message()
	return netstack.LeadToMain(rules) || slices.ContainsFunc(rules, func(is netlink.Rule) bool {
		return is.Priority == own.Priority && is.Table == own.Table && is.Dst != nil && is.Dst.String() ==
			own.Dst.String()
	}), err
}

// message is the rule as the netlink library takes it.
func (r Rule) message() *netlink.Rule {
	out := netlink.NewRule()
	out.Priority, out.Dst, out.Table = RulePriority, netstack.IPNet(r.Network), unix.RT_TABLE_MAIN
	return out
}

func (r Rule) apply(_ *Kernel, u *ruleUndo) error {
	if u.Rule == nil {
		return nil
	}
	if err := netlink.RuleAdd(r.message()); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add rule %d to %s lookup main: %w", RulePriority, r.Network, err)
	}
	return nil
}

// ruleUndo deletes a rule that was not there before.
type ruleUndo struct {
	placed
	Rule     *Rule `json:"rule,omitempty"`     // absent: none was added
	Unneeded *Rule `json:"unneeded,omitempty"` // then: which
}

// void reports whether a rule that was not needed is needed now: somebody has made
// rules of his own since, as a VPN does.
func (u *ruleUndo) void(*Kernel) bool {
	if u.Unneeded == nil {
		return false
	}
	unneeded, err := u.Unneeded.unneeded()
	return err == nil && !unneeded
}

func (u *ruleUndo) revert(*Kernel) (string, error) {
	if u.Rule == nil {
		return "", nil
	}
	if err := netlink.RuleDel(u.Rule.message()); err != nil && !errors.Is(err, unix.ENOENT) {
		return "", fmt.Errorf("delete rule %d to %s lookup main: %w", RulePriority, u.Rule.Network, err)
	}
	return "", nil
}
