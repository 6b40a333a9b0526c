package tcpcc

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Setting is a sysctl and its value.
type Setting struct{ Key, Value string }

// The least RTOs in ms from which a timer that is held is constant: the bound
// by which the kernel holds it cannot be below a second (bpf/rto.bpf.c), and is
// twice the first RTO for the fixed RTO, and that RTO for the reference TCP.
const (
	fixedRTOMinMs     = 500
	referenceRTOMinMs = 1000
)

// RTOMaxKey is the sysctl of the largest RTO, in ms, from Linux 6.15 on.
const RTOMaxKey = "net.ipv4.tcp_rto_max_ms"

// RTOMinKey is the sysctl of the least RTO, in µs, from Linux 6.11 on.
const RTOMinKey = "net.ipv4.tcp_rto_min_us"

// SYNLinearKey is the sysctl of how many SYNs are sent again at intervals of the first RTO before
// it doubles, from Linux 6.5 on. RFC 6298 doubles it from the first.
const SYNLinearKey = "net.ipv4.tcp_syn_linear_timeouts"

// RouteRTOMin stands in a route's text in the provenance before the route's own
// least RTO in ms, which goes before the namespace's; RouteRTOMinNote is what
// TCP in force says of one.
const (
	RouteRTOMin     = " rto_min_ms "
	RouteRTOMinNote = "a route has a least RTO of its own"
)

// RTOMinFloorMs is the lowest least RTO with which a profile's timer does what
// the profile says; 0 where any will do.
func RTOMinFloorMs(t wire.TCP) int {
	switch {
	case t.Variant == Reference:
		return referenceRTOMinMs
	case t.FixedRTO:
		return fixedRTOMinMs
	}
	return 0
}

// RTOMinMs is the least RTO that a profile sets: the plan's, or else the lowest
// that its timer allows. Nil leaves the kernel's own, 200 ms as Linux comes.
func RTOMinMs(t wire.TCP) *int {
	if t.RTOMinMs != nil {
		return t.RTOMinMs
	}
	if floor := RTOMinFloorMs(t); floor > 0 {
		return &floor
	}
	return nil
}

// CheckRTOMin says why a profile cannot have the least RTO that it asks for.
func CheckRTOMin(t wire.TCP) error {
	floor := RTOMinFloorMs(t)
	if t.RTOMinMs == nil || *t.RTOMinMs >= floor {
		return nil
	}
	timer := "a fixed RTO"
	if t.Variant == Reference {
		timer = "variant " + Reference
	}
	return fmt.Errorf("a least RTO of %d ms is too low for %s, whose timer the kernel holds constant from %d ms on; "+
		"allowed: from %d ms on", *t.RTOMinMs, timer, floor, floor)
}

// synRetries is how often a client asks again for a connection: the most that
// the kernel takes (MAX_TCP_SYNCNT of net/tcp.h).
const synRetries = 127

// ClientGivesUpS is after how many seconds a client that nobody answers gives up. The first wait is 1 s, and each is
// twice the one before up to the largest RTO (RFC 6298, 2.1 and 5.5). A connection without an ACK of its data lasts
// about twice as long: the kernel reckons with 255 retransmissions.
func ClientGivesUpS(rtoMaxMs int) float64 {
	total, wait := 0, 1000
	for range synRetries + 1 {
		total += min(wait, rtoMaxMs)
		wait = min(2*wait, rtoMaxMs)
	}
	return float64(total) / 1000
}

// fixedSYNMaxMs is the bound by which a fixed RTO holds a client's SYN, twice its first RTO (bpf/rto.bpf.c).
const fixedSYNMaxMs = 2000

// CheckClient says why a client of a trial that finds no way would not ask to the end.
func CheckClient(t wire.Trial) error {
	lastsS := t.WarmupS() + t.DurationS
	switch most := t.TCP.RTOMaxMs; {
	case !slices.ContainsFunc(t.Traffic, func(f wire.Flow) bool { return f.Kind == "iperf3_tcp" }):
	case t.TCP.FixedRTO && ClientGivesUpS(fixedSYNMaxMs) < lastsS:
		return fmt.Errorf("with tcp.fixed_rto a client that finds no way gives up after %g s, and its trial lasts %g s",
			ClientGivesUpS(fixedSYNMaxMs), lastsS)
	case most != nil && ClientGivesUpS(*most) < lastsS:
		enough := *most + sort.Search(wire.RTOMaxMsMost-*most, func(more int) bool {
			return ClientGivesUpS(*most+more) >= lastsS
		})
		return fmt.Errorf("with tcp.rto_max_ms %d a client that finds no way gives up after %g s, and its trial lasts "+
			"%g s; from %d ms on it asks to the end", *most, ClientGivesUpS(*most), lastsS, enough)
	}
	return nil
}

// CheckRTOMax says why a profile cannot have the largest RTO that it asks for.
func CheckRTOMax(t wire.TCP) error {
	least := RTOMinMs(t)
	switch {
	case t.RTOMaxMs == nil:
		return nil
	case RTOMinFloorMs(t) > 0:
		return errors.New("the RTO is fixed, and the kernel holds it by a largest one of each connection's own; " +
			"leave it out")
	case least != nil && *least > *t.RTOMaxMs:
		return fmt.Errorf("a largest RTO of %d ms is below the least, %d ms", *t.RTOMaxMs, *least)
	}
	return nil
}

// NeedsSACK reports whether a variant is defined with SACK on.
func NeedsSACK(variant string) bool { return variant == "sack" || variant == Fack }

// RunsReno reports whether a profile's congestion control is Reno: sack is Reno with SACK on. With classic it is the
// program of that name, and else the kernel's.
func RunsReno(t wire.TCP) bool { return t.Variant == Reno || t.Variant == "sack" }

// SACK is whether a profile has SACK on; nil leaves it to the kernel.
func SACK(t wire.TCP) *bool {
	switch on := NeedsSACK(t.Variant); {
	case on:
		return &on
	case t.SACK != nil || !t.Classic:
		return t.SACK
	}
	return new(false)
}

// Settings are a profile's sysctls, in the order in which they are to be made.
func Settings(t wire.TCP) []Setting {
	var out []Setting
	set := func(keysAndValues ...string) {
		for pair := range slices.Chunk(keysAndValues, 2) {
			out = append(out, Setting{"net.ipv4." + pair[0], pair[1]})
		}
	}
	if t.Classic {
		// In the order of what they are about: loss detection, RTO, header
		// options, and what one connection leaves to the next.
		set("tcp_recovery", "0", "tcp_early_retrans", "0", "tcp_max_reordering", "3", "tcp_frto", "0",
			"tcp_syn_linear_timeouts", "0", "tcp_timestamps", "0", "tcp_dsack", "0", "tcp_ecn", "0")
	}
	if sack := SACK(t); sack != nil {
		set("tcp_sack", map[bool]string{true: "1", false: "0"}[*sack])
	}
	// A later trial must not start from what the kernel learned in an earlier
	// one; what it knows already, each trial has it forget (change.TCPMetrics of
	// node-agent/host). A connection is given up as late as the kernel can: 255 is the most, and
	// at the usual 15 one whose timer does not back off would die within seconds,
	// so that variants would differ in it (bpf/rto.bpf.c has the rest). Nor does a client cease to ask for a
	// connection, as it would after some two minutes at the usual 6: with a
	// fixed RTO synRetries last 255 s.
	set("tcp_no_metrics_save", "1", "tcp_retries2", "255", "tcp_syn_retries", strconv.Itoa(synRetries))
	if least := RTOMinMs(t); least != nil {
		out = append(out, Setting{RTOMinKey, strconv.Itoa(*least * 1000)})
	}
	if t.RTOMaxMs != nil {
		out = append(out, Setting{RTOMaxKey, strconv.Itoa(*t.RTOMaxMs)})
	}
	return out
}

// SettingBounds are the least and the most that Settings sets a sysctl to; it
// reports false for a key that is none of theirs. Who makes the settings as root
// holds whoever asks for them to these.
func SettingBounds(key string) (least, most int, ok bool) {
	switch key {
	case "net.ipv4.tcp_recovery", "net.ipv4.tcp_early_retrans", "net.ipv4.tcp_frto", "net.ipv4.tcp_timestamps",
		"net.ipv4.tcp_dsack", "net.ipv4.tcp_ecn", SYNLinearKey:
		return 0, 0, true
	case "net.ipv4.tcp_max_reordering":
		return 3, 3, true
	case "net.ipv4.tcp_sack":
		return 0, 1, true
	case "net.ipv4.tcp_no_metrics_save":
		return 1, 1, true
	case "net.ipv4.tcp_retries2":
		return 255, 255, true
	case "net.ipv4.tcp_syn_retries":
		return synRetries, synRetries, true
	case RTOMinKey:
		return 1000 * wire.RTOMinMsLeast, 1000 * wire.RTOMinMsMost, true
	case RTOMaxKey:
		return wire.RTOMaxMsLeast, wire.RTOMaxMsMost, true
	}
	return 0, 0, false
}

// Knob is one of a profile's settings by its key in a campaign, as it is in
// force and not only as it was asked for.
type Knob struct{ Key, Name, Value string }

// Knobs are the settings that a profile may have without asking: by its
// variant, its timer or classic.
func Knobs(t wire.TCP) []Knob {
	sack, least := "the kernel's own", "the kernel's own (200 ms as Linux comes)"
	if on := SACK(t); on != nil {
		sack = map[bool]string{true: "on", false: "off"}[*on]
	}
	if ms := RTOMinMs(t); ms != nil {
		least = fmt.Sprintf("%d ms", *ms)
	}
	out := []Knob{{"tcp.rto_min_ms", "least RTO", least}}
	if !NeedsSACK(t.Variant) { // else the variant's name says it
		out = append(out, Knob{"tcp.sack", "SACK", sack})
	}
	return out
}
