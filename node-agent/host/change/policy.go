package change

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

var interfacePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`) // IFNAMSIZ leaves 15 characters

// Policy is what may be asked for.
type Policy struct {
	Interfaces []string
	Prefixes   []netip.Prefix
	Binaries   map[string]string
	Feedback   string // the radio-feedback socket; empty: none
	Beside     string // the machine's own interface, beside which one may be made; empty: none
	// ControlPort is the agent's own TCP port, which its controller calls; 0: not known.
	ControlPort int
}

// CheckInterfaceName refuses names that mean something else in a path.
func CheckInterfaceName(name string) error {
	if !interfacePattern.MatchString(name) || slices.Contains([]string{".", "..", "all", "default"}, name) {
		return fmt.Errorf("%q is not the name of an interface", name)
	}
	return nil
}

// Check says why a change is not allowed, nil when it is.
func (p Policy) Check(c Change) *Refused {
	if _, _, err := kindOf(c); err != nil {
		return &Refused{Change: "a change", Reason: err.Error()}
	}
	if reason, cure := c.check(p); reason != "" {
		return &Refused{Change: c.String(), Reason: reason, Cure: cure}
	}
	return nil
}

// CheckInterface says why an interface may not be changed; no reason: it may.
func (p Policy) CheckInterface(name string) (reason, cure string) {
	if slices.Contains(p.Interfaces, name) {
		return "", ""
	}
	return fmt.Sprintf("interface %q is not among those that may be changed (%s)", name,
			strings.Join(p.Interfaces, ", ")),
		"name it as interface in agent.yaml, and start the agent again"
}

func (p Policy) checkWithin(what string, prefix netip.Prefix) (reason, cure string) {
	if !prefix.IsValid() {
		return what + " is missing or not valid", ""
	}
	for _, allowed := range p.Prefixes {
		if allowed.Contains(prefix.Addr()) && prefix.Bits() >= allowed.Bits() {
			return "", ""
		}
	}
	return fmt.Sprintf("%s %s is outside the allowed prefixes %v", what, prefix, p.Prefixes),
		"add its prefix to allow.prefixes in agent.yaml and start the agent again, or plan with addresses inside"
}

func (p Policy) checkPeers(network netip.Prefix) (reason, cure string) {
	if !network.Addr().Is4() {
		return "the peers are not an IPv4 network", ""
	}
	return p.checkWithin("prefix of peers", network)
}
