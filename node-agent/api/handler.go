package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/internal/answer"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/strict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// handler answers requests; long polls end with serving.
func (s *Server) handler(serving context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		// Bounds the body, and what the server discards of it after a refusal.
		if err := control.SetReadDeadline(time.Now().Add(s.times.body)); err != nil {
			s.log.Warn("set read deadline", "error", err)
		}
		peer, what, err := s.serve(serving, w, r)
		if err != nil {
			what = s.refusal(w, r, peer, err)
		}
		s.write(w, r, what)
	})
}

// serve takes a request from its peer's key to the node's answer.
func (s *Server) serve(serving context.Context, w http.ResponseWriter, r *http.Request) (peer Peer, what any,
	err error) {
	defer func() {
		if fault := recover(); fault != nil {
			s.log.Error("panic in a call", "method", r.Method, "path", r.URL.Path, "panic", fault, "stack",
				string(debug.Stack()))
			err = wire.Errorf(wire.CodeInternal, "%s %.200s: the call failed inside the agent", r.Method, r.URL.Path)
		}
	}()
	if peer, err = s.peer(r); err != nil {
		return peer, nil, err
	}
	route, run, allowed := find(s.routes, r.Method, r.URL.Path)
	switch {
	case route != nil:
	case len(allowed) > 0:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return peer, nil, wire.Errorf(wire.CodeMethodNotAllowed, "%.200s takes %s, not %.20s", r.URL.Path,
			strings.Join(allowed, " and "), r.Method)
	default:
		return peer, nil, wire.Errorf(wire.CodeNotFound, "there is no path %.200q", r.URL.Path)
	}
	c, err := s.admit(w, r, route, peer, run)
	if err != nil {
		return peer, nil, err
	}
	var cancel, cancelPoll context.CancelFunc
	// What changes the node is finished even when its caller goes away: half a restore helps nobody.
	c.ctx, cancel = context.WithTimeout(context.WithoutCancel(r.Context()), s.times.work)
	defer cancel()
	c.poll, cancelPoll = context.WithCancel(r.Context())
	defer cancelPoll()
	defer context.AfterFunc(serving, cancelPoll)()
	if what, err = route.handle(s, c); err == nil && route.method == http.MethodGet {
		_, err = s.peer(r) // it may have waited long for news, and been revoked meanwhile
	}
	return peer, what, err
}

// peer says who asks. The key is looked up at every request, so that a peer
// taken off the list is refused on the connections that it still has.
func (s *Server) peer(r *http.Request) (Peer, error) {
	if r.TLS == nil {
		return Peer{}, wire.Errorf(wire.CodeForbidden, "the connection is not TLS")
	}
	pin, err := keys.PeerPin(*r.TLS)
	if err != nil {
		return Peer{}, wire.Errorf(wire.CodeForbidden, "%s", err)
	}
	known, ok := s.authorized.Find(pin)
	if !ok {
		return Peer{}, &wire.Error{Code: wire.CodeForbidden, Message: fmt.Sprintf("key %s is no longer authorized",
			pin), Cure: "issue the node again, or pair again"}
	}
	return Peer{Name: known.Name, Role: known.Role, Pin: pin}, nil
}

// admit checks role, names and sizes, and reads the body.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, route *route, peer Peer, run string) (*call, error) {
	if !slices.Contains(route.roles, peer.Role) {
		return nil, &wire.Error{
			Code:    wire.CodeForbidden,
			Message: fmt.Sprintf("%s %s is not for the role %s of %q", route.method, route.path, peer.Role, peer.Name),
			Cure:    "use a key with the role " + strings.Join(route.roles, " or "),
		}
	}
	if strings.Contains(route.path, "{run}") {
		if err := wire.CheckRunName(run); err != nil {
			return nil, err
		}
	}
	query, err := strict.Query(r.URL.RawQuery, route.query)
	if err != nil {
		return nil, err
	}
	c := &call{peer: peer, run: run, query: query}
	if route.limit > 0 {
		if c.body, err = s.readBody(w, r, route.limit); err != nil {
			return nil, err
		}
	}
	if route.limit > 0 || r.ContentLength == 0 {
		// Nothing more comes; a deadline left standing would end a long poll.
		if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
			return nil, fmt.Errorf("clear read deadline: %w", err)
		}
	}
	return c, nil
}

// readBody reads a JSON body within its limit and its time.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if most > bodyLimit {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.times.planBody)); err != nil {
			return nil, fmt.Errorf("set read deadline: %w", err)
		}
	}
	return answer.Body(w, r, most)
}

// refusal logs an error and turns it into an answer.
func (s *Server) refusal(w http.ResponseWriter, r *http.Request, peer Peer, err error) *wire.Error {
	refused := asWire(err)
	status := wire.HTTPStatus(refused.Code)
	attributes := []any{"method", r.Method, "path", r.URL.Path, "peer", peer.Name, "role", peer.Role, "remote",
		r.RemoteAddr, "status", status, "error", err}
	switch {
	case status == http.StatusInternalServerError:
		s.log.Error("call failed", attributes...)
	case status == http.StatusForbidden:
		s.log.Warn("call refused", attributes...)
	default:
		s.log.Info("call refused", attributes...)
	}
	switch refused.Code {
	case wire.CodeTooLarge, wire.CodeTooSlow:
		w.Header().Set("Connection", "close") // the rest of the body is not worth reading
	}
	return refused
}

// write sends an answer, of whatever kind it is.
func (s *Server) write(w http.ResponseWriter, r *http.Request, what any) {
	var out answer.Answer
	switch a := what.(type) {
	case page:
		out = answer.Answer{Status: http.StatusOK, Kind: "application/x-ndjson"}
		w.Header().Set("Fieldmesh-Epoch", a.epoch)
		w.Header().Set("Fieldmesh-Last", strconv.FormatUint(a.last, 10))
		for _, line := range a.lines {
			out.Data = append(append(out.Data, line...), '\n')
		}
	case part:
		out = answer.Answer{Status: http.StatusOK, Kind: "application/octet-stream", Data: a.data}
		w.Header().Set("Fieldmesh-Size", strconv.FormatInt(a.size, 10))
	default:
		out = answer.Of(what, s.log)
	}
	out.Send(w, r, s.times.write, s.log)
}
