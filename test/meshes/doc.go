// Package meshes holds tests of the routing daemon where the programs meet: real
// daemons in network namespaces over the emulated medium. It has no code of
// its own.
package meshes
