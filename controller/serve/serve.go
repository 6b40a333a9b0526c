// Package serve answers an experimenter's phone: it lists the campaigns of a
// folder, plans a choice of one, holds the fleet against it, has runs driven, and
// shows them. It drives nothing itself: a run is a process of its own, `fieldmesh
// run`, which outlives the server, and all that is known of it lies in the folder
// of runs. The bodies are protocols/campaigns'.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/internal/door"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Server serves the campaigns of a folder on one fleet.
type Server struct {
	fleet     string                      // the fleet file
	last      atomic.Pointer[fleet.Fleet] // as it could last be read
	campaigns string                      // folder of campaign files
	place     string                      // of the runs that are begun
	identity  keys.Identity
	driver    Driver
	discovery bool
	endTime   time.Duration
	log       *slog.Logger
	board     *board
	shelf     shelf
	steering  chan struct{} // held by the one call that begins, pauses, resumes or ends a run
	checking  chan struct{} // held by the one preflight
	planning  chan struct{} // held by the one plan

	mu      sync.Mutex
	offered map[string]offered // by the path of a campaign's file

	// what asks nodes
	preflight func(context.Context, *plan.Campaign, *fleet.Fleet) (preflight.Report, error)
	restore   func(context.Context, *fleet.Fleet, []string) []string
	collect   func(context.Context, *fleet.Fleet, string) []string
}

// Config is what a server is made of.
type Config struct {
	Fleet     string // the fleet file
	Campaigns string // folder of campaign files
	Runs      string // folder of runs
	Place     string // archive.PlaceRoad or PlaceBench
	Driver    Driver
	Discovery bool // whether phones find the server by multicast DNS when its address has changed
	Log       *slog.Logger
}

// New makes a server.
func New(c Config) (*Server, error) {
	fl, err := fleet.Load(c.Fleet)
	if err != nil {
		return nil, err
	}
	identity, err := fl.Identity()
	if err != nil {
		return nil, err
	}
	s := &Server{fleet: c.Fleet, campaigns: c.Campaigns, place: c.Place, identity: identity, driver: c.Driver,
		discovery: c.Discovery, endTime: endTime, log: c.Log, steering: make(chan struct{}, 1),
		checking: make(chan struct{}, 1), planning: make(chan struct{}, 1), offered: map[string]offered{},
		preflight: askFleet, restore: restoreNodes}
	s.collect = s.collectLast
	s.last.Store(fl)
	if _, err := s.files(); err != nil {
		return nil, err
	}
	s.board = newBoard(c.Runs, c.Driver, c.Log)
	s.shelf = shelf{made: map[string]string{}}
	return s, nil
}

// What a slow or silent peer can hold up.
const (
	headerTime = 5 * time.Second
	bodyTime   = 10 * time.Second
	idleTime   = 2 * time.Minute
	writeTime  = 10 * time.Second // an answer, and one more second for every 32 KiB
	stopTime   = 10 * time.Second
	workTime   = 2 * time.Minute // what a call may take; a report of a large run takes longest
)

// connections of peers with a known key that may be open at a time.
const connections = 64

// Serve answers on listener (plain TCP; TLS is put on it here) until ctx ends. Runs go on. It
// waits for a call that steers one.
func (s *Server) Serve(ctx context.Context, listener net.Listener) (err error) {
	lock, err := alone(s.board.dir)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	defer func() { s.steering <- struct{}{} }() // for good: calls that wait for it do no more
	if err := s.sweep(); err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{
		Handler:           s.handler(ctx),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { s.readAhead(ctx) })
	if s.discovery {
		beside.Go(func() { s.discover(ctx, listener.Addr()) })
	}
	closed := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		err := server.Shutdown(grace)
		if err != nil {
			err = errors.Join(fmt.Errorf("end with calls under way: %w", err), server.Close())
		}
		closed <- err
	})
	err = server.Serve(door.Listen(listener, s.tls(), headerTime, connections, s.log))
	if !stop() {
		return <-closed
	}
	return fmt.Errorf("serve on %s: %w", listener.Addr(), errors.Join(err, server.Close()))
}

// readFleet reads the fleet file. With an error it is the fleet as the file could last be read.
func (s *Server) readFleet() (*fleet.Fleet, error) {
	fl, err := fleet.Load(s.fleet)
	if err != nil {
		return s.last.Load(), err
	}
	s.last.Store(fl)
	return fl, nil
}

// tls lets in whom the fleet file names, as it is at that moment, or could last be read.
// What they may, peer says at each request; where the file cannot be read, that is an
// answer, and no alert: a phone takes an alert for its key's end.
func (s *Server) tls() *tls.Config {
	config := keys.ServerTLS(s.identity, nil)
	config.VerifyConnection = func(state tls.ConnectionState) error {
		pin, err := keys.PeerPin(state)
		if err != nil {
			return err
		}
		fl, _ := s.readFleet() // peer says what is wrong with it
		if name, _ := nameOf(fl, pin); name == "" {
			return &keys.PinError{Got: pin}
		}
		return nil
	}
	return config
}

// nameOf is who has a key in a fleet, and whether that is an experimenter's app.
func nameOf(fl *fleet.Fleet, pin string) (name string, experimenter bool) {
	for name, app := range fl.Apps {
		if app.Pin == pin {
			return name, app.Experimenter
		}
	}
	for name, node := range fl.Nodes {
		if node.Pin == pin {
			return name, false
		}
	}
	return "", false
}

// peer is the experimenter who asks. The fleet file is read at every request, so that who
// is taken out of it is refused on the connections that it still has.
func (s *Server) peer(r *http.Request) (string, error) {
	if r.TLS == nil {
		return "", wire.Errorf(wire.CodeForbidden, "the connection is not TLS")
	}
	pin, err := keys.PeerPin(*r.TLS)
	if err != nil {
		return "", wire.Errorf(wire.CodeForbidden, "%s", err)
	}
	fl, err := s.readFleet()
	name, experimenter := nameOf(fl, pin)
	switch {
	case name == "":
		return "", &wire.Error{Code: wire.CodeForbidden, Message: fmt.Sprintf("key %s is no longer authorized", pin),
			Cure: "pair the phone again"}
	case !experimenter:
		return name, &wire.Error{Code: wire.CodeForbidden,
			Message: fmt.Sprintf("app %q lacks the experimenter's role: it may not see or drive campaigns", name),
			Cure:    "revoke it and pair it again with `fieldmesh keys pair NAME --app --experimenter`"}
	case err != nil:
		return name, wire.Errorf(wire.CodeUnavailable, "the fleet file cannot be read: %s", err)
	}
	return name, nil
}
