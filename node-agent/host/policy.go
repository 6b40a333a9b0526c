package host

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

var (
	interfacePattern  = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`) // IFNAMSIZ leaves 15 characters
	congestionPattern = regexp.MustCompile(`^[a-z0-9_]{1,15}$`)      // TCP_CA_NAME_MAX leaves 15
	valuePattern      = regexp.MustCompile(`^[A-Za-z0-9_-]+( [A-Za-z0-9_-]+){0,15}$`)
)

// IPv6 needs an MTU of 1280 (RFC 8200, section 5): below it the kernel takes
// every IPv6 setting off the interface, which no undo brings back. 9216 is the
// largest frame that common hardware takes.
const (
	mtuMinBytes = 1280
	mtuMaxBytes = 9216
)

// policy is what may be asked for.
type policy struct {
	interfaces []string
	prefixes   []netip.Prefix
	binaries   map[string]string
	feedback   string // the radio-feedback socket; empty: none
	beside     string // the machine's own interface, beside which one may be made; empty: none
}

// checkInterfaceName refuses names that mean something else in a path.
func checkInterfaceName(name string) error {
	if !interfacePattern.MatchString(name) || slices.Contains([]string{".", "..", "all", "default"}, name) {
		return fmt.Errorf("%q is not the name of an interface", name)
	}
	return nil
}

// check says why a change is not allowed, nil when it is.
func (p policy) check(c Change) *Refused {
	if c.members() != 1 {
		return &Refused{Change: c.target(), Reason: fmt.Sprintf("%d kinds of change in one, there must be exactly 1", c.members())}
	}
	var reason, cure string
	switch {
	case c.Link != nil:
		reason, cure = p.checkLink(*c.Link)
	case c.Address != nil:
		reason, cure = p.checkAddress(*c.Address)
	case c.Route != nil:
		reason, cure = p.checkRoute(*c.Route)
	case c.Sysctl != nil:
		reason, cure = p.checkSysctl(*c.Sysctl)
	case c.Daemon != nil:
		reason, cure = p.checkDaemon(*c.Daemon)
	case c.BPFCongestion != nil:
		reason, cure = p.checkBPFCongestion(*c.BPFCongestion)
	case c.HeldRTO != nil:
		reason, cure = p.checkHeldRTO(*c.HeldRTO)
	case c.WindowClamp != nil:
		reason, cure = p.checkWindowClamp(*c.WindowClamp)
	case c.TCPEvents != nil:
		reason, cure = p.checkTCPEvents(*c.TCPEvents)
	case c.Offloads != nil:
		reason, cure = p.checkInterface(c.Offloads.Interface)
	case c.Radio != nil:
		reason, cure = p.checkRadio(*c.Radio)
	case c.Aside != nil:
		reason, cure = p.checkInterface(c.Aside.Interface)
	case c.Virtual != nil:
		reason, cure = p.checkVirtual(*c.Virtual)
	}
	if reason == "" {
		return nil
	}
	return &Refused{Change: c.String(), Reason: reason, Cure: cure}
}

func (p policy) checkInterface(name string) (reason, cure string) {
	if slices.Contains(p.interfaces, name) {
		return "", ""
	}
	return fmt.Sprintf("interface %q is not among those that may be changed (%s)", name, strings.Join(p.interfaces, ", ")),
		"name it as interface in agent.yaml"
}

func (p policy) checkWithin(what string, prefix netip.Prefix) (reason, cure string) {
	if !prefix.IsValid() {
		return what + " is missing or not valid", ""
	}
	for _, allowed := range p.prefixes {
		if allowed.Contains(prefix.Addr()) && prefix.Bits() >= allowed.Bits() {
			return "", ""
		}
	}
	return fmt.Sprintf("%s %s is outside the allowed prefixes %v", what, prefix, p.prefixes),
		"add its prefix to allow.prefixes in agent.yaml, or plan with addresses inside"
}

func (p policy) checkLink(l Link) (reason, cure string) {
	if reason, cure = p.checkInterface(l.Interface); reason != "" {
		return reason, cure
	}
	if l.Up == nil && l.MTUBytes == nil {
		return "neither up nor mtu_bytes is given", ""
	}
	if l.MTUBytes != nil && (*l.MTUBytes < mtuMinBytes || *l.MTUBytes > mtuMaxBytes) {
		return fmt.Sprintf("mtu %d is outside %d to %d bytes", *l.MTUBytes, mtuMinBytes, mtuMaxBytes), ""
	}
	return "", ""
}

func (p policy) checkAddress(a Address) (reason, cure string) {
	if reason, cure = p.checkInterface(a.Interface); reason != "" {
		return reason, cure
	}
	if addr := a.Prefix.Addr(); addr.Is4In6() || addr.Zone() != "" || addr.IsMulticast() {
		return "not a plain unicast address", ""
	}
	return p.checkWithin("address", a.Prefix)
}

func (p policy) checkRoute(r Route) (reason, cure string) {
	if reason, cure = p.checkInterface(r.Interface); reason != "" {
		return reason, cure
	}
	if reason, cure = p.checkWithin("destination", r.Destination); reason != "" {
		return reason, cure
	}
	if r.Destination != r.Destination.Masked() || r.Destination.Addr().Is4In6() {
		return "destination has bits set beyond its length", "write " + r.Destination.Masked().String()
	}
	for what, addr := range map[string]*netip.Addr{"gateway": r.Via, "source": r.Source} {
		if addr == nil {
			continue
		}
		if addr.Is4() != r.Destination.Addr().Is4() || addr.Zone() != "" {
			return fmt.Sprintf("%s %s and destination are not of one family", what, addr), ""
		}
		if what == "gateway" && addr.IsLinkLocalUnicast() {
			continue
		}
		if reason, cure = p.checkWithin(what, netip.PrefixFrom(*addr, addr.BitLen())); reason != "" {
			return reason, cure
		}
	}
	if r.Metric < 0 || int64(r.Metric) > 1<<31-1 {
		return fmt.Sprintf("metric %d is outside 0 to 2147483647", r.Metric), ""
	}
	if r.Congestion != "" && !congestionPattern.MatchString(r.Congestion) {
		return fmt.Sprintf("%q is not the name of a congestion control", r.Congestion), ""
	}
	return "", ""
}

func (p policy) checkSysctl(s Sysctl) (reason, cure string) {
	key, err := parseKey(s.Key)
	if err != nil {
		return err.Error(), ""
	}
	if key.device != "" && key.device != "all" {
		if reason, cure = p.checkInterface(key.device); reason != "" {
			return reason, cure
		}
	}
	if len(s.Value) > 128 || !valuePattern.MatchString(s.Value) {
		return fmt.Sprintf("%.40q is not a value: words of letters, digits, _ and -, one space between", s.Value), ""
	}
	return "", ""
}

func (p policy) checkDaemon(d Daemon) (reason, cure string) {
	kind, known := daemonKinds()[d.Name]
	if !known {
		return fmt.Sprintf("%q is not a daemon that the host process knows (%s)", d.Name, strings.Join(slices.Sorted(maps.Keys(daemonKinds())), ", ")), ""
	}
	if reason, cure = p.checkInterface(d.Interface); reason != "" {
		return reason, cure
	}
	if reason, cure = p.checkWithin("announced prefix", d.Announce); reason != "" {
		return reason, cure
	}
	if p.binaries[kind.binary] == "" {
		return "no installed binary is configured for " + d.Name, "install it, or set binaries." + d.Name + " in agent.yaml; then start the agent again"
	}
	if d.HelloS != nil && !(*d.HelloS >= 0.1 && *d.HelloS <= 60) {
		return fmt.Sprintf("hello interval %g s is outside 0.1 to 60 s", *d.HelloS), ""
	}
	return "", ""
}

// The strongest transmitter that 802.11 knows of in these bands is 1 W; more
// than that is a mistake in a plan.
const (
	txPowerMaxDbm  = 30
	rtsMaxBytes    = 2347 // dot11RTSThreshold (IEEE 802.11-2020, annex C)
	retryLimitsMax = 255
)

// radioModes are those that an interface may be set to.
func radioModes() []string { return []string{"adhoc", "mesh", modeAP, modeStation} }

func (p policy) checkRadio(r Radio) (reason, cure string) {
	if reason, cure = p.checkInterface(r.Interface); reason != "" {
		return reason, cure
	}
	standard, known := rates[r.Standard]
	switch {
	case !slices.Contains(radioModes(), r.Mode):
		return fmt.Sprintf("mode %q is none of %s", r.Mode, strings.Join(radioModes(), ", ")), ""
	case !known:
		return fmt.Sprintf("standard %q is none of 802.11a, 802.11b and 802.11g", r.Standard), ""
	case len(r.SSID) < 1 || len(r.SSID) > 32:
		return fmt.Sprintf("an SSID of %d bytes; 1 to 32 are allowed", len(r.SSID)), ""
	case nl80211.Frequency(r.Channel) == 0 || (r.Channel > 14) != (r.Standard == "802.11a"):
		return fmt.Sprintf("channel %d is none of %s", r.Channel, r.Standard), ""
	case r.RateMbps != nil && !slices.Contains(standard.all, *r.RateMbps):
		return fmt.Sprintf("%g Mbit/s is no rate of %s", *r.RateMbps, r.Standard), ""
	case r.TxPowerDbm != nil && !(*r.TxPowerDbm >= 0 && *r.TxPowerDbm <= txPowerMaxDbm):
		return fmt.Sprintf("transmit power %g dBm is outside 0 to %d dBm", *r.TxPowerDbm, txPowerMaxDbm), ""
	case r.RTSThresholdBytes != nil && (*r.RTSThresholdBytes < 0 || *r.RTSThresholdBytes > rtsMaxBytes):
		return fmt.Sprintf("RTS threshold %d is outside 0 to %d bytes", *r.RTSThresholdBytes, rtsMaxBytes), ""
	case r.RetryLimit != nil && (*r.RetryLimit < 1 || *r.RetryLimit > retryLimitsMax):
		return fmt.Sprintf("retry limit %d is outside 1 to %d", *r.RetryLimit, retryLimitsMax), ""
	}
	return checkBSSID(r)
}

// checkBSSID takes an individual address (IEEE 802.11-2020, 9.2.4.3.4).
func checkBSSID(r Radio) (reason, cure string) {
	if r.BSSID == "" {
		return "", ""
	}
	mac, err := net.ParseMAC(r.BSSID)
	switch {
	case r.Mode == "mesh":
		return "a mesh has no BSSID", "leave it out"
	case r.Mode == modeAP:
		return "an access point's BSSID is its own address", "leave it out"
	case err != nil || len(mac) != 6:
		return fmt.Sprintf("%q is no BSSID", r.BSSID), "write it as 02:11:22:33:44:55"
	case mac[0]&1 != 0:
		return fmt.Sprintf("BSSID %s is the address of a group", r.BSSID), "begin it with 02"
	}
	return "", ""
}
