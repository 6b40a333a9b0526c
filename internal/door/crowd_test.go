package door

import (
	"net"
	"testing"
	"time"
)

func TestACrowdKeepsNobodyOut(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const most = 8
	c := NewCrowd(l, most)
	// come connects from an address of the loopback, and returns both ends.
	come := func(from string) (far, near net.Conn) {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
		far, err := d.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		near, err = c.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = far.Close(); _ = near.Close() })
		return far, near
	}
	open := func(far net.Conn) bool { return !ended(far, 50*time.Millisecond) }
	known, near := come("127.0.0.2")
	c.Know(near.RemoteAddr().String())
	quiet, _ := come("127.0.0.3")
	var crowd []net.Conn
	for range 3 * most {
		far, _ := come("127.0.0.2")
		crowd = append(crowd, far)
	}
	if !open(known) || !open(quiet) {
		t.Errorf("the known one is connected: %t, one of another address: %t", open(known), open(quiet))
	}
	for i, far := range crowd {
		if want := i > len(crowd)-most; open(far) != want {
			t.Errorf("connection %d of %d is open: %t", i, len(crowd), !want)
		}
	}
	for _, far := range crowd {
		_ = far.Close()
	}
	_ = near.Close()
	if len(c.open) != most { // nobody has noticed yet
		t.Errorf("%d places are taken, want %d", len(c.open), most)
	}
	for _, g := range append([]*guest{}, c.open...) {
		_ = g.Close()
	}
	if len(c.open) != 0 {
		t.Errorf("%d places are taken after all have left", len(c.open))
	}
}
