package batman

import (
	"errors"
	"net"
	"os"
	"regexp"
	"testing"

	"github.com/mdlayher/netlink"
	rtnl "github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// hard and soft are the hardware addresses of a node's radio and of its mesh
// device.
func hard(n byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 1, n} }
func soft(n byte) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 9, n} }

// A chain of which this is the first node; its neighbour's IPv4 address is in
// the kernel's table, the third node's in batman-adv's cache, the fourth's
// nowhere; the sixth's device has the address that ours have. A fifth is heard and does not hear.
func TestAddressesStandForNodes(t *testing.T) {
	s := tables{
		originators: []entry{
			{orig: hard(2), neigh: hard(2), tq: 255, best: true},
			{orig: hard(3), neigh: hard(2), tq: 204, best: true},
			{orig: hard(3), neigh: hard(5), tq: 10},
			{orig: hard(4), neigh: hard(2), tq: 170, best: true},
			{orig: hard(6), neigh: hard(2), tq: 51, best: true},
		},
		neighbors: []entry{{neigh: hard(2)}, {neigh: hard(5)}},
		clients: []entry{{client: soft(2), orig: hard(2)}, {client: soft(3), orig: hard(3)},
			{client: soft(4), orig: hard(4)}},
		cached: []entry{{client: soft(3), addr: net.IP{10, 77, 0, 3}}, {client: soft(9), addr: net.IP{10, 77, 0, 9}}},
		resolved: []rtnl.Neigh{{IP: net.ParseIP("10.77.0.2"), HardwareAddr: soft(2)},
			{IP: net.ParseIP("10.77.0.6"), HardwareAddr: net.HardwareAddr{6, 0, 0, 0, 1, 6}}},
	}.state()
	if len(s.Neighbors) != 2 || s.Originators != 4 || len(s.Routes) != 3 {
		t.Fatalf("state %+v", s)
	}
	if n := s.Neighbors[0]; n.Addr != "10.77.0.2" || !n.Symmetric || *n.Cost != 1 {
		t.Errorf("the neighbour is %+v", n)
	}
	if n := s.Neighbors[1]; n.Addr != "fe80::ff:fe00:105" || n.Symmetric || n.Cost != nil {
		t.Errorf("the one that does not hear is %+v", n)
	}
	if r := s.Routes[1]; r.Destination != "10.77.0.3/32" || r.NextHop != "10.77.0.2" || r.Cost != 1.25 {
		t.Errorf("the way to the third is %+v", r)
	}
	if r := s.Routes[2]; r.Destination != "10.77.0.6/32" || r.Cost != 5 {
		t.Errorf("the way to one of ours, of which there is no client yet, is %+v", r)
	}
}

// message is what the kernel says of an originator.
func message(t testing.TB) []byte {
	e := netlink.NewAttributeEncoder()
	e.Bytes(attrOrigAddress, hard(3))
	e.Bytes(attrNeighAddress, hard(2))
	e.Uint8(attrTQ, 204)
	e.Flag(attrFlagBest, true)
	data, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAnEntryIsRead(t *testing.T) {
	got, err := parseEntry(message(t))
	if err != nil || got.orig.String() != hard(3).String() || got.neigh.String() != hard(2).String() || got.tq != 204 ||
		!got.best {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzEntries(f *testing.F) {
	f.Add(message(f))
	fuzz.Run(f, func(t *testing.T, data []byte) {
		e, err := parseEntry(data)
		if err != nil {
			return
		}
		tables{originators: []entry{e}, neighbors: []entry{e}, clients: []entry{e}, cached: []entry{e}}.state()
	})
}

// Where the kernel has no module, what it needs is named.
func TestWhatIsMissingIsNamed(t *testing.T) {
	err := Available()
	if err == nil {
		if Version() == "" {
			t.Error("the module can be had, and has no name")
		}
		return
	}
	var unsupported *tcp.UnsupportedError
	if !errors.As(err, &unsupported) || unsupported.Needs != "the kernel module batman-adv (CONFIG_BATMAN_ADV)" ||
		Version() != "" {
		t.Errorf("%v; version %q", err, Version())
	}
}

// The numbers are those of the kernel's own header.
func TestNumbersAreTheKernels(t *testing.T) {
	const header = "/usr/include/linux/batman_adv.h"
	text, err := os.ReadFile(header)
	if err != nil {
		t.Skipf("needs the package linux-libc-dev: %v", err)
	}
	numbers := map[string]int{}
	for _, enum := range []string{"BATADV_ATTR", "BATADV_CMD"} {
		for i, m := range regexp.MustCompile(`(?m)^\t`+enum+`_([A-Z0-9_]+),$`).FindAllSubmatch(text, -1) {
			numbers[enum+"_"+string(m[1])] = i
		}
	}
	for name, ours := range map[string]int{
		"BATADV_CMD_GET_MESH": getMesh, "BATADV_CMD_GET_TRANSTABLE_GLOBAL": getTransTableGlobal,
		"BATADV_CMD_GET_ORIGINATORS": getOriginators, "BATADV_CMD_GET_NEIGHBORS": getNeighbors,
		"BATADV_CMD_GET_DAT_CACHE": getDATCache, "BATADV_CMD_SET_MESH": setMesh,
		"BATADV_ATTR_MESH_IFINDEX": attrMeshIfindex, "BATADV_ATTR_ORIG_ADDRESS": attrOrigAddress,
		"BATADV_ATTR_TT_ADDRESS": attrTTAddress, "BATADV_ATTR_FLAG_BEST": attrFlagBest,
		"BATADV_ATTR_NEIGH_ADDRESS": attrNeighAddress, "BATADV_ATTR_TQ": attrTQ,
		"BATADV_ATTR_DAT_CACHE_IP4ADDRESS": attrDATIPv4, "BATADV_ATTR_DAT_CACHE_HWADDRESS": attrDATHardware,
		"BATADV_ATTR_ORIG_INTERVAL": attrOrigInterval,
	} {
		if theirs, known := numbers[name]; !known || theirs != ours {
			t.Errorf("%s is %d (known: %t), here %d", name, theirs, known, ours)
		}
	}
}
