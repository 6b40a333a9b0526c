package trial

import (
	"fmt"
	"net"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// presence ends an attempt whose radio is taken away: without this its window
// would end as one in which nothing was heard, which is a result.
type presence struct {
	iface string
	index int
	gone  func(error)
}

// watchPresence returns nil for an attempt that leaves the interface as it is.
func (a *attempt) watchPresence(radio *wire.Caps) error {
	if !isReal(radio) {
		return nil
	}
	name := a.engine.cfg.Interface
	i, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("find interface %q: %w", name, err)
	}
	a.presence = &presence{iface: name, index: i.Index, gone: a.cancel}
	return nil
}

// Name names it as a source of samples, of which it gives none.
func (p *presence) Name() string { return "presence of " + p.iface }

// Sample checks whether the very same interface is there.
func (p *presence) Sample(int64) ([]wire.Body, error) {
	if i, err := net.InterfaceByName(p.iface); err != nil || i.Index != p.index {
		const text = "%s was taken away during the attempt; plug it in again, or see why its driver went (dmesg)"
		p.gone(faultf(wire.ReasonRadioGone, text, p.iface))
	}
	return nil, nil
}
