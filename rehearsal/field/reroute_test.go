package field

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func TestWhatIsARouteChange(t *testing.T) {
	to, other := &net.IPNet{IP: net.IPv4(10, 77, 0, 2), Mask: net.CIDRMask(32, 32)},
		&net.IPNet{IP: net.IPv4(10, 77, 0, 3), Mask: net.CIDRMask(32, 32)}
	news := func(kind uint16, dst *net.IPNet, gateway byte, change func(*netlink.Route)) netlink.RouteUpdate {
		r := netlink.Route{Dst: dst, Gw: net.IPv4(10, 77, 0, gateway), LinkIndex: 3, Table: unix.RT_TABLE_MAIN,
			Type: unix.RTN_UNICAST}
		if change != nil {
			change(&r)
		}
		return netlink.RouteUpdate{Type: kind, Route: r}
	}
	const made, taken = unix.RTM_NEWROUTE, unix.RTM_DELROUTE
	known := knownRoutes{}
	for i, c := range []struct {
		what string
		u    netlink.RouteUpdate
		want bool
	}{
		{"the first route", news(made, to, 2, nil), false},
		{"the same once more, as with a new metric", news(made, to, 2, nil), false},
		{"another way", news(made, to, 9, nil), true},
		{"another network's", news(made, other, 2, nil), false},
		{"the former way is taken out", news(taken, to, 2, nil), false},
		{"the same again", news(made, to, 9, nil), false},
		{"it is taken out", news(taken, to, 9, nil), false},
		{"it is made again", news(made, to, 9, nil), true},
		{"it is taken out again", news(taken, to, 9, nil), false},
		{"what says that there is none", news(made, to, 0, func(r *netlink.Route) { r.Type = unix.RTN_UNREACHABLE }),
			false},
		{"another table's", news(made, to, 7, func(r *netlink.Route) { r.Table = 77 }), false},
		{"one that was looked up", news(made, to, 7, func(r *netlink.Route) { r.Flags = unix.RTM_F_CLONED }), false},
		{"a default route", news(made, nil, 7, nil), false},
		{"another interface", news(made, to, 9, func(r *netlink.Route) { r.LinkIndex = 4 }), true},
	} {
		if to, changed := known.see(c.u); changed != c.want || changed && to.String() != "10.77.0.2/32" {
			t.Errorf("%d, %s: %v changed %v", i, c.what, to, changed)
		}
	}
}
