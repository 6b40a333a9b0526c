package wire

// Delay is one datagram of a flow of kind delay or cbr: on its sender, with the answer if one came; on its responder,
// or its receiver of kind cbr, as it came.
//
// The round trip is what passed at the sender from `handed_boot_ns` to `received_boot_ns`, less what passed at the
// responder from `peer_received_boot_ns` to `peer_handed_boot_ns`.
type Delay struct {
	Flow     string `json:"flow" influx:"tag" redact:"keep"` // the plan's name of the flow
	Side     string `json:"side" influx:"tag" redact:"keep"` // sender | responder | receiver; the last of kind cbr
	Datagram uint32 `json:"datagram" max:"4294967295"`       // which one, from 0 in the order of their times
	// at the sender: when it was to be sent, boot clock
	DueBootNs *int64 `json:"due_boot_ns,omitempty" unit:"ns"`
	// when the datagram, at the responder its answer, was handed to the kernel, boot clock; absent at the receiver,
	// and for a datagram of kind cbr that was not sent, because its program did not run at its time
	HandedBootNs *int64 `json:"handed_boot_ns,omitempty" unit:"ns"`
	// at the sender of kind delay: when it came to its interface's queue, or to the routing daemon's device, boot
	// clock; by the kernel's stamp, absent without one
	QueuedBootNs *int64 `json:"queued_boot_ns,omitempty" unit:"ns"`
	// when the answer, at the responder and the receiver the datagram, came, boot clock; absent when none did, at
	// the sender within 3 s
	ReceivedBootNs *int64 `json:"received_boot_ns,omitempty" unit:"ns"`
	// whose stamp that is: kernel | program
	ReceivedStamp string `json:"received_stamp,omitempty" redact:"keep"`
	// at the sender: when the datagram came to the responder, by the responder's boot clock
	PeerReceivedBootNs *int64 `json:"peer_received_boot_ns,omitempty" unit:"ns"`
	// whose stamp that is: kernel | program
	PeerReceivedStamp string `json:"peer_received_stamp,omitempty" redact:"keep"`
	// at the sender: when the answer was handed to the responder's kernel, by the responder's boot clock
	PeerHandedBootNs *int64 `json:"peer_handed_boot_ns,omitempty" unit:"ns"`
	// why the kernel did not take it, by the error's name, such as ENETUNREACH; absent when it did
	Refused string `json:"refused,omitempty" redact:"keep"`
}

// The ends of a timed flow, and who stamped an arrival.
const (
	DelaySender    = "sender"
	DelayResponder = "responder"
	DelayReceiver  = "receiver"

	StampKernel  = "kernel"
	StampProgram = "program"
)

func (*Delay) Kind() string { return "delay" }

// RoundTripNs is how long a datagram and its answer were under way; false of one
// that was not answered.
func (d *Delay) RoundTripNs() (int64, bool) {
	if d.HandedBootNs == nil || d.ReceivedBootNs == nil || d.PeerReceivedBootNs == nil || d.PeerHandedBootNs == nil {
		return 0, false
	}
	return *d.ReceivedBootNs - *d.HandedBootNs - (*d.PeerHandedBootNs - *d.PeerReceivedBootNs), true
}

// DelayEnd is what one end of a flow of kind delay or cbr had counted when it ended. An end without one did not record
// all.
type DelayEnd struct {
	Flow string `json:"flow" influx:"tag" redact:"keep"` // the plan's name of the flow
	Side string `json:"side" influx:"tag" redact:"keep"` // sender | responder | receiver; the last of kind cbr
	// datagrams, at the responder answers, that its kernel took
	Sent uint64 `json:"sent" unit:"datagrams"`
	// answers, at the responder and the receiver datagrams, that came, each counted once
	Received   uint64 `json:"received" unit:"datagrams"`
	Duplicates uint64 `json:"duplicates" unit:"datagrams"` // copies of them beyond the first
	// that came to its port and were not of this flow of this attempt; none of the others. 0 at a sender of kind cbr,
	// which reads nothing
	Foreign uint64 `json:"foreign" unit:"datagrams"`
}

func (*DelayEnd) Kind() string { return "delay_end" }
