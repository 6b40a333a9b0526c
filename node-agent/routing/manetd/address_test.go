package manetd

import (
	"net/netip"
	"strings"
	"testing"
)

// The node's own address is the one in the mesh's network, whatever an interface had before it.
func TestTheOwnAddressIsInTheMesh(t *testing.T) {
	mesh, all := netip.MustParsePrefix("10.77.0.9/24"), netip.Prefix{}
	for name, c := range map[string]struct {
		has           string
		catch         netip.Prefix
		own, of, want string // want: of the refusal
	}{
		"alone":                {"10.77.0.1/24", mesh, "10.77.0.1", "10.77.0.0/24", ""},
		"behind one of DHCP":   {"192.168.1.5/24 10.77.0.1/24", mesh, "10.77.0.1", "10.77.0.0/24", ""},
		"behind one by itself": {"169.254.3.4/16 10.77.0.1/24", mesh, "10.77.0.1", "10.77.0.0/24", ""},
		"of a larger network":  {"10.77.0.1/24", netip.MustParsePrefix("10.0.0.0/8"), "10.77.0.1", "10.0.0.0/8", ""},
		"no network is named":  {"192.168.1.5/24 10.77.0.1/24", all, "192.168.1.5", "192.168.1.0/24", ""},
		"none of the mesh's":   {"192.168.1.5/24", mesh, "", "", "no IPv4 address in 10.77.0.0/24"},
		"none at all":          {"", all, "", "", "has no IPv4 address: give it one"},
		"a network of one":     {"10.77.0.1/32", all, "", "", "10.77.0.1/32 is no network of a mesh"},
		"a network of one named": {"10.77.0.1/24", netip.MustParsePrefix("10.77.0.1/32"), "", "",
			"is no network of a mesh"},
	} {
		var has []netip.Prefix
		for text := range strings.FieldsSeq(c.has) {
			has = append(has, netip.MustParsePrefix(text))
		}
		own, of, err := ownAddress("wlan0", has, c.catch)
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		case err != nil || own.String() != c.own || of.String() != c.of:
			t.Errorf("%s: %s of %s, %v, want %s of %s", name, own, of, err, c.own, c.of)
		}
	}
}
