package engine

import (
	"time"

	"fieldmesh.dev/fieldmesh/controller/stopping"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Action is something to be done. Its answer bears its ID.
type Action struct {
	ID     uint64
	Worker int    // -1: it is the run's
	Node   string // "": it is none's
	Op     Op
}

// Op is what is to be done; one of the types below.
type Op interface{ op() }

// Calls of a node. Those that say so take the lease first.
type (
	// Load gives the node the plan, with the lease in hand. Where the archive is
	// still empty, it notes from where on the node's records are this run's.
	Load struct{}
	// View asks how the run stands on the node. With Leased set, it takes the
	// lease first, and gives a node without the plan the plan again. Until Wait is
	// over the node may hold the answer while the version is Known.
	View struct {
		Leased bool
		Known  uint64
		Wait   time.Duration
	}
	// Renew renews the lease.
	Renew struct{ TTL time.Duration }
	// Release gives the lease up.
	Release struct{}
	// Arm arms for an attempt.
	Arm struct {
		Key    wire.TrialKey
		Within time.Duration
	}
	// Abort ends an attempt.
	Abort struct{ Request wire.AbortRequest }
	// Tell gives the node final verdicts.
	Tell struct{ Verdicts []wire.Verdict }
	// End tells the node, with the lease in hand, that the run is over.
	End struct{}
	// Drain waits until the archive has the node's records up to a position.
	Drain struct{ Position wire.SpoolPosition }
)

// What a worker's field and the controller do.
type (
	// Collect begins to copy the records of the worker's nodes to the archive.
	Collect struct{}
	// Place brings the car to its start.
	Place struct {
		Trial   wire.Trial
		Attempt int
	}
	// Drive lets the car set off.
	Drive struct{}
	// Clocks compares the clocks of the trial's nodes, and records the result.
	Clocks struct {
		Trial wire.Trial
		Key   wire.TrialKey
	}
	// Settle ends the drive, and records what only the field knows of the window.
	Settle struct {
		Trial           wire.Trial
		Key             wire.TrialKey
		OpenNs, CloseNs int64
	}
	// Captures fetches the packet captures of an attempt.
	Captures struct{ Key wire.TrialKey }
	// Judge judges an attempt by its records in the archive. It answers with
	// Verdict and Vouched.
	Judge struct {
		Trial wire.Trial
		Key   wire.TrialKey
	}
	// Quiet holds back for a time whatever sends packets to the worker's nodes. It answers when none is under way.
	Quiet struct{ For time.Duration }
	// Show is a step of the run, for a person to see.
	Show struct {
		Trial   *wire.Trial
		Attempt int
		Phase   string
		Detail  string
		Live    *wire.Live
		Verdict *wire.Verdict
	}
	// Log reports a mishap that does not end the run.
	Log struct {
		Doing string
		Key   wire.TrialKey
		Err   error
	}
	// Fail ends the run: it cannot go on.
	Fail struct {
		Doing string
		Err   error
	}
	// Finished says that nothing is left to do.
	Finished struct{}
)

// What the archive keeps and knows.
type (
	// Decide makes a final verdict durable.
	Decide struct{ Verdict wire.Verdict }
	// Note writes a note to the journal.
	Note struct {
		Text   string
		NoteID string // of the person's note that it answers
	}
	// Seal closes an attempt that is decided.
	Seal struct{ Key wire.TrialKey }
	// Stop makes durable that no further block is to be driven.
	Stop struct {
		Blocks int
		Look   stopping.Look
		Last   bool // the plan has no further block, and the precision is not reached
	}
	// Measure reads what an accepted attempt measured. It answers with Mbps.
	Measure struct {
		Trial wire.Trial
		Key   wire.TrialKey
	}
	// ReadAttempts lists the attempts that the archive has records of. It answers
	// with Attempts.
	ReadAttempts struct{}
	// WriteOff records that a node ended an attempt without a record of it.
	WriteOff struct {
		Key   wire.TrialKey
		Node  string
		State wire.TrialState
	}
)

func (Load) op()         {}
func (View) op()         {}
func (Renew) op()        {}
func (Release) op()      {}
func (Arm) op()          {}
func (Abort) op()        {}
func (Tell) op()         {}
func (End) op()          {}
func (Drain) op()        {}
func (Collect) op()      {}
func (Place) op()        {}
func (Drive) op()        {}
func (Clocks) op()       {}
func (Settle) op()       {}
func (Captures) op()     {}
func (Judge) op()        {}
func (Quiet) op()        {}
func (Show) op()         {}
func (Log) op()          {}
func (Fail) op()         {}
func (Finished) op()     {}
func (Decide) op()       {}
func (Note) op()         {}
func (Seal) op()         {}
func (Stop) op()         {}
func (Measure) op()      {}
func (ReadAttempts) op() {}
func (WriteOff) op()     {}

// Event is what an engine is told; one of the types below.
type Event interface{ apply(*Engine) }

// Begin begins the run.
type Begin struct{}

func (Begin) apply(e *Engine) {
	e.do(everybody, "", ReadAttempts{}, func(a Answer) {
		if a.Fault != nil {
			e.fail(everybody, "", a.Fault.Err)
			return
		}
		e.recall(a.Attempts)
		for _, w := range e.workers {
			w.open()
		}
	})
}

// Leave ends the run before its end. What people have decided is still kept: a
// resumed run goes by it.
type Leave struct{}

func (Leave) apply(e *Engine) { e.leaving = true }

// Tick says that the time has come for what Next named.
type Tick struct{}

func (Tick) apply(*Engine) {}

// Answer is what came of an action; which fields are set depends on its Op.
type Answer struct {
	ID       uint64
	Fault    *Fault // nil: it is done
	View     wire.CampaignView
	Held     bool // the archive has all records up to the view's position
	Verdict  wire.Verdict
	Vouched  bool // the emulated medium has said how late it was
	Mbps     *float64
	Attempts []Attempt
}

func (a Answer) apply(e *Engine) {
	then := e.pending[a.ID]
	delete(e.pending, a.ID)
	if then != nil {
		then(a)
	}
}

// Attempt is one that the archive has records of.
type Attempt struct {
	wire.TrialKey
	Sealed bool
}

// Fault is why an action failed. Code is that of a node which refused; it is
// empty where the node was not reached.
type Fault struct {
	Code    string
	Timeout bool
	Node    string // that could not be armed
	Err     error
}

// Passes reports whether an action that failed may succeed a little later.
func (f Fault) Passes() bool {
	switch f.Code {
	case "", wire.CodeLeaseNeeded, wire.CodeHost, wire.CodeStopping: // the agent's halves are started again one by one
		return true
	}
	return false
}

// Kept says that the archive has a node's record of how it ended an attempt.
type Kept struct {
	Worker int
	Node   string
	Key    wire.TrialKey
	State  wire.TrialState
}

func (k Kept) apply(e *Engine) { e.workers[k.Worker].keep(k.Node, k.Key, k.State) }

// Opened says that the archive has a node's record of an attempt's window.
type Opened struct {
	Worker int
	Node   string
	Key    wire.TrialKey
	Window wire.Window
}

func (o Opened) apply(e *Engine) {
	w := e.workers[o.Worker]
	put(w.windows, o.Key, o.Node, o.Window)
	w.check()
}

// Behind says why a node's records do not get into the archive; with a nil error
// they do again.
type Behind struct {
	Worker int
	Node   string
	Err    error
}

func (b Behind) apply(e *Engine) {
	w := e.workers[b.Worker]
	was := w.late[b.Node]
	w.late[b.Node] = b.Err
	if (was == nil) != (b.Err == nil) {
		w.check()
	}
}

// Said is a person's decision about an attempt, or, with no attempt, a trial.
type Said struct {
	Key   wire.TrialKey
	Noted wire.Noted
}

func (s Said) apply(e *Engine) {
	if s.Noted.Note != "mark" { // which is a record like others
		e.overrides = append(e.overrides, s)
	}
}
