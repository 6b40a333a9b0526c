package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

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
		peer, answer, err := s.serve(serving, w, r)
		if err != nil {
			answer = s.refusal(w, r, peer, err)
		}
		s.write(w, r, answer)
	})
}

// serve takes a request from its peer's key to the node's answer.
func (s *Server) serve(serving context.Context, w http.ResponseWriter, r *http.Request) (peer Peer, answer any,
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
	answer, err = route.handle(s, c)
	return peer, answer, err
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
	return Peer{Name: known.Name, Role: known.Role}, nil
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
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, wire.Errorf(wire.CodeMediaType, "the body is %.80q, not application/json",
			r.Header.Get("Content-Type"))
	}
	tooLarge := wire.Errorf(wire.CodeTooLarge, "the body exceeds %d bytes", most)
	if r.ContentLength > most {
		return nil, tooLarge
	}
	control := http.NewResponseController(w)
	if most > bodyLimit {
		if err := control.SetReadDeadline(time.Now().Add(s.times.planBody)); err != nil {
			return nil, fmt.Errorf("set read deadline: %w", err)
		}
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, wire.Errorf(wire.CodeTooSlow, "the body did not arrive in time; %d bytes came", len(data))
	case err != nil:
		return nil, wire.Errorf(wire.CodeBadRequest, "read body: %s", err)
	}
	return data, nil
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
func (s *Server) write(w http.ResponseWriter, r *http.Request, answer any) {
	status, kind := http.StatusOK, "application/json"
	var data []byte
	switch a := answer.(type) {
	case *wire.Error:
		status = wire.HTTPStatus(a.Code)
		data = s.encode(&status, a)
	case page:
		kind = "application/x-ndjson"
		w.Header().Set("Fieldmesh-Epoch", a.epoch)
		w.Header().Set("Fieldmesh-Last", strconv.FormatUint(a.last, 10))
		for _, line := range a.lines {
			data = append(append(data, line...), '\n')
		}
	case part:
		kind, data = "application/octet-stream", a.data
		w.Header().Set("Fieldmesh-Size", strconv.FormatInt(a.size, 10))
	default:
		data = s.encode(&status, a)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	within := s.times.write + time.Duration(len(data)>>15)*time.Second
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within)); err != nil {
		s.log.Warn("set write deadline", "error", err)
	}
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	if _, err := w.Write(data); err != nil {
		s.log.Info("answer not delivered", "path", r.URL.Path, "remote", r.RemoteAddr, "error", err)
	}
}

// encode never fails towards the peer: what cannot be encoded is our fault and says so.
func (s *Server) encode(status *int, answer any) []byte {
	data, err := wire.Encode(answer)
	if err != nil {
		s.log.Error("encode answer", "error", err)
		*status = http.StatusInternalServerError
		return []byte(`{"code":"internal","message":"the answer could not be encoded"}`)
	}
	return data
}
