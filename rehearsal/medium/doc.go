// Package medium is the emulated radio channel of a rehearsal: it decides when
// a frame is on the air, who hears it, and what happens to it.
//
// Its core is pure: events in model time, a seed, and positions that the caller
// supplies; no clock, no device, no goroutine. The same configuration, seed and
// input give the same sequence of events on one architecture (fused
// multiply-add makes the last bit of a logarithm differ between
// architectures). Package realtime runs the same core by the monotonic clock
// between TAP devices.
//
// The parts, each behind its own type:
//
//   - package propagation: loss of power between two antennas; shadowing and fading on
//     top of it; errors in bursts, of a given mean,
//   - links: who can hear whom, so that a frame costs by its hearers only,
//   - package phy: the rates of a standard with their airtimes and error rates, radios by name,
//   - package ht: formats, lengths and order of 802.11n and 802.11ac,
//   - station: the DCF of IEEE 802.11-2020 clause 10.3 (mac.go),
//   - air.go: who hears what, interference, capture, carrier sense; ns2.go: the
//     receiver of ns-2; ns2access.go and ns2queue.go: its channel access and its queue,
//   - ampdu.go: what stations of 802.11n and 802.11ac do beyond others,
//   - package ratecontrol: which rate a frame goes at,
//   - MPDU: frames of the nodes' own stacks of 802.11, in place of Ethernet's (mpdu.go), which package dot11
//     reads,
//   - FrameLoss: every lost frame with its cause and its flow (monitor.go).
//
// What it leaves out, so that nobody reads it into a result: how well a receiver
// tracks a channel that changes within a frame (its power does), frequency
// selectivity, disturbance from other channels, propagation delay (at most 1 µs in 300 m, inside the slot),
// power save and fragmentation. Between interfaces of Ethernet there are no beacons
// either, and no DSSS rates of a mixed 802.11g cell: it is pure ERP-OFDM.
//
// Where nodes are, how TAP devices and namespaces come to be, and what a trial
// is, are other packages' business.
package medium
