//go:build e2e

package host

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/routing"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// olsrd marks its routes with protocolOlsrd.
const (
	olsrd         = "olsrd"
	protocolOlsrd = 110
)

// watched is a routing daemon as the unprivileged half sees it.
type watched struct {
	*routing.Watch
	gone chan error
}

func (f field) watch(t *testing.T, protocol string) watched {
	t.Helper()
	w := watched{gone: make(chan error, 1)}
	began := time.Now()
	f.ns.Do(t, func() (err error) {
		w.Watch, err = routing.Begin(t.Context(), routing.Target{Protocol: protocol,
			Socket: change.DaemonSocket(f.cfg.StateDir, protocol), Interface: device,
			BootNs: func() int64 { return time.Since(began).Nanoseconds() + 1 }}, func(err error) { w.gone <- err })
		return err
	})
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// heard waits until the daemon reports a neighbour that hears it.
func (w watched) heard(t *testing.T, f field, addr string) {
	t.Helper()
	var last *wire.RoutingCount
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		var bodies []wire.Body
		f.ns.Do(t, func() (err error) {
			bodies, err = w.Sample(time.Now().UnixNano())
			return err
		})
		for _, b := range bodies {
			if c, ok := b.(*wire.RoutingCount); ok {
				last = c
			}
		}
		if last != nil && slices.ContainsFunc(last.Neighbors, func(n wire.RoutingNeighbor) bool {
			return n.Addr == addr && n.Symmetric && n.Cost != nil && *n.Cost >= 1
		}) {
			return
		}
	}
	t.Fatalf("no neighbour %s within a minute; the daemon last told %+v", addr, last)
}

// A real olsrd by the host process: it runs with a configuration and a lock
// file of its own, tells its neighbours, and leaves nothing; when it is killed
// that is told, and its routes go with the restore.
func TestE2EOlsrdFindsItsNeighbour(t *testing.T) {
	testnet.Need(t, olsrd)
	binary, err := exec.LookPath(olsrd)
	if err != nil {
		t.Fatal(err)
	}
	a, b := newField(t)
	var befores []string
	var clients []*Client
	var hosts []*exec.Cmd
	hello := 0.5
	for i, f := range []*field{&a, &b} {
		f.ns.Run(t, "ip", "-4", "addr", "flush", "dev", device) // olsrd takes the first address
		befores = append(befores, f.snapshot(t))
		f.cfg.Binaries = map[string]string{olsrd: binary}
		c, cmd := f.start(t, true)
		apply(t, c, ScopeRun, []change.Change{address(fmt.Sprintf("10.77.0.%d/24", i+1))})
		apply(t, c, ScopeTrial, []change.Change{change.Daemon{Name: olsrd, Interface: device,
			Announce: netip.MustParsePrefix("10.77.0.0/24"), HelloS: &hello}})
		clients, hosts = append(clients, c), append(hosts, cmd)
	}
	judgeFiles(t, a)
	awaitOutput(t, a, "10.77.0.2", "-4", "route", "show", "proto", fmt.Sprint(protocolOlsrd))
	w := a.watch(t, olsrd)
	w.heard(t, a, "10.77.0.2")
	if pid := a.running(t, binary); pid == 0 || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Fatalf("no olsrd to kill (pid %d)", pid)
	}
	w.hearsOfTheEnd(t)
	if routes := a.ns.Run(t, "ip", "-4", "route", "show", "proto", fmt.Sprint(protocolOlsrd)); routes == "" {
		t.Error("a killed olsrd left no route: this test shows nothing")
	}
	for i, f := range []field{a, b} {
		restoreAll(t, clients[i])
		if pid := f.running(t, binary); pid != 0 {
			t.Errorf("olsrd still runs, as process %d", pid)
		}
		mustEqual(t, f.ns.Name, befores[i], f.snapshot(t))
		terminate(t, hosts[i])
	}
}

// olsrd would be known by an interface's first address, at which nobody in the mesh looks for it.
func TestE2EOlsrdIsRefusedBehindAnotherAddress(t *testing.T) {
	f, _ := newField(t)
	binary, err := exec.LookPath("true") // it does not come to be started
	if err != nil {
		t.Fatal(err)
	}
	f.cfg.Binaries = map[string]string{olsrd: binary}
	c, host := f.start(t, true)
	apply(t, c, ScopeRun, []change.Change{address("10.77.0.1/24")})
	_, err = c.Apply(t.Context(), ScopeTrial, []change.Change{change.Daemon{Name: olsrd, Interface: device,
		Announce: netip.MustParsePrefix("10.77.0.0/24")}})
	var refused *change.Refused
	if !errors.As(err, &refused) ||
		!strings.Contains(refused.Reason, "and that is 192.168.7.1, not one in 10.77.0.0/24") ||
		!strings.Contains(refused.Cure, "ip address del 192.168.7.1/24 dev "+device) {
		t.Errorf("olsrd behind another address: %v", err)
	}
	restoreAll(t, c)
	terminate(t, host)
}

// hearsOfTheEnd waits until the end of what was killed is told.
func (w watched) hearsOfTheEnd(t *testing.T) {
	t.Helper()
	select {
	case err := <-w.gone:
		t.Logf("told: %v", err)
	case <-time.After(time.Minute):
		t.Error("the end of what was killed is not told")
	}
}

// judgeFiles looks at olsrd's configuration, whose lock file is its own (olsrd
// 0.9.9 makes it in host emulation only, but removes it at every end), and at
// what the journal has of it.
func judgeFiles(t *testing.T, f field) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(f.cfg.StateDir, "daemons", "*-olsrd", "olsrd.conf"))
	if err != nil || len(files) != 1 {
		t.Fatalf("configurations %q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if want := fmt.Sprintf("LockFile %q", filepath.Join(filepath.Dir(files[0]), "lock")); err != nil ||
		!strings.Contains(string(text), want) {
		t.Errorf("olsrd's configuration lacks %s: %v\n%s", want, err, text)
	}
	journal, err := os.ReadFile(filepath.Join(f.cfg.StateDir, "journal"))
	if err != nil || !strings.Contains(string(journal), `"name":"olsrd"`) {
		t.Errorf("the journal does not tell how to stop olsrd: %v\n%s", err, journal)
	}
}

// running is a process of a program in the field's namespace, 0 for none.
func (f field) running(t *testing.T, binary string) int {
	t.Helper()
	for _, pid := range testnet.Pids(f.ns.Name) {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe == binary {
			return pid
		}
	}
	return 0
}
