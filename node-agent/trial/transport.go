package trial

import (
	"fmt"
	"net/netip"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
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

// transportChanges makes a profile. The congestion control comes when what it
// needs is there, so that it is the first to go; the route comes last, as
// nothing else depends on it.
func transportChanges(p tcp.Profile, own netip.Prefix, iface string) []change.Change {
	var out []change.Change
	for _, s := range p.Settings {
		out = append(out, change.Sysctl{Key: s.Key, Value: s.Value})
	}
	if p.Program != "" {
		out = append(out, change.BPFCongestion{Program: p.Program})
	}
	if p.HoldRTO {
		out = append(out, change.HeldRTO{Peers: own.Masked(), Reference: p.Reference})
	}
	if p.Window != nil {
		out = append(out, change.WindowClamp{Peers: own.Masked(), Segments: *p.Window})
	}
	out = append(out, change.Sysctl{Key: "net.ipv4.tcp_congestion_control", Value: p.Kernel})
	if p.Immediate {
		// In place of the kernel's own route to the tested network: what comes
		// from there is acknowledged by the route back.
		source := own.Addr()
		out = append(out, change.Route{Destination: own.Masked(), Interface: iface, Source: &source, QuickAck: true})
	}
	return out
}
