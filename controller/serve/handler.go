package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/internal/answer"
	"fieldmesh.dev/fieldmesh/internal/strict"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// route is one call.
type route struct {
	method string
	path   string // with {run} for a run's name and {file} for a file's, as in openapi.yaml
	query  []string
	body   bool
	handle func(*Server, *call) (any, error)
}

func routes() []route {
	return []route{
		{http.MethodGet, "/v1/campaigns", nil, false, (*Server).listCampaigns},
		{http.MethodPost, "/v1/plan", nil, true, withBody((*Server).plan)},
		{http.MethodPost, "/v1/preflight", nil, true, withBody((*Server).check)},
		{http.MethodGet, "/v1/runs", []string{"known", "wait_ms"}, false, (*Server).listRuns},
		{http.MethodPost, "/v1/runs", nil, true, withBody((*Server).start)},
		{http.MethodPost, "/v1/runs/{run}/pause", nil, false, (*Server).pause},
		{http.MethodPost, "/v1/runs/{run}/resume", nil, false, (*Server).resume},
		{http.MethodPost, "/v1/runs/{run}/end", nil, false, (*Server).end},
		{http.MethodGet, "/v1/runs/{run}/places", nil, false, (*Server).places},
		{http.MethodGet, "/v1/runs/{run}/files", nil, false, (*Server).listFiles},
		{http.MethodGet, "/v1/runs/{run}/files/{file}", nil, false, (*Server).file},
	}
}

// call is one request on its way.
type call struct {
	ctx   context.Context // ends with the time allowed
	poll  context.Context // ends with its peer and with the server
	peer  string
	run   string
	name  string // of a file
	query url.Values
	body  []byte
}

type validated interface{ Validate() error }

// withBody makes a handler of one that takes a body.
func withBody[T validated](handle func(*Server, *call, T) (any, error)) func(*Server, *call) (any, error) {
	return func(s *Server, c *call) (any, error) {
		var body T
		err := strict.Decode(c.body, &body)
		if err == nil {
			err = body.Validate()
		}
		if err != nil {
			return nil, err
		}
		return handle(s, c, body)
	}
}

// handler answers requests; long polls end with serving.
func (s *Server) handler(serving context.Context) http.Handler {
	all := routes()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)); err != nil {
			s.log.Warn("set read deadline", "error", err)
		}
		peer, what, err := s.answer(serving, all, w, r)
		if err != nil {
			what = s.refusal(w, r, peer, err)
		}
		s.write(w, r, what)
	})
}

// answer takes a request from its peer's key to what is answered.
func (s *Server) answer(serving context.Context, all []route, w http.ResponseWriter, r *http.Request) (peer string,
	what any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			s.log.Error("panic in a call", "method", r.Method, "path", r.URL.Path, "panic", fault, "stack",
				string(debug.Stack()))
			err = wire.Errorf(wire.CodeInternal, "%s %.200s: the call failed inside the controller", r.Method,
				r.URL.Path)
		}
	}()
	if peer, err = s.peer(r); err != nil {
		return peer, nil, err
	}
	c := &call{peer: peer}
	route, err := c.find(all, w, r)
	if err != nil {
		return peer, nil, err
	}
	if c.query, err = strict.Query(r.URL.RawQuery, route.query); err != nil {
		return peer, nil, err
	}
	if route.body {
		if c.body, err = answer.Body(w, r, campaigns.BodyLimit); err != nil {
			return peer, nil, err
		}
	}
	if route.body || r.ContentLength == 0 {
		// Nothing more comes; a deadline left standing would end a long poll.
		if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
			return peer, nil, fmt.Errorf("clear read deadline: %w", err)
		}
	}
	var cancel, cancelPoll context.CancelFunc
	// What steers a run is finished even when its caller goes away.
	c.ctx, cancel = context.WithTimeout(context.WithoutCancel(r.Context()), workTime)
	defer cancel()
	c.poll, cancelPoll = context.WithCancel(r.Context())
	defer cancelPoll()
	defer context.AfterFunc(serving, cancelPoll)()
	if what, err = route.handle(s, c); err != nil {
		return peer, nil, err
	}
	_, err = s.peer(r) // the call may have taken long, and the peer been revoked meanwhile
	return peer, what, err
}

// find finds the route of a request, and what its path names.
func (c *call) find(all []route, w http.ResponseWriter, r *http.Request) (found *route, err error) {
	var allowed []string
	for i := range all {
		if !c.match(all[i].path, r.URL.Path) {
			continue
		}
		if all[i].method == r.Method {
			found = &all[i]
			break
		}
		allowed = append(allowed, all[i].method)
	}
	switch {
	case found == nil && len(allowed) > 0:
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return nil, wire.Errorf(wire.CodeMethodNotAllowed, "%.200s takes %s, not %.20s", r.URL.Path,
			strings.Join(allowed, " and "), r.Method)
	case found == nil:
		return nil, wire.Errorf(wire.CodeNotFound, "there is no path %.200q", r.URL.Path)
	case strings.Contains(found.path, "{run}"):
		return found, wire.CheckRunName(c.run)
	}
	return found, nil
}

// match compares segment by segment; nothing is cleaned or redirected.
func (c *call) match(pattern, path string) bool {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		switch {
		case want[i] == "{run}":
			c.run = got[i]
		case want[i] == "{file}":
			c.name = got[i]
		case want[i] != got[i]:
			return false
		}
	}
	return true
}

// number is a parameter of at most so much; 0 where it is not there.
func (c *call) number(name string, most uint64) (uint64, error) {
	text := c.query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		return 0, wire.Errorf(wire.CodeBadRequest, "query: %s is %.40q; allowed: 0 to %d", name, text, most)
	}
	return n, nil
}

// refusal logs an error and turns it into an answer.
func (s *Server) refusal(w http.ResponseWriter, r *http.Request, peer string, err error) *wire.Error {
	refused := asWire(err)
	level := s.log.Info
	switch refused.Code {
	case wire.CodeInternal:
		level = s.log.Error
	case wire.CodeForbidden:
		level = s.log.Warn
		w.Header().Set("Connection", "close") // its place is for who may
	case wire.CodeTooLarge, wire.CodeTooSlow:
		w.Header().Set("Connection", "close") // the rest of the body is not worth reading
	}
	level("call refused", "method", r.Method, "path", r.URL.Path, "peer", peer, "remote", r.RemoteAddr, "code",
		refused.Code, "error", err)
	return refused
}

// asWire turns any error into the body that the peer gets.
func asWire(err error) *wire.Error {
	var known *wire.Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &wire.Error{Code: wire.CodeUnavailable, Message: "the controller did not finish in time: " + err.Error(),
			Cure: "ask again"}
	}
	return &wire.Error{Code: wire.CodeInternal, Message: err.Error(), Cure: "look at what `fieldmesh serve` says on " +
		"the controller"}
}

// write sends an answer: JSON, or a file.
func (s *Server) write(w http.ResponseWriter, r *http.Request, what any) {
	file, is := what.(sharedFile)
	if !is {
		answer.Of(what, s.log).Send(w, r, writeTime, s.log)
		return
	}
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", file.name))
	answer.Answer{Status: http.StatusOK, Kind: file.kind, Data: file.data}.Send(w, r, writeTime, s.log)
}
