//go:build e2e

package aomdv_test

import (
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/aomdv"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation/simtest"
)

func TestPropertiesMore(t *testing.T) { protocol.MoreProperties(t) }

// TestDissected has Wireshark's dissector read AODV's messages with AOMDV's
// extension.
func TestDissected(t *testing.T) {
	tshark := simtest.NeedTshark(t)
	sim := simtest.Simulate(t, simulation.Config{Seed: 1, Nodes: 9, Feedback: true,
		Make: func(_ int, i []manet.Interface, seed uint64) (manet.Node, error) {
			c := aomdv.Hello(i, seed)
			c.AckRREPs, c.QuietStart = true, 0
			return aomdv.New(c)
		}})
	sim.Grid(3)
	sim.Flow(0, 8, 512, 100*time.Millisecond, 2*time.Second, 30*time.Second)
	sim.At(10*time.Second, func() { sim.Cut(7, 8) })
	sim.At(15*time.Second, func() { sim.Cut(5, 8) })
	d := simtest.Dissect(t, tshark, simtest.Capture(t, sim, aomdv.Port, 40*time.Second))
	d.Kinds("aodv.type", "1", "2", "3", "4")
	d.Kinds("aodv.ext_type", "64")
}
