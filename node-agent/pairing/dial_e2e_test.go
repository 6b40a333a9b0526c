//go:build e2e

package pairing

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A phone in a Wi-Fi without internet has its default network elsewhere while its mobile data is on, by rules as
// Android's netd has them; a code's controller in that Wi-Fi is reached all the same.
func TestE2EAControllerInAWiFiWithoutInternetIsReached(t *testing.T) {
	testnet.Need(t, "ip")
	phone, lte, desk := testnet.NewNS(t, "pairphone"), testnet.NewNS(t, "pairlte"), testnet.NewNS(t, "pairdesk")
	testnet.Veth(t, phone, "rmnet0", "100.64.7.2/30", lte, "rmnet0", "100.64.7.1/30")
	testnet.Veth(t, phone, "wlan0", "10.77.0.1/24", desk, "wlan0", "10.77.0.2/24")
	for _, line := range []string{"rule flush", "route add default via 100.64.7.1 dev rmnet0 onlink table 1003",
		"route add 10.77.0.0/24 dev wlan0 table 1002", "rule add pref 17000 iif lo oif wlan0 lookup 1002",
		"rule add pref 31000 iif lo lookup 1003", "rule add pref 32000 unreachable"} {
		phone.Run(t, "ip", strings.Fields(line)...)
	}
	var controller net.Listener
	desk.Do(t, func() (err error) {
		controller, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "10.77.0.2:7447")
		return err
	})
	defer controller.Close()
	came := make(chan error, 1)
	go func() {
		conn, err := controller.Accept()
		if err == nil {
			err = conn.Close() // before the handshake
		}
		came <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	phone.Do(t, func() error {
		if conn, err := dial(ctx, "wlan0", "10.77.0.2:7447", &tls.Config{MinVersion: tls.VersionTLS13}); err == nil {
			t.Error("who closes the connection has completed the handshake")
			return conn.Close()
		}
		return nil
	})
	select {
	case err := <-came:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("the controller was not called over the Wi-Fi")
	}
}
