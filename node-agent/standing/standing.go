// Package standing takes the host process's place on a node without root. It changes
// nothing: a change is in force when the network that stands has it already, and is refused
// otherwise, with what a person can do. It reads only what any user may.
package standing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/node-agent/capture/ring"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Host answers as the host process does (host.Client).
type Host struct {
	mu    sync.Mutex
	found map[string][]change.Change // by scope: those that were found in force
}

// New makes one.
func New() *Host { return &Host{found: map[string][]change.Change{}} }

// without says why something is not done.
const (
	without = "only root can do that, and this agent runs without (privileges: none)"
	asRoot  = "run the agent there as root (privileges: root)"
)

// Refuse says that something is not done without root.
func Refuse(what string) *change.Refused { return refuse(what, without, asRoot+", or plan without it") }

func refuse(what, reason, cure string) *change.Refused {
	return &change.Refused{Change: what, Reason: reason, Cure: cure}
}

// Apply refuses the first change that is not in force; it makes none.
func (h *Host) Apply(_ context.Context, scope string, changes []change.Change) ([]wire.HostChange, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range changes {
		if refused := Stands(c); refused != nil {
			return nil, refused
		}
		h.found[scope] = append(h.found[scope], c)
	}
	return nil, nil
}

// Restore has nothing to put back.
func (h *Host) Restore(_ context.Context, scope string) (wire.RestoreReport, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if scope == host.ScopeTrial {
		delete(h.found, scope)
	} else {
		clear(h.found)
	}
	return wire.RestoreReport{Undone: []string{}, Failed: []string{}}, nil
}

// Status tells what was found in force and still is, and what of TCP can be had.
func (h *Host) Status(context.Context) (wire.HostStatus, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := wire.HostStatus{Reached: true, TCP: Abilities(), Pending: []string{}}
	for _, c := range slices.Concat(h.found[host.ScopeRun], h.found[host.ScopeTrial]) {
		if Stands(c) == nil {
			st.Pending = append(st.Pending, c.String())
		}
	}
	return st, nil
}

// Keepalive has no timer to wind up.
func (*Host) Keepalive(context.Context) error { return nil }

// Scan is refused: the radio is left as it is.
func (*Host) Scan(_ context.Context, device string, channel int) error {
	return Refuse(fmt.Sprintf("a scan of channel %d by %s", channel, device))
}

// Packets is refused.
func (*Host) Packets(_ context.Context, p host.Packets) (*ring.Reader, host.PacketFilter, error) {
	return nil, host.PacketFilter{}, Refuse("a capture on " + p.Interface)
}

// TCPEvents is refused.
func (*Host) TCPEvents(context.Context) (*tcp.EventReader, error) {
	return nil, Refuse("events of TCP")
}

// WiFi is refused.
func (*Host) WiFi(_ context.Context, w host.WiFi) (wire.Caps, error) {
	return wire.Caps{}, Refuse("Android's Wi-Fi on " + w.Interface)
}

// drains is how long what a flow in reverse has left at its server may take to reach the client.
const drains = 2 * time.Second

// Sever counts what an attempt has left, where the kernel lists it, and waits a little until
// there is nothing. It destroys nothing: iperf3's sockets end with it (node-agent/traffic).
func (*Host) Sever(ctx context.Context, s host.Sever) (out flows.Severed, _ error) {
	n, err := flows.Left(s.Own, s.Flows)
	for end := time.Now().Add(drains); n > 0 && err == nil && time.Now().Before(end); {
		if err := pause.For(ctx, 50*time.Millisecond); err != nil {
			return out, err
		}
		n, err = flows.Left(s.Own, s.Flows)
	}
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EPROTONOSUPPORT): // as measure.Lists has it
	case err != nil:
		out.Error = err.Error()
	case n > 0:
		out.Error = fmt.Sprintf("%d sockets still send, and only root can destroy them", n)
	}
	return out, nil
}

// Stands returns why a change is not in force and cannot be made; nil: it is, or the trial
// is right without it.
func Stands(c change.Change) *change.Refused {
	switch c := c.(type) {
	case change.Address:
		bits, has := link.Has(c.Interface, c.Prefix.Addr())
		if has && bits == c.Prefix.Bits() {
			return nil
		}
		found := c.Interface + " does not have it"
		if has {
			found = fmt.Sprintf("%s has %s/%d", c.Interface, c.Prefix.Addr(), bits)
		}
		return refuse(c.String(), found+", and this agent sets none (privileges: none)", fmt.Sprintf("give %s that "+
			"address by hand, or write the one that it has into the campaign (`mesh_address`); or %s", c.Interface,
			asRoot))
	case change.Link:
		if flags, err := link.Flags(c.Interface); err == nil && flags&net.FlagUp != 0 && c.MTUBytes == nil {
			return nil
		}
		return refuse(c.String(), "it is not, and this agent sets no interface (privileges: none)",
			fmt.Sprintf("join the network with %s by hand; or %s", c.Interface, asRoot))
	case change.Rule:
		return nil // the way itself is read back
	case change.TCPMetrics:
		return nil // as of left
	case change.Sysctl:
		return sysctlStands(c)
	}
	return Refuse(c.String())
}

// left are settings that make trials alike, without which they are still what they say: the
// records tell what was in force.
var left = []string{"net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_retries2", "net.ipv4.tcp_syn_retries"}

func sysctlStands(c change.Sysctl) *change.Refused {
	switch {
	case slices.Contains(left, c.Key), strings.HasSuffix(c.Key, ".disable_ipv6"):
		return nil
	case c.Key == "net.ipv4.tcp_congestion_control":
		if err := choose(c.Value); err != nil { // iperf3 chooses it for its own sockets
			return refuse("congestion control "+c.Value, err.Error(), "plan one of "+strings.Join(Offered(), ", ")+
				"; or "+asRoot)
		}
		return nil
	}
	now, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(c.Key, ".", "/"))
	switch is := strings.TrimSpace(string(now)); {
	case err != nil:
		return refuse(c.String(), "what it is cannot be read, and only root can set it", asRoot+", or plan without it")
	case is != c.Value:
		return refuse(c.String(), "it is "+is+", and only root can set it", asRoot+", or plan without it")
	}
	return nil
}
