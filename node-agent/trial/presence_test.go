package trial

import (
	"net"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// An attempt ends when its interface is not there any more, and when another one
// bears its name: a radio that was plugged in again is not set up.
func TestARadioThatIsTakenAwayEndsTheAttempt(t *testing.T) {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		iface string
		index int
		ends  bool
	}{
		"it is there":   {"lo", lo.Index, false},
		"it is not":     {"absent0", lo.Index, true},
		"it is another": {"lo", lo.Index + 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			var ended error
			p := &presence{iface: c.iface, index: c.index, gone: func(err error) { ended = err }}
			if bodies, err := p.Sample(0); bodies != nil || err != nil {
				t.Errorf("samples %v, error %v", bodies, err)
			}
			if (ended != nil) != c.ends {
				t.Fatalf("ended with %v", ended)
			}
			if c.ends && reasonOf(ended).Code != wire.ReasonRadioGone {
				t.Errorf("ended with %v", ended)
			}
		})
	}
}
