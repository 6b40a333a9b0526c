// Package pairing offers a place in the fleet to whoever was given a one-time code.
// It listens for as long as the code is good, answers one, and ends. What happens to
// the key that came is its caller's; the messages are protocols/pairing's.
package pairing

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/door"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/pairing"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// logEvery is how often a refusal is logged, and a handshake that failed, so that whoever tries codes is seen and
// does not fill the log. Nothing else limits them: the secret has 128 bits, and a
// limit would let anybody in the network keep the right one out.
const logEvery = time.Second

// lookEvery is how often it is asked whether the code's time is over.
const lookEvery = time.Second

// What a slow or silent peer can hold up.
const (
	headerTime = 5 * time.Second
	bodyTime   = 5 * time.Second
	writeTime  = 10 * time.Second
	stopTime   = 10 * time.Second
)

// strangers is how many of who has not shown the code may be connected at a time. Who has shown it keeps its place, and
// one more of the others takes the place of one of them: no number of them keeps the right one out.
const strangers = 64

// ErrExpired says that nobody came in time.
var ErrExpired = errors.New("the code has expired, and nobody used it; `fieldmesh keys pair` makes another")

// Newcomer is who has shown to have the code.
type Newcomer struct {
	Name   string
	Role   string
	Pin    string
	Remote string // the IP address that it came from
	Port   string // a node's: the port of its API
	Host   string // a node's: the host of its API where it says one
}

// Offer is one code and whom it is for.
type Offer struct {
	Code     pairing.Code
	Identity keys.Identity // the controller's
	Name     string        // the newcomer's
	Role     string        // wire.RoleNode or wire.RoleApp
	Until    time.Time
	// Admit makes the newcomer known, durably, and says what it is answered. An
	// error leaves the code good.
	Admit func(Newcomer) (pairing.Reply, error)
	Log   *slog.Logger

	crowd      *door.Crowd
	now        func() time.Time // a test's clock
	wall       func() time.Time // a test's wall clock; nil: that of now
	mu         sync.Mutex
	refusals   seldom
	handshakes seldom // that failed
	used       bool
	done       chan error
}

// seldom is what has been logged of one kind of event.
type seldom struct {
	logged   time.Time // when one was logged last
	unlogged int       // events since
}

// Serve waits on listener until the code was used, which returns nil, or its
// time is over, or ctx ends. It closes the listener.
func (o *Offer) Serve(ctx context.Context, listener net.Listener) error {
	o.done = make(chan error, 1)
	server := &http.Server{
		Handler:           http.HandlerFunc(o.serve),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       headerTime + bodyTime,
		WriteTimeout:      headerTime + bodyTime + writeTime,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(o, "", 0),
	}
	var look sync.WaitGroup
	defer look.Wait()
	valid, stop := context.WithCancel(ctx)
	defer stop()
	look.Go(func() { o.expire(valid) })
	served := make(chan error, 1)
	o.crowd = door.NewCrowd(listener, strangers)
	go func() { served <- server.Serve(tls.NewListener(o.crowd, pairing.ServerTLS(o.Identity))) }()
	var err error
	select {
	case err = <-o.done:
	case <-ctx.Done():
		err = ctx.Err()
	case err := <-served:
		return fmt.Errorf("wait for the new one on %s: %w", listener.Addr(), err)
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if stopErr := server.Shutdown(grace); stopErr != nil {
		_ = server.Close() // connections that would not end; the offer is over either way
	}
	<-served
	if o.isUsed() {
		return nil // it came at the last moment
	}
	return err
}

func (o *Offer) clock() time.Time {
	if o.now != nil {
		return o.now()
	}
	return time.Now()
}

// expire ends the offer when its time is over.
func (o *Offer) expire(ctx context.Context) {
	for pause.For(ctx, lookEvery) == nil {
		if o.expired() {
			o.end(ErrExpired)
			return
		}
	}
}

// expired reports whether the time is over by either clock: Go's monotonic one stands
// still while the machine sleeps, and the wall clock may be set back.
func (o *Offer) expired() bool {
	now := o.clock()
	wall := now.Round(0) // without the monotonic reading
	if o.wall != nil {
		wall = o.wall()
	}
	return !now.Before(o.Until) || !wall.Before(o.Until.Round(0))
}

func (o *Offer) isUsed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.used
}

// serve answers one request, and logs one that is refused.
func (o *Offer) serve(w http.ResponseWriter, r *http.Request) {
	reply, err := o.answer(w, r)
	status, body := http.StatusOK, any(reply)
	if err != nil {
		refused := &wire.Error{}
		if !errors.As(err, &refused) {
			refused = &wire.Error{Code: wire.CodeInternal, Message: err.Error(), Cure: "look at what `fieldmesh keys " +
				"pair` says on the controller"}
		}
		status, body = statusOf(refused.Code), refused
		o.logRefusal(r.RemoteAddr, refused)
	}
	data, err := wire.Encode(body)
	if err != nil {
		o.Log.Error("encode answer", "error", err)
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
	if _, err := w.Write(data); err != nil {
		o.Log.Warn("answer not delivered", "remote", r.RemoteAddr, "error", err)
	}
}

func (o *Offer) logRefusal(remote string, refused *wire.Error) {
	o.warn(&o.refusals, "pairing refused", "remote", remote, "code", refused.Code, "error", refused)
}

// Write logs what the server reports, as a handshake that failed.
func (o *Offer) Write(line []byte) (int, error) {
	o.warn(&o.handshakes, strings.TrimSpace(string(line)))
	return len(line), nil
}

// warn logs what a stranger may cause, seldom enough of its kind.
func (o *Offer) warn(kind *seldom, what string, attributes ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock()
	if !kind.logged.IsZero() && now.Sub(kind.logged) < logEvery {
		kind.unlogged++
		return
	}
	o.Log.Warn(what, append(attributes, "unlogged_before", kind.unlogged)...)
	*kind = seldom{logged: now}
}

func statusOf(code string) int {
	switch code {
	case pairing.CodeWrong:
		return http.StatusForbidden
	case pairing.CodeExpired, pairing.CodeUsed:
		return http.StatusGone
	}
	return wire.HTTPStatus(code)
}

func (o *Offer) answer(w http.ResponseWriter, r *http.Request) (pairing.Reply, error) {
	if r.Method != http.MethodPost || r.URL.Path != pairing.Path {
		return pairing.Reply{}, wire.Errorf(wire.CodeNotFound, "there is only POST %s here", pairing.Path)
	}
	request, err := read(w, r)
	if err != nil {
		return pairing.Reply{}, err
	}
	pin, err := keys.PeerPin(*r.TLS)
	if err != nil {
		return pairing.Reply{}, wire.Errorf(pairing.CodeWrong, "%v", err)
	}
	// One at a time: the code is good for one.
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.check(request, pin); err != nil {
		return pairing.Reply{}, err
	}
	return o.admit(request, pin, r.RemoteAddr)
}

func read(w http.ResponseWriter, r *http.Request) (pairing.Request, error) {
	var request pairing.Request
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, pairing.BodyLimit))
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return request, wire.Errorf(wire.CodeTooLarge, "the body exceeds %d bytes", pairing.BodyLimit)
	}
	if err != nil {
		return request, wire.Errorf(wire.CodeBadRequest, "read body: %v", err)
	}
	// Names that this version does not know are passed over: the node may be newer.
	if err := json.Unmarshal(data, &request); err != nil {
		return request, wire.Errorf(wire.CodeBadRequest, "body: %v", err)
	}
	return request, request.Validate()
}

// check looks at a proof, under the lock.
func (o *Offer) check(request pairing.Request, pin string) error {
	switch {
	case o.used:
		return wire.Errorf(pairing.CodeUsed, "the code was good for one, and has been used")
	case o.expired():
		return wire.Errorf(pairing.CodeExpired, "the code has expired; have `fieldmesh keys pair` make "+
			"another")
	case !o.Code.Proves(o.Identity.Pin, pin, request):
		return wire.Errorf(pairing.CodeWrong, "that is not the code; it is good for one pairing and for %s at most",
			pairing.Valid)
	}
	return nil
}

// admit answers who has the code, under the lock.
func (o *Offer) admit(request pairing.Request, pin, remote string) (pairing.Reply, error) {
	if request.Role != o.Role {
		return pairing.Reply{}, &wire.Error{Code: wire.CodeConflict,
			Message: fmt.Sprintf("the code is for a key of role %s, not %s", o.Role, request.Role),
			Cure:    "`fieldmesh keys pair NAME` makes a code for a node, with --app one for a phone"}
	}
	if request.Name != "" && request.Name != o.Name {
		return pairing.Reply{}, &wire.Error{Code: wire.CodeConflict,
			Message: fmt.Sprintf("the code is for %q, and you are %q", o.Name, request.Name),
			Cure:    "have the code made for the name that `node` in agent.yaml says, or correct it there"}
	}
	n := Newcomer{Name: o.Name, Role: o.Role, Pin: pin}
	o.crowd.Know(remote)
	n.Remote, _, _ = net.SplitHostPort(remote)
	if request.Role == wire.RoleNode {
		var ok bool
		if n.Port, ok = request.ListenPort(); !ok {
			return pairing.Reply{}, wire.Errorf(wire.CodeBadRequest, "listen: %.80q is not host:port", request.Listen)
		}
		n.Host, _, _ = net.SplitHostPort(request.Listen)
	}
	reply, err := o.Admit(n)
	if err != nil {
		return pairing.Reply{}, err
	}
	reply.Name, reply.Role = o.Name, o.Role
	reply.Proof = o.Code.Admit(o.Identity.Pin, pin, reply)
	o.used = true
	o.end(nil)
	return reply, nil
}

// end lets Serve return; only the first reason counts.
func (o *Offer) end(why error) {
	select {
	case o.done <- why:
	default:
	}
}
