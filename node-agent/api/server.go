// Package api is the agent's face to the network: HTTP + JSON over mutual
// TLS 1.3, as protocols/wire/openapi.yaml describes it. It checks who asks,
// what is asked and how much of it, and hands a valid request to the node. It
// decides nothing about trials, and changes nothing on the machine.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"fieldmesh.dev/fieldmesh/internal/door"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Peer is who asks, by its pinned key.
type Peer struct{ Name, Role, Pin string }

// Node is what the API steers. An error of type *wire.Error reaches the peer
// as it is, with the HTTP status of its code; any other is a fault of ours.
type Node interface {
	Status(ctx context.Context) (wire.NodeStatus, error)
	// Scan has the radio listen on a channel; what it heard is in Status.
	Scan(ctx context.Context, channel int) error
	// TryGenerator has the traffic generator send to itself; what was wrong is in Status.
	TryGenerator(ctx context.Context) error
	// InTheWay reports what will lead packets to peers elsewhere than to the interface
	// under test, where the node's own address in the mesh is to be.
	InTheWay(own netip.Prefix, peers []netip.Addr) []wire.Problem
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
	// Forget calls drop, which lets what was recorded of a run go, unless that run is under way.
	Forget(run string, drop func() error) error
	// Capture gives at most limit bytes of an attempt's packet capture from an offset on, and the capture's size.
	Capture(run string, k wire.TrialKey, offset int64, limit int) (data []byte, size int64, err error)
	People
}

// People is what an app asks of a node and tells it, and which apps there are.
type People interface {
	Schedule(run string) (wire.Schedule, error)
	PushFix(p Peer, f wire.Fix) (wire.GPS, error)
	PushWiFi(p Peer, w wire.WiFiReading) (wire.WiFi, error)
	Note(ctx context.Context, p Peer, n wire.Note) (wire.SpoolPosition, error)
	// LetIn replaces the apps that are let in.
	LetIn(p Peer, apps wire.Apps) (wire.Apps, error)
	Attachments
}

// Records is the node's spool, read by offset.
type Records interface {
	Position() wire.SpoolPosition
	Status() wire.SpoolStatus
	// Read returns up to limit durable records after a sequence number, one JSON object each without newline, and the
	// last one's number.
	Read(after uint64, limit int) (lines [][]byte, last uint64, err error)
	// Wait returns when a record after the given one is durable, or ctx ends.
	Wait(ctx context.Context, after uint64) error
	// Confirm lets records go that are in an archive.
	Confirm(c wire.Confirmation) error
}

// Server serves one node's API.
type Server struct {
	identity   keys.Identity
	authorized *keys.Authorized
	node       Node
	records    Records
	log        *slog.Logger
	routes     []route
	times      times
}

// times bound what a slow or silent peer can hold up.
type times struct {
	header   time.Duration // handshake, and each request's header
	body     time.Duration // a body
	planBody time.Duration // a body of planLimit: 24 MiB at 3 Mbit/s
	idle     time.Duration // a kept connection without a request
	work     time.Duration // what a call may take; restoring a node is the longest but for arming
	arm      time.Duration // what arming may take, which waits for routing and for a car that comes back
	write    time.Duration // an answer, and one more second for every 32 KiB
	shutdown time.Duration // calls under way when the server ends
}

func usualTimes() times {
	return times{header: 5 * time.Second, body: 10 * time.Second, planBody: 70 * time.Second, idle: 2 * time.Minute,
		work: time.Minute, arm: time.Minute + (wire.ReturnS+2*wire.RoutingReadyMaxS)*time.Second,
		write: 10 * time.Second, shutdown: 15 * time.Second}
}

// maxConnections, of peers with a known key, is far above a controller, an app and
// the other nodes.
const maxConnections = 128

// New returns a server that lets in the peers of authorized, and nobody else.
func New(identity keys.Identity, authorized *keys.Authorized, node Node, records Records, log *slog.Logger) *Server {
	return &Server{identity: identity, authorized: authorized, node: node, records: records, log: log, routes: routes(),
		times: usualTimes()}
}

// Serve answers on listener (plain TCP; TLS is put on it here) until ctx ends,
// and then closes it, ends the long polls and waits for the calls under way.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.handler(ctx),
		ReadHeaderTimeout: s.times.header,
		IdleTimeout:       s.times.idle,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	closed := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), s.times.shutdown)
		defer cancel()
		err := server.Shutdown(grace)
		if err != nil {
			err = errors.Join(fmt.Errorf("end API with calls under way: %w", err), server.Close())
		}
		closed <- err
	})
	err := server.Serve(door.Listen(listener, keys.ServerTLS(s.identity, s.authorized), s.times.header, maxConnections,
		s.log))
	if !stop() {
		return <-closed
	}
	return fmt.Errorf("serve API on %s: %w", listener.Addr(), errors.Join(err, server.Close()))
}
