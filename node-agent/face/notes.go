package face

import (
	"slices"
	"sync"
)

const (
	// keptNotes is how many notes are remembered, so that one that is sent again
	// makes no second record: far more than a person makes while an answer is lost.
	keptNotes = 1000
	// notesAtOnce is how many notes a peer may send at once: those of a day on which the
	// phone did not reach the node.
	notesAtOnce = 1000
	// notesPerS is how many it may send in the long run. A person makes fewer, and an hour
	// of them takes 2 MB of the spool.
	notesPerS = 1
)

// notes are the ids of the notes that have become records in this process's life, and
// what each peer may still send.
type notes struct {
	mu    sync.Mutex
	ids   []string
	peers map[string]allowance // the peers are few: each is let in by its key
}

// allowance is how many notes a peer could send at an instant of the boot clock.
type allowance struct {
	notes float64
	atNs  int64
}

func (n *notes) isNew(id string) bool { return !slices.Contains(n.ids, id) }

func (n *notes) remember(id string) {
	n.ids = append(n.ids, id)
	n.ids = n.ids[max(0, len(n.ids)-keptNotes):]
}

// mayNote counts a peer's note and reports whether it may become a record.
func (n *notes) mayNote(peer string, nowNs int64) bool {
	a, known := n.peers[peer]
	if !known {
		a = allowance{notesAtOnce, nowNs}
	}
	a.notes = min(notesAtOnce, a.notes+float64(nowNs-a.atNs)/1e9*notesPerS)
	a.atNs = nowNs
	may := a.notes >= 1
	if may {
		a.notes--
	}
	if n.peers == nil {
		n.peers = map[string]allowance{}
	}
	n.peers[peer] = a
	return may
}
