// Package aomdv is Ad hoc On-demand Multipath Distance Vector routing (Marina
// and Das, "Ad hoc on-demand multipath distance vector routing", Wireless
// Communications and Mobile Computing 6, 2006). It is AODV with lists of paths
// in place of one, so that its state machine is package aodv's with Multipath
// set; what belongs to AOMDV alone is aodv/multipath.go. Here are the
// settings, the bounds, and the tests of what the paper promises.
package aomdv

import (
	"fmt"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/aodv"
)

// Port is AODV's: the formats are AODV's with one extension.
const Port = aodv.Port

// Config is AODV's, with Multipath set.
type Config struct{ aodv.Config }

// defaultPaths is how many ways a node keeps to a destination, and how many
// copies of an RREQ a destination answers: ns-2's value. The paper leaves k
// open and finds few more than three to be of use.
const defaultPaths = 3

// LinkDisjoint keeps paths that share no link: the paper's usual form, with
// link layer feedback as in its simulations. Local repair is not part of it:
// there are other paths instead.
func LinkDisjoint(interfaces []manet.Interface, seed uint64) Config {
	c := Config{aodv.LinkLayer(interfaces, seed)}
	c.Multipath = &aodv.Multipath{Paths: defaultPaths}
	c.LocalRepair = false
	return c
}

// NodeDisjoint keeps paths that share no node.
func NodeDisjoint(interfaces []manet.Interface, seed uint64) Config {
	c := LinkDisjoint(interfaces, seed)
	c.Multipath.NodeDisjoint = true
	return c
}

// Hello is LinkDisjoint with HELLOs in place of the link layer's reports.
func Hello(interfaces []manet.Interface, seed uint64) Config {
	c := Config{aodv.RFC3561(interfaces, seed)}
	c.Multipath = &aodv.Multipath{Paths: defaultPaths}
	c.LocalRepair = false
	return c
}

// New makes a node; see package aodv.
func New(c Config) (*aodv.Node, error) {
	if c.Multipath == nil {
		return nil, fmt.Errorf("configure aomdv: no number of paths")
	}
	return aodv.New(c.Config)
}

// ConvergenceBound is AODV's and the time that it takes to find out, of each
// way that was left over, that it leads nowhere.
func (c Config) ConvergenceBound() time.Duration {
	silent := time.Duration(2+c.AllowedHelloLoss) * c.HelloInterval
	return c.Config.ConvergenceBound() + time.Duration(c.Multipath.Paths)*silent
}
