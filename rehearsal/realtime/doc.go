// Package realtime runs the emulated radio channel of a rehearsal by the
// monotonic clock between TAP devices or the nodes' own 802.11 radios, tells nodes
// about their radios on feedback sockets, and accounts for how late it is.
//
// What happens on the air is for package medium to say; this one only asks it
// in time.
package realtime
