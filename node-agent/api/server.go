// Package api is the agent's face to the network: HTTP + JSON over mutual
// TLS 1.3, as protocols/wire/openapi.yaml describes it. It checks who asks,
// what is asked and how much of it, and hands a valid request to the node. It
// decides nothing about trials, and changes nothing on the machine.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"fieldmesh.dev/fieldmesh/protocols/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Peer is who asks, by its pinned key.
type Peer struct{ Name, Role string }

// Node is what the API steers. An error of type *wire.Error reaches the peer
// as it is, with the HTTP status of its code; any other is a fault of ours.
type Node interface {
	Status(ctx context.Context) (wire.NodeStatus, error)
	Clock() wire.ClockReply
	Lease(ctx context.Context, p Peer, l wire.Lease) (wire.Lease, error)
	Load(ctx context.Context, p Peer, plan wire.RunPlan) (wire.CampaignView, error)
	// View blocks until the run's version is not known or ctx ends, and then returns the present view.
	View(ctx context.Context, run string, known uint64) (wire.CampaignView, error)
	Arm(ctx context.Context, p Peer, run string, k wire.TrialKey) (wire.CampaignView, error)
	Abort(ctx context.Context, run string, r wire.AbortRequest) (wire.CampaignView, error)
	Verdicts(ctx context.Context, p Peer, run string, v []wire.Verdict) (wire.CampaignView, error)
	End(ctx context.Context, p Peer, run string) (wire.RestoreReport, error)
	Restore(ctx context.Context) (wire.RestoreReport, error)
}

// Records is the node's spool, read by offset.
type Records interface {
	Position() wire.SpoolPosition
	Status() wire.SpoolStatus
	// Read returns up to limit durable records after a sequence number, one JSON object each without newline, and the last one's number.
	Read(after uint64, limit int) (lines [][]byte, last uint64, err error)
	// Wait returns when a record after the given one is durable, or ctx ends.
	Wait(ctx context.Context, after uint64) error
	Confirm(seq uint64) error
}

// Server serves one node's API.
type Server struct {
	identity   keys.Identity
	authorized *keys.Authorized
	node       Node
	records    Records
	log        *slog.Logger
}

// New returns a server that lets in the peers of authorized, and nobody else.
func New(identity keys.Identity, authorized *keys.Authorized, node Node, records Records, log *slog.Logger) *Server {
	return &Server{identity: identity, authorized: authorized, node: node, records: records, log: log}
}

// Serve answers on listener (plain TCP; TLS is put on it here) until ctx ends,
// and then closes it, ends the long polls and waits for the calls under way.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	return errors.New("serve API: not built yet")
}
