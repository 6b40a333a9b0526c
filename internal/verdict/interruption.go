package verdict

import "strings"

// InterruptionsMax bounds how many interrupted attempts a trial may have: an
// agent that crashes at every attempt must not be driven for ever. A person who
// has a trial that was given up driven again starts the count anew.
const InterruptionsMax = 20

// Code is the first word of a reason: records and verdicts give reasons as
// "code: text". Whoever decides by a reason decides by its code.
type Code string

// CodeOf returns the code of a reason.
func CodeOf(reason string) Code {
	code, _, _ := strings.Cut(reason, ": ")
	return Code(code)
}

// Everything that interrupts an attempt. Whatever else ends one is of the trial
// and counts: what a node measured, and what became of its traffic, its routing,
// its radio, its clock and its disk.
const (
	Aborted             Code = "aborted"              // a person, or a controller that came back, ended it
	AgentRestarted      Code = "agent_restarted"      // the unprivileged half ended, and was started anew
	AgentStopped        Code = "agent_stopped"        // it was told to end
	HostRestarted       Code = "host_restarted"       // the privileged half was started anew
	HostRestored        Code = "host_restored"        // it was told to put the machine back
	NodeAway            Code = "node_away"            // the controller did not reach a node that it was to arm
	ControllerRestarted Code = "controller_restarted" // and no node knows of the attempt
	FieldGone           Code = "field_gone"           // the rehearsal's field ended
)

// Interruption is the error with which an attempt ends from outside. It says
// nothing of the trial: the attempt is Interrupted, and the trial has as many
// attempts left as before.
type Interruption struct {
	Code Code
	Text string
}

// Error gives the reason in the form of all reasons: a word, then free text.
func (i Interruption) Error() string { return string(i.Code) + ": " + i.Text }
