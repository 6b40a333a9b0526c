package host

import (
	"context"
	"errors"
	"fmt"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Hold makes changes for a program that runs by itself, without a host
// process beside it: it first puts back what a former life in the same state
// directory left changed, makes the changes with their undo on disk, calls do,
// and puts everything back. Of the configuration it uses StateDir, Interfaces,
// Prefixes and Log.
func Hold(ctx context.Context, cfg Config, changes []change.Change, do func(context.Context) error) (err error) {
	own, err := take(cfg, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.release()) }()
	if _, err := own.keeper.restore(""); err != nil {
		return err
	}
	if err := own.admit(cfg); err != nil {
		return err
	}
	made, err := own.keeper.apply(ScopeRun, changes)
	if err != nil {
		return err
	}
	for _, c := range made {
		cfg.Log.Info("changed", "what", c.What)
	}
	err = do(ctx)
	var report wire.RestoreReport
	report, restoring := own.keeper.restore("")
	if restoring == nil && len(report.Failed) > 0 {
		restoring = fmt.Errorf("restore: not undone: %q", report.Failed)
	}
	return errors.Join(err, restoring)
}
