package change

import (
	"fmt"
	"net/netip"

	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
)

// ControlPort has the kernel drop, and count, what comes to the agent's TCP port
// by the interface under test, or to the node's address on the mesh: a plan
// whose controller has a link of its own leaves no door open on the air.
type ControlPort struct {
	Interface string     `json:"interface"`
	Own       netip.Addr `json:"own"` // this node's address on the mesh
	Port      int        `json:"port"`
}

func (c ControlPort) Target() string { return "control port" }
func (c ControlPort) String() string {
	return fmt.Sprintf("control port %d closed on %s and at %s", c.Port, c.Interface, c.Own)
}

func (c ControlPort) check(p Policy) (reason, cure string) {
	if reason, cure = p.CheckInterface(c.Interface); reason != "" {
		return reason, cure
	}
	if reason, cure = p.checkEnd("own address", c.Own); reason != "" {
		return reason, cure
	}
	if c.Port == 0 || c.Port != p.ControlPort {
		return fmt.Sprintf("port %d is not the one that the agent listens on", c.Port), ""
	}
	return "", ""
}

// prepare tries whether the kernel has tables for IPv4 and IPv6 in one
// (NF_TABLES_INET): where it has not, the undo would fail too.
func (c ControlPort) prepare(*Kernel, uint64) (*controlPortUndo, error) {
	u := &controlPortUndo{}
	u.ControlPort.Table = flows.ControlTable
	if err := flows.TakeOut(u.ControlPort.Table); err != nil {
		return nil, noTables(err)
	}
	return u, nil
}

func (c ControlPort) apply(*Kernel, *controlPortUndo) error {
	return flows.CloseControl(c.Interface, c.Own, c.Port)
}

// controlPortUndo takes the table out.
type controlPortUndo struct {
	placed
	ControlPort struct {
		Table string `json:"table"`
	} `json:"control_port"`
}

func (*controlPortUndo) void(*Kernel) bool { return false }

func (u *controlPortUndo) revert(*Kernel) (string, error) {
	return "", flows.TakeOut(u.ControlPort.Table)
}
