//go:build e2e

package dnssd_test

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"fieldmesh.dev/fieldmesh/internal/dnssd"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const patience = 10 * time.Second

var pin = strings.Repeat("ab", 32)

// rig is a node with two links, and who asks on either.
type rig struct {
	node, phone, other *testnet.NS
	quiet              atomic.Bool
}

// start has the node answer on eth0 alone.
func start(t *testing.T) *rig {
	testnet.Need(t, "ip")
	r := &rig{node: testnet.NewNS(t, "sdn"), phone: testnet.NewNS(t, "sdp"), other: testnet.NewNS(t, "sdo")}
	testnet.Veth(t, r.node, "eth0", "192.168.43.7/24", r.phone, "eth0", "192.168.43.1/24")
	testnet.Veth(t, r.node, "wlan0", "10.77.0.1/24", r.other, "wlan0", "10.77.0.2/24")
	service := dnssd.Service{Pin: pin, Port: 7443, Quiet: r.quiet.Load, Log: slog.New(slog.DiscardHandler),
		On: func(iface string, _ []netip.Prefix) bool { return iface == "eth0" }}
	testnet.Background(t, func(ctx context.Context) error {
		var err error
		r.node.Do(t, func() error { err = service.Run(ctx); return nil })
		return err
	})
	return r
}

func (r *rig) found(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	testnet.Await(t, patience, "the service is found", func() bool {
		got = r.phone.Services(t, "192.168.43.1", dnssd.Type, 300*time.Millisecond)
		return slices.Equal(got, want)
	})
}

func TestE2EAServiceIsFoundWhereItIsNow(t *testing.T) {
	r := start(t)
	r.found(t, "192.168.43.7:7443 pin="+pin)
	r.node.Run(t, "ip", "address", "add", "192.168.43.99/24", "dev", "eth0")
	r.node.Run(t, "ip", "address", "delete", "192.168.43.7/24", "dev", "eth0")
	r.node.Run(t, "ip", "address", "replace", "192.168.43.99/24", "dev", "eth0")
	r.found(t, "192.168.43.99:7443 pin="+pin)
	// The cable is taken out, and another one put in.
	r.node.Run(t, "ip", "link", "delete", "eth0")
	testnet.Veth(t, r.node, "eth0", "192.168.43.8/24", r.phone, "eth0", "192.168.43.1/24")
	r.found(t, "192.168.43.8:7443 pin="+pin)
}

// A responder's question is answered to all of them, from the port of responders.
func TestE2EAResponderIsAnsweredByMulticast(t *testing.T) {
	r := start(t)
	r.found(t, "192.168.43.7:7443 pin="+pin)
	question := dnsmessage.Message{Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName(dnssd.Type + ".local."), Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET}}}
	raw, err := question.Pack()
	if err != nil {
		t.Fatal(err)
	}
	r.phone.Do(t, func() error {
		eth0, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		group := &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}
		c, err := net.ListenMulticastUDP("udp4", eth0, group)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.WriteTo(raw, group); err != nil {
			return err
		}
		if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		buf := make([]byte, 9000)
		n, from, err := c.ReadFromUDPAddrPort(buf)
		if err != nil {
			return err
		}
		said, err := testnet.ServicesOf(buf[:n])
		if err != nil || len(said) != 1 || from != netip.MustParseAddrPort("192.168.43.7:5353") {
			t.Errorf("%v said %v, %v", from, said, err)
		}
		return nil
	})
}

// groups are those of multicast that are joined on an interface of the node.
func (r *rig) groups(t *testing.T, iface string) string {
	return r.node.Run(t, "ip", "-4", "maddress", "show", "dev", iface)
}

// Neither a question on another interface nor one of beyond the link is answered, and no question at all while
// there is to be silence; the kernel then says nothing of the group.
func TestE2ESilence(t *testing.T) {
	r := start(t)
	r.found(t, "192.168.43.7:7443 pin="+pin)
	if !strings.Contains(r.groups(t, "eth0"), "224.0.0.251") || strings.Contains(r.groups(t, "wlan0"), "224.0.0.251") {
		t.Errorf("joined:\n%s%s", r.groups(t, "eth0"), r.groups(t, "wlan0"))
	}
	if got := r.other.Services(t, "10.77.0.2", dnssd.Type, time.Second); len(got) != 0 {
		t.Errorf("answered on another interface: %v", got)
	}
	r.phone.Run(t, "ip", "address", "add", "172.16.0.1/24", "dev", "eth0")
	r.node.Run(t, "ip", "route", "add", "172.16.0.0/24", "dev", "eth0")
	if got := r.phone.Services(t, "172.16.0.1", dnssd.Type, time.Second); len(got) != 0 {
		t.Errorf("answered beyond the link: %v", got)
	}
	r.quiet.Store(true)
	if got := r.phone.Services(t, "192.168.43.1", dnssd.Type, time.Second); len(got) != 0 {
		t.Errorf("answered while there is to be silence: %v", got)
	}
	testnet.Await(t, patience, "the group is left", func() bool {
		return !strings.Contains(r.groups(t, "eth0"), "224.0.0.251")
	})
	r.quiet.Store(false)
	r.found(t, "192.168.43.7:7443 pin="+pin)
}

//attack:network questions without an end to the multicast DNS responder | it gives ten answers a second
func TestE2EACrowdOfQuestionsHasFewAnswers(t *testing.T) {
	r := start(t)
	r.found(t, "192.168.43.7:7443 pin="+pin)
	time.Sleep(time.Second)
	question := dnsmessage.Message{Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName(dnssd.Type + ".local."), Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET}}}
	raw, err := question.Pack()
	if err != nil {
		t.Fatal(err)
	}
	answers := 0
	r.phone.Do(t, func() error {
		c, err := net.ListenPacket("udp4", "192.168.43.1:0")
		if err != nil {
			return err
		}
		defer c.Close()
		began := time.Now()
		for range 300 {
			if _, err := c.WriteTo(raw, &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}); err != nil {
				return err
			}
		}
		if err := c.SetReadDeadline(began.Add(900 * time.Millisecond)); err != nil {
			return err
		}
		for buf := make([]byte, 9000); ; answers++ {
			if _, _, err := c.ReadFrom(buf); os.IsTimeout(err) {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	if answers == 0 || answers > 20 { // of two seconds, if one begins meanwhile
		t.Errorf("%d answers to 300 questions", answers)
	}
}
