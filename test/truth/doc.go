// Package truth holds the test that no accepted figure is wrong: processes of a
// trial are killed or stopped, disks fill and strangers send at random moments
// of a rehearsal, and each accepted attempt's megabytes are compared with a
// count by tcpdump at the receiver, which shares no code with what it judges. It
// has no code of its own. A failure prints its seed; FIELDMESH_SEED takes the
// choice of faults up again.
package truth
