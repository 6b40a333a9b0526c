package standing

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/provenance"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// usual are congestion controls to try where the kernel's list of them is kept from us.
var usual = []string{"bbr", "bic", "cubic", "dctcp", "htcp", "hybla", "reno", "vegas", "westwood"}

// Offered are the congestion controls that a program without root may choose here.
func Offered() []string {
	text, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control") // Android keeps it from apps
	all := slices.Concat(strings.Fields(string(text)), usual)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return choose(name) != nil })
}

// choose chooses a congestion control for a socket of its own, as iperf3 does for those that
// have connected. It returns why such a socket would not run it as one does that began with it.
func choose(name string) (err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	first, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	first = strings.TrimRight(first, "\x00")
	switch {
	case err != nil || first == name:
		return err
	case name == "dctcp": // dctcp_init
		return fmt.Errorf("connections begin with %s here, without the ECN that %s takes: set "+
			"net.ipv4.tcp_congestion_control to it by hand", first, name)
	case strings.HasPrefix(first, "bbr"): // bbr_init: sk_pacing_status
		return fmt.Errorf("connections begin with %s here, and keep its pacing when a program without root chooses "+
			"%s: set net.ipv4.tcp_congestion_control to %[2]s by hand", first, name)
	}
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name); err != nil {
		return fmt.Errorf("a program without root cannot choose it here: %w", err)
	}
	return nil
}

// Machine is what a transport profile's making depends on (tcp.Here).
func Machine() (m tcp.Machine, err error) {
	m.Native = Offered()
	m.Kernel, err = tcp.ParseVersion(provenance.Kernel())
	return m, err
}

// Abilities are each variant and knob, and whether a trial can have it.
func Abilities() []wire.Ability {
	var out []wire.Ability
	offered := Offered()
	for _, name := range offered {
		out = append(out, wire.Ability{Feature: "variant " + name, How: "native"})
	}
	none := func(feature string) {
		a := wire.Ability{Feature: feature, How: "none", Reason: "this agent runs without root",
			Needs: "an agent with root (privileges: root)"}
		if name, is := strings.CutPrefix(feature, "variant "); is && slices.Contains(usual, name) {
			a.Reason = fmt.Sprint(choose(name))
		}
		out = append(out, a)
	}
	for _, name := range usual {
		if !slices.Contains(offered, name) && !slices.Contains(tcpcc.Programs(), name) {
			none("variant " + name)
		}
	}
	sack := Stands(change.Sysctl{Key: "net.ipv4.tcp_sack", Value: "1"})
	if sack == nil && slices.Contains(offered, tcpcc.Reno) {
		out = append(out, wire.Ability{Feature: "variant sack", How: "native"})
	} else {
		none("variant sack")
	}
	for _, program := range tcpcc.Programs() {
		if !slices.Contains(offered, program) {
			none("variant " + program)
		}
	}
	for _, feature := range []string{"variant reno, classic", "fixed_rto", "rto_min_ms", "rto_max_ms",
		"window_packets", "classic", "sack", "delayed_ack"} {
		none(feature)
	}
	slices.SortFunc(out, func(a, b wire.Ability) int { return cmp.Compare(a.Feature, b.Feature) })
	return out
}
