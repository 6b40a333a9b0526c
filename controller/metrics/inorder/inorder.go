// Package inorder reads the attempts of an archive, several at once.
package inorder

import (
	"fmt"
	"iter"
	"runtime"
	"sync"

	"fieldmesh.dev/fieldmesh/controller/archive"
)

// Read yields what read makes of every attempt of an archive, in order. Some
// are read at once, for reading takes a processor most of its time; as many are
// held. read is called from several goroutines.
func Read[T any](a *archive.Archive, read func(archive.Attempt) (T, error)) iter.Seq2[T, error] {
	type made struct {
		what T
		err  error
	}
	return func(yield func(T, error) bool) {
		attempts, err := a.Trials()
		if err != nil {
			var none T
			yield(none, fmt.Errorf("list trials: %w", err))
			return
		}
		queue := make(chan chan made, runtime.GOMAXPROCS(0))
		over := make(chan struct{})
		var readers sync.WaitGroup
		defer readers.Wait()
		defer close(over)
		readers.Go(func() {
			defer close(queue)
			for _, e := range attempts {
				next := make(chan made, 1)
				select {
				case queue <- next:
				case <-over:
					return
				}
				readers.Go(func() {
					what, err := read(e)
					next <- made{what, err}
				})
			}
		})
		for next := range queue {
			m := <-next
			if !yield(m.what, m.err) || m.err != nil {
				return
			}
		}
	}
}
