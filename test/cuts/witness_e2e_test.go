//go:build e2e

package cuts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/spool"
)

// witness keeps every segment of the nodes' spools by a link of its own, so
// that what they have made durable can be read when they are long gone.
type witness struct {
	dir  string
	stop chan struct{}
	done sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

// watch begins to look at the spools; see witness.records.
func watch(t *testing.T, dir string, spools map[string]string) *witness {
	t.Helper()
	w := &witness{dir: dir, stop: make(chan struct{})}
	w.done.Go(func() {
		for {
			for node, folder := range spools {
				if err := w.look(node, folder); err != nil {
					w.mu.Lock()
					w.errs = append(w.errs, err)
					w.mu.Unlock()
				}
			}
			select {
			case <-w.stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	t.Cleanup(w.end)
	return w
}

func (w *witness) end() {
	w.mu.Lock()
	select {
	case <-w.stop:
	default:
		close(w.stop)
	}
	w.mu.Unlock()
	w.done.Wait()
}

// look links what is new. A spool that is being taken away is none.
func (w *witness) look(node, folder string) error {
	epoch, err := os.ReadFile(filepath.Join(folder, "epoch"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	copied := filepath.Join(w.dir, node, strings.TrimSpace(string(epoch)))
	if err := os.MkdirAll(copied, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(copied, "epoch"), epoch, 0o600); err != nil {
		return err
	}
	segments, err := filepath.Glob(filepath.Join(folder, "*.seg"))
	if err != nil {
		return err
	}
	for _, s := range segments {
		err := os.Link(s, filepath.Join(copied, filepath.Base(s)))
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// records are the lines that the nodes have made durable, node by node.
func (w *witness) records(t *testing.T) map[string][][]byte {
	t.Helper()
	w.end()
	if err := errors.Join(w.errs...); err != nil {
		t.Errorf("watch the spools: %v", err)
	}
	out := map[string][][]byte{}
	for _, node := range nodes {
		epochs, err := os.ReadDir(filepath.Join(w.dir, node))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range epochs {
			lines, err := spooled(filepath.Join(w.dir, node, e.Name()), node)
			if err != nil {
				t.Fatal(err)
			}
			out[node] = append(out[node], lines...)
		}
	}
	return out
}

func spooled(dir, node string) (lines [][]byte, err error) {
	s, err := spool.Open(dir, node, spool.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for after := uint64(0); ; {
		some, last, err := s.Read(after, 10000)
		if err != nil || len(some) == 0 {
			return lines, err
		}
		lines, after = append(lines, some...), last
	}
}
