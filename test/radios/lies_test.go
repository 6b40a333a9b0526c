//go:build guest

//guest:timed

package radios

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/radio"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A cell that is on the air twice, as drivers make it that ignore a fixed
// BSSID, and one in which nobody is heard, are seen by what is heard.
func TestGuestLies(t *testing.T) {
	r := newRig(t, "fox", "owl")
	fox, owl := r.nodes[0], r.nodes[1]
	for i, n := range r.nodes {
		n.joins(t, fmt.Sprintf("02:11:22:33:44:6%d", i))
	}
	k := radio.NewKernel("wlan0")
	if got := fox.event(t, k); !strings.HasPrefix(got, "error split_cell: ") ||
		!strings.Contains(got, "02:11:22:33:44:61") {
		t.Errorf("of a cell that is on the air twice is told: %q", got)
	}
	owl.radio.IW(t, "dev", "wlan0", "ibss", "leave")
	time.Sleep(5 * time.Second) // its old cell is no longer on the air
	owl.radio.Hear(t, 2)        // out of reach, and in the right cell
	owl.joins(t, "02:11:22:33:44:60")
	if got := fox.event(t, radio.NewKernel("wlan0")); !strings.HasPrefix(got, "warning dead_cell: ") {
		t.Errorf("of a cell in which nobody is heard is told: %q", got)
	}
}

// event waits for what the agent's sampling of the radio reports its driver. A
// cell that was heard counts until it is some seconds old.
func (n *node) event(t *testing.T, k *radio.Kernel) (told string) {
	t.Helper()
	started := time.Now()
	testnet.Await(t, time.Minute, "something to be told", func() bool {
		n.ns.Do(t, func() error {
			bodies, err := k.Sample(time.Since(started).Nanoseconds() + int64(time.Hour))
			for _, b := range bodies {
				if e, ok := b.(*wire.Event); ok {
					text, _ := json.Marshal(e) // cannot fail
					t.Logf("%s: %s", n.name, text)
					told = e.Level + " " + e.Text
				}
			}
			return err
		})
		return told != ""
	})
	return told
}
