package host

import (
	"crypto/rand"
	"os"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/internal/durable"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// byHand is what is known of restores by hand: a random word for the newest, empty for none, in a file of the state
// directory.
type byHand struct{ path, word string }

// readByHand reads it. A file that cannot be read says nothing, as one that is not there.
func readByHand(dir string) byHand {
	path := filepath.Join(dir, "restored-by-hand")
	word, _ := os.ReadFile(path)
	return byHand{path, string(word)}
}

// restoreByHand is restore for somebody at the machine. That everything was put back so is noted first: who asks for
// changes and finds them gone is to know why.
func (k *keeper) restoreByHand(scope string) (wire.RestoreReport, error) {
	if scope == ScopeTrial {
		return k.restore(scope)
	}
	k.mu.Lock()
	k.hand.word = rand.Text()
	unrecorded := durable.Replace(k.hand.path, k.hand.word)
	k.mu.Unlock()
	report, err := k.restore(scope)
	if unrecorded != nil {
		k.log.Error("restore by hand is not recorded", "error", unrecorded)
		report.Unrecorded = append(report.Unrecorded, unrecorded.Error())
	}
	return report, err
}
