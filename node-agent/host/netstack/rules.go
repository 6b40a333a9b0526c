package netstack

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Rules lists the rules of a family in the order in which the kernel asks them;
// none where it has no such rules.
func Rules(family int) ([]netlink.Rule, error) {
	rules, err := Redump(func() ([]netlink.Rule, error) { return netlink.RuleList(family) })
	if errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list routing rules: %w", err)
	}
	// A kernel without the family lists the rules of others.
	rules = slices.DeleteFunc(rules, func(r netlink.Rule) bool { return r.Family != family })
	slices.SortStableFunc(rules, func(a, b netlink.Rule) int { return a.Priority - b.Priority })
	return rules, nil
}

// LeadToMain reports whether every packet that is not for the machine itself is
// looked up in the table main before any other.
func LeadToMain(rules []netlink.Rule) bool {
	for _, r := range rules {
		if !ofAll(r) || r.Table != unix.RT_TABLE_LOCAL {
			return ofAll(r) && r.Table == unix.RT_TABLE_MAIN
		}
	}
	return len(rules) == 0 // a kernel without rules has but one table
}

// ofAll reports whether a rule has all packets looked up in its table, and takes
// whatever is found.
func ofAll(r netlink.Rule) bool {
	plain := netlink.NewRule()
	plain.Priority, plain.Table, plain.Family, plain.Protocol = r.Priority, r.Table, r.Family, r.Protocol
	return reflect.DeepEqual(r, *plain)
}
