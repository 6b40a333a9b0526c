package wireless

import (
	"net"
	"testing"
)

func TestAddressesBesideAnother(t *testing.T) {
	mac := func(text string) net.HardwareAddr {
		m, err := net.ParseMAC(text)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct{ own, taken, want string }{
		{"00:1b:2c:00:00:07", "", "1e:1b:2c:00:00:07"},
		{"00:1b:2c:00:00:07", "1e:1b:2c:00:00:07", "1a:1b:2c:00:00:07"},
		{"02:00:00:00:00:00", "", "1e:00:00:00:00:00"},
		{"1e:00:00:00:00:00", "", "02:00:00:00:00:00"}, // a local one already
	} {
		var taken []net.HardwareAddr
		if c.taken != "" {
			taken = append(taken, mac(c.taken))
		}
		got, err := localAddress(mac(c.own), taken)
		if err != nil || got.String() != c.want {
			t.Errorf("beside %s: %s, %v; want %s", c.own, got, err, c.want)
		}
	}
	var taken []net.HardwareAddr
	for range shifts { // each is another one, local, and of a station
		m, err := localAddress(mac("00:1b:2c:00:00:07"), taken)
		if err != nil || m[0]&1 != 0 || m[0]&localBit == 0 {
			t.Fatalf("%s, %v", m, err)
		}
		taken = append(taken, m)
	}
	if m, err := localAddress(mac("00:1b:2c:00:00:07"), taken); err == nil {
		t.Errorf("%s is free, and all are taken", m)
	}
	if m, err := localAddress(nil, nil); err == nil {
		t.Errorf("%s beside none", m)
	}
}
