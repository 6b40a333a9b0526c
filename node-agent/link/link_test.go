package link

import (
	"net"
	"net/netip"
	"testing"
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
