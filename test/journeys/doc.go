// Package journeys holds the tests that go the whole length: built programs,
// namespaces, real iperf3 and gpsd, from the keys to the verified archive. It
// has no code of its own, and nothing may be tested here that a package can
// test of itself.
package journeys
