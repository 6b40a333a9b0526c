package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Outcome is what an attempt came to.
type Outcome string

// The outcomes of an attempt.
const (
	Accepted    Outcome = "accepted"
	Rejected    Outcome = "rejected" // an acceptance rule does not hold
	Failed      Outcome = "failed"
	Interrupted Outcome = "interrupted" // from outside: it says nothing of the trial
)

// State is a step of an attempt's life on a node.
type State string

// The states of an attempt on a node, in their order.
const (
	StateLoaded    State = "loaded" // it is being armed; of a run: no attempt has been armed yet
	StateArmed     State = "armed"
	StateRunning   State = "running"
	StateRestoring State = "restoring"
	StateKept      State = "kept"
)

// ReasonCode is the first word of a reason. Whoever decides by a reason decides
// by its code.
type ReasonCode string

// Everything that interrupts an attempt. Whatever else ends one is of the trial
// and counts: what a node measured, and what happened to its traffic, its routing,
// its radio, its clock and its disk.
const (
	ReasonAborted             ReasonCode = "aborted"              // a person, or a controller that came back, ended it
	ReasonAgentRestarted      ReasonCode = "agent_restarted"      // the unprivileged half ended, and was restarted
	ReasonAgentStopped        ReasonCode = "agent_stopped"        // it was told to end
	ReasonHostRestarted       ReasonCode = "host_restarted"       // the privileged half was restarted
	ReasonHostRestored        ReasonCode = "host_restored"        // it was told to put the machine back
	ReasonNodeAway            ReasonCode = "node_away"            // the controller did not reach a node to be armed
	ReasonControllerRestarted ReasonCode = "controller_restarted" // and no node knows of the attempt
	ReasonFieldGone           ReasonCode = "field_gone"           // the rehearsal's field ended, or did not drive
	ReasonNotQuiet            ReasonCode = "not_quiet"            // the controller may have spoken over the mesh
)

// What ends an attempt before its window, or spoils it.
const (
	ReasonArmFailed       ReasonCode = "arm_failed"
	ReasonClockSlewed     ReasonCode = "clock_slewed" // the boot clock was adjusted within the window
	ReasonClockStepped    ReasonCode = "clock_stepped"
	ReasonDiskFull        ReasonCode = "disk_full" // the node could not keep its records
	ReasonEdge            ReasonCode = "edge"      // the sockets were not read at the window's edge
	ReasonFirewall        ReasonCode = "firewall"  // a node's own packet filter stopped a flow
	ReasonGenerator       ReasonCode = "generator" // an iperf3 did not live through the window
	ReasonGateTimeout     ReasonCode = "gate_timeout"
	ReasonGoFailed        ReasonCode = "go_failed"
	ReasonGoUnanswered    ReasonCode = "go_unanswered"
	ReasonMisrouted       ReasonCode = "misrouted" // packets to a flow's other end left by another interface
	ReasonNoGo            ReasonCode = "no_go"
	ReasonNoWindow        ReasonCode = "no_window"
	ReasonNodeFailed      ReasonCode = "node_failed" // it does not say why
	ReasonNotInForce      ReasonCode = "not_in_force"
	ReasonPeerNotReady    ReasonCode = "peer_not_ready"
	ReasonRadioGone       ReasonCode = "radio_gone"
	ReasonRestoreFailed   ReasonCode = "restore_failed"
	ReasonRoutingDaemon   ReasonCode = "routing_daemon"
	ReasonRoutingNotReady ReasonCode = "routing_not_ready"
	ReasonStalled         ReasonCode = "stalled" // a node stood still within the window
	ReasonStranger        ReasonCode = "stranger"
	ReasonSuperseded      ReasonCode = "superseded"
	ReasonUnrecorded      ReasonCode = "unrecorded" // a node could not record the attempt, or has no record of its end
)

// The acceptance rules by which attempts are rejected, and what people decide.
const (
	ReasonSpeed    ReasonCode = "speed"
	ReasonGPS      ReasonCode = "gps"
	ReasonClock    ReasonCode = "clock"
	ReasonLateness ReasonCode = "lateness"
	ReasonRepeat   ReasonCode = "repeat"
	ReasonSkipped  ReasonCode = "skipped"
)

// Reason is why an attempt was not accepted. In JSON it is one text, "code: on
// node: text", of which a node and a text may be absent; a text that begins with
// no code has what is before its first colon for one.
type Reason struct {
	Code ReasonCode
	Node string // on which it arose, where it is not the text's to say
	Text string
}

// ParseReason reads a reason's text. Its String is that text again.
func ParseReason(text string) Reason {
	code, rest, found := strings.Cut(text, ": ")
	if !found || code == "" || rest == "" {
		return Reason{Code: ReasonCode(text)}
	}
	r := Reason{Code: ReasonCode(code), Text: rest}
	if on, is := strings.CutPrefix(rest, "on "); is {
		node, after, more := strings.Cut(on, ": ")
		if node != "" && !strings.Contains(node, " ") && !strings.Contains(node, ",") && more == (after != "") {
			r.Node, r.Text = node, after
		}
	}
	return r
}

func (r Reason) String() string {
	var parts []string
	if r.Code != "" {
		parts = append(parts, string(r.Code))
	}
	if r.Node != "" {
		parts = append(parts, "on "+r.Node)
	}
	if r.Text != "" {
		parts = append(parts, r.Text)
	}
	return strings.Join(parts, ": ")
}

// Error makes a reason the error with which an attempt ends.
func (r Reason) Error() string { return r.String() }

// IsZero reports whether there is no reason.
func (r Reason) IsZero() bool { return r == Reason{} }

// MarshalText writes the reason as records and the API have it.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText has written.
func (r *Reason) UnmarshalText(text []byte) error {
	*r = ParseReason(string(text))
	return nil
}

// And returns the reason with what went wrong later.
func (r Reason) And(later string) Reason {
	if r.IsZero() {
		return Reason{Text: later}
	}
	r.Text = strings.TrimPrefix(r.Text+"; "+later, "; ")
	return r
}

// maxReasonRunes bounds a reason in words; it may carry a tool's last lines.
const maxReasonRunes = 2000

// Fit cuts a reason that is longer than a body may carry, as that of two hundred
// nodes which each say why they did not arm. It says what it left out.
func (r Reason) Fit() Reason {
	const sign = 40 // room for what is said of the rest
	over := r.runes() - maxReasonRunes
	if over <= 0 {
		return r
	}
	text := []rune(r.Text)
	cut := min(over+sign, len(text))
	r.Text = fmt.Sprintf("%s … (%d characters more)", string(text[:len(text)-cut]), cut)
	return r
}

func (r Reason) runes() int { return utf8.RuneCountInString(r.String()) }
