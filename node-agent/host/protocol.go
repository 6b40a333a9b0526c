package host

import (
	"fmt"
	"os"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// One request and one answer a line, each a JSON object with exactly one
// member set.

const (
	maxRequestBytes = 256 << 10
	maxAnswerBytes  = 4 << 20
	maxChanges      = 256 // in one call
)

type request struct {
	Apply     *applyCall   `json:"apply,omitempty"`
	Restore   *restoreCall `json:"restore,omitempty"`
	Status    *struct{}    `json:"status,omitempty"`
	Keepalive *struct{}    `json:"keepalive,omitempty"`
	Packets   *Packets     `json:"packets,omitempty"`
	TCPEvents *struct{}    `json:"tcp_events,omitempty"`
	Scan      *scanCall    `json:"scan,omitempty"`
	Sever     *Sever       `json:"sever,omitempty"`
	WiFi      *WiFi        `json:"wifi,omitempty"`
}

type applyCall struct {
	Scope   string         `json:"scope"`
	Changes []change.Boxed `json:"changes"`
}

func (a *applyCall) changes() []change.Change {
	var out []change.Change
	for _, b := range a.Changes {
		out = append(out, b.Change)
	}
	return out
}

type restoreCall struct {
	Scope string `json:"scope"` // trial, or run and "" for everything
}

type scanCall struct {
	Interface string `json:"interface"`
	Channel   int    `json:"channel"`
}

type answer struct {
	Applied  []wire.HostChange   `json:"applied,omitempty"`
	Restored *wire.RestoreReport `json:"restored,omitempty"`
	Status   *wire.HostStatus    `json:"status,omitempty"`
	Packets  *PacketFilter       `json:"packets,omitempty"`
	Severed  *flows.Severed      `json:"severed,omitempty"`
	Radio    *wire.Caps          `json:"radio,omitempty"`
	Ring     *struct{}           `json:"ring,omitempty"` // of events, in the file
	Refused  *change.Refused     `json:"refused,omitempty"`
	Error    string              `json:"error,omitempty"`
	Reach    bool                `json:"reach,omitempty"` // the error may come from being out of reach

	file *os.File // goes beside the line, as a descriptor
}

// decodeRequest reads one line; everything that is not a typed call is an
// error.
func decodeRequest(line []byte) (request, error) {
	var r request
	if err := change.DecodeStrict(line, &r); err != nil {
		return request{}, fmt.Errorf("decode request: %w", err)
	}
	calls := 0
	for _, set := range []bool{r.Apply != nil, r.Restore != nil, r.Status != nil, r.Keepalive != nil,
		r.Packets != nil, r.TCPEvents != nil, r.Scan != nil, r.Sever != nil, r.WiFi != nil} {
		if set {
			calls++
		}
	}
	if calls != 1 {
		return request{}, fmt.Errorf("decode request: %d calls in one, there must be exactly 1", calls)
	}
	if r.Apply != nil && len(r.Apply.Changes) > maxChanges {
		return request{}, fmt.Errorf("decode request: %d changes, at most %d go into one call", len(r.Apply.Changes),
			maxChanges)
	}
	return r, nil
}
