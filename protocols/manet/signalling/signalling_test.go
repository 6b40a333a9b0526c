package signalling_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/manet/signalling"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Every protocol that a campaign can name is known by what it sends.
func TestEveryProtocolOfAPlanIsKnown(t *testing.T) {
	for _, name := range wire.RoutingProtocols() {
		m, ok := signalling.Of(name)
		if silent := name == "none" || name == "static"; ok == silent {
			t.Errorf("%s: known by %+v: %v", name, m, ok)
			continue
		}
		if !ok {
			continue
		}
		known := slices.Contains(signalling.Ports(), m.Port) || slices.Contains(signalling.Protocols(), m.Protocol) ||
			m.EtherType == signalling.EtherBatman
		if !known {
			t.Errorf("%s: %+v is in no list", name, m)
		}
	}
}

// Every port by which packets are taken for routing's is somebody's.
func TestEveryPortIsSomebodys(t *testing.T) {
	for _, port := range signalling.Ports() {
		if len(signalling.AtPort(port)) == 0 {
			t.Errorf("port %d is nobody's", port)
		}
	}
	got, want := signalling.AtPort(signalling.PortAODV), []string{"aodv", "aodv-ns2", "aodv-p3", "aomdv"}
	if !slices.Equal(got, want) {
		t.Errorf("AODV's port is that of %q", got)
	}
	for _, port := range []uint16{0, 5000, 6695} {
		if got := signalling.AtPort(port); got != nil {
			t.Errorf("port %d is that of %q", port, got)
		}
	}
}

func TestSharesOfPackets(t *testing.T) {
	udp := func(from, to uint16) []byte {
		return append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from), to), 0, 8, 0, 0)
	}
	whole := signalling.Share{Whole: true}
	for name, c := range map[string]struct{ got, want signalling.Share }{
		"data":                  {signalling.InIP(17, udp(5000, 6000)), signalling.Share{}},
		"TCP from OLSR's port":  {signalling.InIP(6, udp(698, 698)), signalling.Share{}},
		"cut before its ports":  {signalling.InIP(17, []byte{2}), signalling.Share{}},
		"MANET":                 {signalling.InIP(138, nil), whole},
		"DSR alone":             {signalling.InIP(48, []byte{59, 0, 0, 8}), whole},
		"DSR before TCP":        {signalling.InIP(48, []byte{6, 0, 0, 16}), signalling.Share{Header: 20}},
		"an originator message": {signalling.InBatman([]byte{0, 15}), whole},
		"a translation table":   {signalling.InBatman([]byte{0x44, 15}), whole},
		"a unicast frame":       {signalling.InBatman([]byte{0x40, 15}), signalling.Share{Header: 24}},
		"nothing of batman-adv": {signalling.InBatman(nil), signalling.Share{}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v, want %+v", name, c.got, c.want)
		}
	}
	for _, port := range signalling.Ports() {
		if signalling.InIP(17, udp(40000, port)) != whole || signalling.InIP(17, udp(port, 40000)) != whole {
			t.Errorf("port %d is not routing's", port)
		}
	}
}
