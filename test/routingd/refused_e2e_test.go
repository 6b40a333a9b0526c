//go:build e2e

package routingd

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// Where no way is found, a local sender hears so, as it would of the kernel:
// of a protocol that makes kernel routes, and of one that carries data itself.
func TestAnUnreachableHostIsSaid(t *testing.T) {
	for _, protocol := range []string{"aodv", "dsr"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel() // they wait most of the time
			a := newAir(t, 2, chain(2)...)
			a.everywhere(t, protocol)
			began := time.Now()
			var err error
			a.nodes[0].Do(t, func() error {
				var conn net.Conn
				if conn, err = net.DialTimeout("tcp4", "10.77.0.99:9", patience); err == nil {
					return conn.Close()
				}
				return nil
			})
			if !errors.Is(err, syscall.EHOSTUNREACH) {
				t.Errorf("the sender is told %v, want that there is no route to the host", err)
			}
			t.Logf("%s: told after %s", protocol, time.Since(began).Round(100*time.Millisecond))
		})
	}
}

func TestWithoutRootItIsSaid(t *testing.T) {
	testnet.Need(t, "setpriv")
	a := newAir(t, 2, chain(2)...)
	before := testnet.Snapshot(t, a.nodes[0].Name)
	out, err := a.nodes[0].Command(t.Context(), "setpriv", "--reuid", "65534", "--clear-groups", "--",
		filepath.Join(programs, "fieldmesh-agent"),
		"route", "--protocol", "aodv", "--interface", "wlan0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "root") {
		t.Errorf("%v, said %q, want root in it", err, out)
	}
	asItWas(t, a.nodes[0], before)
}
