package trial

import (
	"context"
	"errors"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A kernel that does not tell keeps no trial from being made: a record says so.
func TestATrialGoesOnWithoutTheKernelsEvents(t *testing.T) {
	_, road, plan := pair(t, 1)
	road.deps.Events = func(context.Context) (measure.Events, error) { return nil, errors.New("no ring") }
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	if _, err := road.Arm(ctx, holder, plan.Run, k); err != nil {
		t.Fatal(err)
	}
	told := road.spool.kinds(k, "event")
	if len(told) != 1 || !strings.Contains(told[0].Body.(*wire.Event).Text, "told from samples: no ring") {
		t.Errorf("told %+v", told)
	}
	if _, err := road.Abort(ctx, plan.Run, wire.AbortRequest{TrialKey: k, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	await(t, "kept", func() bool { return road.kept(k) })
}
