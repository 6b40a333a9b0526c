//go:build e2e && guest

package host

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/process"
	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

func batmanDaemon() change.Change {
	hello := 0.5
	return change.Daemon{Name: batman.Protocol, Interface: device, Announce: netip.MustParsePrefix("10.77.0.0/24"),
		HelloS: &hello}
}

// A chain of three radios, of which the ends do not hear each other: the
// module of Debian's kernel makes one network of it, through which TCP gets;
// neighbours and ways are told; and all is as it was afterwards.
func TestGuestBatmanCarriesAChain(t *testing.T) {
	hwsim.NeedGuest(t)
	radios := hwsim.Load(t, 3)
	var nodes []radioField
	var clients []*Client
	var befores []string
	for i, mask := range []uint{1, 3, 2} {
		radios[i].Hear(t, mask)
		f := newRadioField(t, radios[i], fmt.Sprintf("n%d", i))
		c, _ := f.start(t, true)
		apply(t, c, ScopeRun, []change.Change{
			sysctl("net.ipv6.conf.wlan0.disable_ipv6", "1"), adhoc(), address(fmt.Sprintf("10.77.0.%d/24", i+1)),
		})
		nodes, clients, befores = append(nodes, f), append(clients, c), append(befores, f.snapshot(t))
	}
	own := netip.MustParseAddr("10.77.0.1")
	apply(t, clients[0], ScopeTrial,
		[]change.Change{change.Route{Interface: device, Destination: netip.MustParsePrefix("10.77.0.0/24"),
			Source: &own, QuickAck: true}})
	for _, c := range clients {
		apply(t, c, ScopeTrial, []change.Change{batmanDaemon()})
		apply(t, c, ScopeTrial, []change.Change{batmanDaemon()}) // again: nothing more
	}
	judgeMesh(t, nodes[0])
	w := nodes[0].watch(t, batman.Protocol)
	for _, to := range []string{"10.77.0.2", "10.77.0.3"} { // whose addresses are known from then on
		nodes[0].comesTo(t, to)
	}
	w.goes(t, nodes[0], "10.77.0.3/32", "10.77.0.2")
	w.heard(t, nodes[0].field, "10.77.0.2")
	nodes[0].carries(t, nodes[2], "10.77.0.3")
	pid := nodes[0].reads(t)
	if pid == 0 || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Fatalf("no process reads the mesh (pid %d)", pid)
	}
	w.hearsOfTheEnd(t)
	for i, c := range clients {
		if report, err := c.Restore(t.Context(), ScopeTrial); err != nil || len(report.Failed) > 0 {
			t.Fatalf("restored %+v, %v", report, err)
		}
		nodes[i].becomes(t, "after the trial", befores[i])
	}
}

// comesTo waits until another node answers: as long as the mesh knows no way,
// the kernel gives up after some seconds.
func (f radioField) comesTo(t *testing.T, to string) {
	t.Helper()
	var err error
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		f.ns.Do(t, func() error {
			var conn net.Conn
			if conn, err = net.DialTimeout("tcp", to+":9", 20*time.Second); err == nil {
				return errors.Join(errors.New("somebody listens on port 9"), conn.Close())
			}
			return nil
		})
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
	}
	t.Fatalf("%s does not answer within two minutes: %v", to, err)
}

// reads is the process that reads the mesh, told by its configuration's place.
func (f radioField) reads(t *testing.T) int {
	t.Helper()
	for _, pid := range process.All() {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), filepath.Join(f.cfg.StateDir, "daemons")) {
			return pid
		}
	}
	return 0
}

// judgeMesh looks at the device: the address is there, with the route that
// acknowledges at once, and no frame need go in two.
func judgeMesh(t *testing.T, f radioField) {
	t.Helper()
	f.ns.Do(t, func() error {
		mesh, err := netlink.LinkByName(batman.Device)
		if err != nil {
			return err
		}
		below, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		if below.Attrs().MasterIndex != mesh.Attrs().Index || mesh.Attrs().MTU != below.Attrs().MTU-batman.HeaderBytes {
			return fmt.Errorf("the mesh is %+v over %+v", mesh.Attrs(), below.Attrs())
		}
		return nil
	})
	if got := f.ns.Run(t, "ip", "-4", "addr", "show", "dev", batman.Device); !strings.Contains(got, "10.77.0.1/24") {
		t.Errorf("the mesh's address is elsewhere:\n%s", got)
	}
	if got := f.ns.Run(t, "ip", "route", "show", "10.77.0.0/24"); !strings.Contains(got, "dev bat0") ||
		!strings.Contains(got, "quickack 1") || strings.Contains(got, "dev wlan0") {
		t.Errorf("the route of the trial is not over the mesh:\n%s", got)
	}
}

// goes waits until the way to a destination is told.
func (w watched) goes(t *testing.T, f radioField, destination, via string) {
	t.Helper()
	var all []wire.Body
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		f.ns.Do(t, func() error {
			bodies, err := w.Sample(time.Now().UnixNano())
			all = append(all, bodies...)
			return err
		})
		if slices.ContainsFunc(all, func(b wire.Body) bool {
			r, ok := b.(*wire.RouteChange)
			return ok && r.Action == "set" && r.Destination == destination && slices.Equal(r.NextHops, []string{via}) &&
				*r.Metric >= 1
		}) {
			return
		}
	}
	for _, b := range all {
		t.Logf("%+v", b)
	}
	t.Fatalf("no way to %s by %s within two minutes", destination, via)
}

// carries sends TCP through.
func (f radioField) carries(t *testing.T, to radioField, addr string) {
	t.Helper()
	server := to.ns.Command(t.Context(), "iperf3", "-s", "-1", "-B", addr)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(server.Process.Kill(), server.Wait()) }() // it has ended, or the test has failed
	var out string
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(time.Second) {
		text, err := f.ns.Command(t.Context(), "iperf3", "-c", addr, "-t", "2", "-b", "500k", "--connect-timeout",
			"10000").CombinedOutput()
		if out = string(text); err == nil {
			for line := range strings.Lines(out) {
				if strings.Contains(line, "receiver") {
					t.Logf("two hops: %s", strings.TrimSpace(line))
				}
			}
			return
		}
	}
	t.Fatalf("no TCP gets through within two minutes:\n%s", out)
}

// Without the module nothing is changed, and what is missing is said.
func TestGuestBatmanIsRefused(t *testing.T) {
	hwsim.NeedGuest(t)
	radios := hwsim.Load(t, 1)
	f := newRadioField(t, radios[0], "alone")
	c, _ := f.start(t, true)
	f.ns.Run(t, "ip", "link", "add", batman.Device, "type", "dummy")
	before := f.snapshot(t)
	_, err := c.Apply(t.Context(), ScopeTrial, []change.Change{batmanDaemon()})
	var refused *change.Refused
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "interface bat0 already") {
		t.Errorf("beside another bat0: %v", err)
	}
	f.becomes(t, "after a refusal", before)
}
