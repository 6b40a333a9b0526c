//go:build e2e

package netstack

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// What a daemon does with its routes stays as it does it, but for the one
// property; other routes are let alone.
func TestE2EADaemonsRoutesAcknowledgeAtOnce(t *testing.T) {
	testnet.Need(t, "ip")
	ns, other := testnet.NewNS(t, "acks"), testnet.NewNS(t, "acked")
	testnet.Veth(t, ns, "wlan0", "192.168.7.1/24", other, "wlan0", "192.168.7.2/24")
	const babel = 42
	var a *Acknowledging
	ns.Do(t, func() (err error) {
		a, err = newAcknowledging(babel, netip.MustParsePrefix("10.77.0.0/16"), slog.New(slog.DiscardHandler))
		return err
	})
	// in its namespace, as a host process is
	a.group.Go(func() { ns.Do(t, func() error { a.run(); return nil }) })
	route := func(args string) {
		t.Helper()
		ns.Run(t, "ip", append([]string{"route"}, strings.Fields(args)...)...)
	}
	await := func(want string) {
		t.Helper()
		testnet.Await(t, time.Minute, want, func() bool {
			return strings.Contains(ns.Run(t, "ip", "-4", "route", "show", "dev", "wlan0"), want)
		})
	}
	route("add 10.77.5.1/32 via 192.168.7.2 dev wlan0 proto babel metric 9 mtu lock 1300")
	route("add 10.77.5.2/32 via 192.168.7.2 dev wlan0 proto babel onlink")
	route("add 10.77.5.3/32 via 192.168.7.2 dev wlan0 proto 98")
	route("add 10.78.5.4/32 via 192.168.7.2 dev wlan0 proto babel")
	route("add unreachable 10.77.5.5/32 proto babel")
	await("10.77.5.1 via 192.168.7.2 proto babel metric 9 mtu lock 1300 quickack 1")
	await("10.77.5.2 via 192.168.7.2 proto babel onlink quickack 1")
	route("replace 10.77.5.2/32 via 192.168.7.3 dev wlan0 proto babel onlink")
	await("10.77.5.2 via 192.168.7.3 proto babel onlink quickack 1")
	route("del 10.77.5.1/32 via 192.168.7.2 dev wlan0 proto babel metric 9")
	for range 50 { // routes that come and go are not made again
		route("add 10.77.5.6/32 via 192.168.7.2 dev wlan0 proto babel")
		route("del 10.77.5.6/32 via 192.168.7.2 dev wlan0 proto babel")
	}
	route("add 10.77.5.7/32 via 192.168.7.2 dev wlan0 proto babel")
	// all news before is seen
	await("10.77.5.7 via 192.168.7.2 proto babel quickack 1")
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	now := ns.Run(t, "ip", "-4", "route", "show")
	for _, want := range []string{"10.77.5.3 via 192.168.7.2 dev wlan0 proto 98 \n", "10.78.5.4 via 192.168.7.2 dev " +
		"wlan0 proto babel \n", "unreachable 10.77.5.5 proto babel \n"} {
		if !strings.Contains(now, want) {
			t.Errorf("there is no %q in\n%s", want, now)
		}
	}
	for _, gone := range []string{"10.77.5.1 ", "10.77.5.6 "} {
		if strings.Contains(now, gone) {
			t.Errorf("%s is back:\n%s", gone, now)
		}
	}
}
