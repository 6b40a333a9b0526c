package trial

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/node-agent/tcp"
)

// resolveTransport works the trial's transport profile out for this machine,
// which has none where no TCP flow ends: a relay's settings stay as they are.
func (a *attempt) resolveTransport() error {
	if !a.trial.EndsTCP(a.engine.cfg.Node) {
		return nil
	}
	var m tcp.Machine
	if here := a.engine.deps.Transport; here != nil {
		var err error
		if m, err = here(); err != nil {
			return err
		}
	}
	var err error
	if a.transport, err = tcp.Resolve(a.trial.TCP, m); err != nil {
		return fmt.Errorf("transport: %w", err)
	}
	return nil
}
