package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/terminal"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ErrNotForgotten is returned when a node cannot be reached, or no node has what is to be
// forgotten; what was written has said which.
var ErrNotForgotten = errors.New("the run was not forgotten everywhere")

// Forget has nodes drop, once they need the room, what they recorded of a run and no controller has collected, and its
// captures, photos and recordings at once.
func Forget(ctx context.Context, clients []*fleet.Client, run string, out io.Writer) error {
	said, done, errs := make([]string, len(clients)), make([]bool, len(clients)), make([]error, len(clients))
	var asked sync.WaitGroup
	for i, c := range clients {
		asked.Go(func() { said[i], done[i], errs[i] = forget(ctx, c, run) })
	}
	asked.Wait()
	for i, c := range clients {
		if errs[i] != nil {
			said[i] = errs[i].Error()
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", c.Node().Name, terminal.Text(said[i])); err != nil {
			return fmt.Errorf("print what nodes forget: %w", err)
		}
	}
	if errors.Join(errs...) != nil || !slices.Contains(done, true) {
		return ErrNotForgotten
	}
	return nil
}

func forget(ctx context.Context, c *fleet.Client, run string) (said string, done bool, err error) {
	st, err := c.Status(ctx)
	if err != nil {
		return "", false, err
	}
	// No seq: nobody has any of them. The node refuses while the run is under way there. It is asked also where it has
	// no such records: photos and recordings of the run may be left.
	if _, err := c.Confirm(ctx, wire.Confirmation{Run: run, Epoch: st.Spool.Newest.Epoch, Over: true}); err != nil {
		return "", false, err
	}
	waiting := st.Spool.UnconfirmedRuns
	if slices.Contains(waiting, run) {
		return fmt.Sprintf("drops the records of run %s when it needs the room, and its captures, photos and "+
			"recordings at once", run), true, nil
	}
	if slices.Contains(st.CaptureRuns, run) {
		return fmt.Sprintf("has dropped the captures of run %s, and its photos and recordings, if any were left", run),
			true, nil
	}
	said = fmt.Sprintf("has nothing of run %s that is not collected, unless photos and recordings were left, which it "+
		"has dropped", run)
	if len(waiting) > 0 {
		said += "; it has records of " + strings.Join(waiting, ", ")
	}
	if len(st.CaptureRuns) > 0 {
		said += "; it has captures of " + strings.Join(st.CaptureRuns, ", ")
	}
	return said, false, nil
}
