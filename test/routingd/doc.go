// Package routingd holds tests of the routing daemons as programs: built agents
// in namespaces that hear only some of each other, what they leave in the
// kernel, what they refuse, and how they get on with babeld's and olsrd's. It
// has no code of its own; protocols by themselves are tested in virtual time,
// by protocols/manet/simulation.
package routingd
