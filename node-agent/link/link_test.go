package link

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLoopback(t *testing.T) {
	flags, err := Flags("lo")
	if err != nil || flags&net.FlagUp == 0 {
		t.Errorf("flags %v, %v", flags, err)
	}
	for text, want := range map[string]int{"127.0.0.1": 8, "::1": 128} {
		address := netip.MustParseAddr(text)
		if bits, has := Has("lo", address); text == "127.0.0.1" && !has || has && bits != want {
			t.Errorf("%s: /%d, %v", text, bits, has)
		}
	}
	if name := With(netip.MustParseAddr("127.0.0.1")); name != "lo" {
		t.Errorf("127.0.0.1 is of %q", name)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	if _, err := Flags("none0"); err == nil {
		t.Error("an interface that is not there has flags")
	}
	elsewhere := netip.MustParseAddr("192.0.2.1") // of documentation, RFC 5737
	if _, has := Has("lo", elsewhere); has {
		t.Error("lo has an address of nobody's")
	}
	if _, has := Has("none0", elsewhere); has {
		t.Error("an interface that is not there has an address")
	}
	if name := With(elsewhere); name != "" {
		t.Errorf("an address of nobody's is of %q", name)
	}
}

// A socket that is bound to an interface is one of it alone; without one, it is as any other.
func TestSocketsAreBound(t *testing.T) {
	if err := MayBind(); err != nil {
		t.Skipf("this system lets nobody bind sockets: %v", err)
	}
	for iface, want := range map[string]error{"": nil, "lo": nil, "none0": unix.ENODEV} {
		d := net.Dialer{Control: Bind(iface)}
		c, err := d.Dial("udp", "127.0.0.1:9")
		if !errors.Is(err, want) {
			t.Errorf("bound to %q: %v", iface, err)
		}
		if err != nil {
			continue
		}
		raw, err := c.(*net.UDPConn).SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) {
				is, err := unix.GetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
				if is = strings.TrimRight(is, "\x00"); err != nil || is != iface {
					t.Errorf("bound to %q: it is bound to %q, %v", iface, is, err)
				}
			})
		}
		if err = errors.Join(err, c.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Datagrams to neighbours on the interface arrive as others do.
func TestDatagramsToNeighboursArrive(t *testing.T) {
	here := netip.MustParseAddrPort("127.0.0.1:0")
	to, err := ListenUDP(t.Context(), here, "")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	at := to.LocalAddr().(*net.UDPAddr)
	for iface, neighbour := range map[string]bool{"": false, "lo": true, "none0": false} {
		if got := iface != "" && isNeighbour(iface, at.AddrPort().Addr()); got != neighbour {
			t.Errorf("127.0.0.1 is a neighbour on %q: %v", iface, got)
		}
		from, err := ListenUDP(t.Context(), here, iface)
		if err != nil {
			t.Fatal(err)
		}
		for _, write := range []func() (int, error){func() (int, error) { return from.WriteTo([]byte("x"), at) },
			func() (int, error) { return from.WriteToUDP([]byte("x"), at) }} {
			if _, err := write(); err != nil {
				t.Errorf("by %q: %v", iface, err)
			}
			buf := make([]byte, 2)
			n, sender, err := to.ReadFromUDP(buf)
			if err != nil || n != 1 || sender.Port != from.LocalAddr().(*net.UDPAddr).Port {
				t.Errorf("by %q came %d bytes from %v, %v", iface, n, sender, err)
			}
		}
		if err := from.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A socket that has an address of its own keeps it, where the interface has others in the same network.
func TestDatagramsToNeighboursKeepTheirSource(t *testing.T) {
	to, err := ListenUDP(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	from, err := ListenUDP(t.Context(), netip.MustParseAddrPort("127.0.0.5:0"), "lo")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if _, err := from.WriteTo([]byte("x"), to.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if _, sender, err := to.ReadFromUDP(make([]byte, 2)); err != nil || sender.String() != from.LocalAddr().String() {
		t.Errorf("from %v it came from %v, %v", from.LocalAddr(), sender, err)
	}
}
