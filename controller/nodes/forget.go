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

// Forget has nodes drop, once they need the room, what they recorded of a run and no controller has collected.
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
	if waiting := st.Spool.UnconfirmedRuns; !slices.Contains(waiting, run) {
		said = fmt.Sprintf("has nothing of run %s that is not collected", run)
		if len(waiting) > 0 {
			said += ", but of " + strings.Join(waiting, ", ")
		}
		return said, false, nil
	}
	if st.Run == run {
		if err := driven(ctx, c, run); err != nil {
			return "", false, err
		}
	}
	_, err = c.Confirm(ctx, wire.Confirmation{Run: run, Epoch: st.Spool.Newest.Epoch, Seq: st.Spool.Newest.Seq,
		Over: true})
	return fmt.Sprintf("drops the records of run %s when it needs the room", run), err == nil, err
}

// driven refuses a run that is under way at a node: its controller has yet to collect what it records.
func driven(ctx context.Context, c *fleet.Client, run string) error {
	cure := fmt.Sprintf("wait for its end; or stop its controller, then `fieldmesh nodes restore %s`", c.Node().Name)
	// To give a lease up that one does not have changes nothing; it is refused when another has one.
	_, err := c.Lease(ctx, wire.Lease{Holder: "fieldmesh nodes forget"})
	if answer, ok := errors.AsType[*wire.Error](err); ok && answer.Code == wire.CodeLeaseHeld {
		return fmt.Errorf("run %s is under way: %s; %s", run, answer.Message, cure)
	}
	if err != nil {
		return err
	}
	v, err := c.View(ctx, run, 0, 0)
	if err == nil && v.Current != nil && v.State != wire.StateKept {
		return fmt.Errorf("run %s is under way: trial %d, attempt %d is %s; %s", run, v.Current.Trial,
			v.Current.Attempt, v.State, cure)
	}
	return err
}
