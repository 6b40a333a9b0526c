// Package field is the emulated field of a rehearsal: namespaces with a real
// agent and a real gpsd each, joined by an emulated radio and by a control
// network apart from it, and a car that drives a trial's course.
//
// A field lives in a process of its own (Serve), which its controller steers
// through a Client by JSON lines. When the controller goes, however it goes,
// the field is destroyed; when the field's process is killed, the next field
// cleans up after it (Sweep). The medium's physics, the course's kinematics
// and the words of NMEA are other packages'; nothing here reaches into an
// agent.
package field
