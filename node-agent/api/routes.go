package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/internal/strict"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// route is one call of the API.
type route struct {
	method string
	path   string // with {run} for a run's name, as in openapi.yaml
	roles  []string
	query  []string // parameters that it takes
	limit  int64    // of the body, in bytes; 0: it takes none
	handle func(*Server, *call) (any, error)
}

const (
	bodyLimit = 1 << 20
	planLimit = 24 << 20
)

var (
	everyone = []string{wire.RoleController, wire.RoleApp, wire.RoleNode}
	people   = []string{wire.RoleController, wire.RoleApp}
	apps     = []string{wire.RoleApp}
	steering = []string{wire.RoleController}
)

// routes is the whole API.
func routes() []route {
	return []route{
		{http.MethodGet, "/v1/node", people, []string{"scan", "generator", "mesh"}, 0, (*Server).status},
		{http.MethodGet, "/v1/clock", everyone, nil, 0, (*Server).clock},
		{http.MethodPut, "/v1/lease", steering, nil, bodyLimit, withBody((*Server).lease)},
		{http.MethodPut, "/v1/runs/{run}", steering, nil, planLimit, withBody((*Server).load)},
		{http.MethodGet, "/v1/runs/{run}", people, []string{"known", "wait_ms"}, 0, (*Server).view},
		{http.MethodGet, "/v1/runs/{run}/schedule", people, nil, 0, (*Server).schedule},
		{http.MethodPost, "/v1/runs/{run}/arm", steering, nil, bodyLimit, withBody((*Server).arm)},
		{http.MethodPost, "/v1/runs/{run}/abort", people, nil, bodyLimit, withBody((*Server).abort)},
		{http.MethodPut, "/v1/runs/{run}/verdicts", steering, nil, bodyLimit, withBody((*Server).verdicts)},
		{http.MethodPost, "/v1/runs/{run}/end", steering, nil, 0, (*Server).end},
		{http.MethodGet, "/v1/runs/{run}/capture", steering, []string{"trial", "attempt", "offset", "bytes"}, 0,
			(*Server).capture},
		{http.MethodPost, "/v1/restore", people, nil, 0, (*Server).restore},
		{http.MethodPost, "/v1/gps", people, nil, bodyLimit, withBody((*Server).pushFix)},
		{http.MethodPost, "/v1/wifi", apps, nil, bodyLimit, withBody((*Server).pushWiFi)},
		{http.MethodPost, "/v1/notes", people, nil, bodyLimit, withBody((*Server).note)},
		{http.MethodGet, "/v1/attachments", people, []string{"sha256"}, 0, (*Server).attachment},
		{http.MethodPut, "/v1/attachments", apps, nil, attachmentLimit, withBody((*Server).putAttachment)},
		{http.MethodGet, "/v1/attachments/data", steering, []string{"sha256", "offset", "bytes"}, 0,
			(*Server).attachmentData},
		{http.MethodPost, "/v1/attachments/archived", steering, nil, bodyLimit, withBody((*Server).archived)},
		{http.MethodPut, "/v1/apps", steering, nil, bodyLimit, withBody((*Server).letIn)},
		{http.MethodGet, "/v1/records", people, []string{"epoch", "after", "limit", "wait_ms"}, 0,
			(*Server).readRecords},
		{http.MethodPost, "/v1/records/confirm", steering, nil, bodyLimit, withBody((*Server).confirm)},
	}
}

// find returns the route of a request and the run that its path names. With
// no route, allowed lists the methods that the path has, none for no path.
func find(all []route, method, path string) (found *route, run string, allowed []string) {
	for i := range all {
		name, ok := matchPath(all[i].path, path)
		if !ok {
			continue
		}
		if all[i].method == method {
			return &all[i], name, nil
		}
		allowed = append(allowed, all[i].method)
	}
	return nil, "", allowed
}

// matchPath compares segment by segment; nothing is cleaned or redirected.
func matchPath(pattern, path string) (run string, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return "", false
	}
	for i := range want {
		if want[i] == "{run}" {
			run = got[i]
		} else if want[i] != got[i] {
			return "", false
		}
	}
	return run, true
}

// call is one request on its way.
type call struct {
	ctx   context.Context // ends with the time allowed; arm has its own
	poll  context.Context // ends with its peer and with the server
	peer  Peer
	run   string
	query url.Values
	body  []byte
	bad   error // what is wrong with the first parameter that cannot be used
}

// number reads a parameter; absent it is fallback. Use it only
// when c.bad is nil.
func (c *call) number(name string, least, most, fallback uint64) uint64 {
	if !c.query.Has(name) {
		return fallback
	}
	text := c.query.Get(name)
	n, err := strconv.ParseUint(text, 10, 64)
	if c.bad == nil && (err != nil || n < least || n > most) {
		c.bad = wire.Errorf(wire.CodeBadRequest, "query: %s: %.80q is not a whole number within %d to %d", name, text,
			least, most)
	}
	return n
}

// maxWait is the longest poll.
const maxWait = 30 * time.Second

func (c *call) wait() time.Duration {
	return time.Duration(c.number("wait_ms", 0, uint64(maxWait/time.Millisecond), 0)) * time.Millisecond
}

// maxChannel is the highest number of a channel of 5 GHz (IEEE 802.11-2020, annex E).
const maxChannel = 196

func (s *Server) status(c *call) (any, error) {
	channel, try := c.number("scan", 1, maxChannel, 0), c.number("generator", 0, 1, 0)
	own, peers := c.mesh()
	err := c.bad
	if err == nil && channel != 0 {
		err = s.node.Scan(c.ctx, int(channel))
	}
	if err == nil && try != 0 {
		err = s.node.TryGenerator(c.ctx)
	}
	if err != nil {
		return nil, err
	}
	st, err := s.node.Status(c.ctx)
	st.ReachedBy = interfaceWith(c.ctx.Value(http.LocalAddrContextKey))
	if err == nil && own.IsValid() {
		st.Problems = append(st.Problems, s.node.InTheWay(own, peers)...)
	}
	return st, err
}

// interfaceWith is the interface that has a connection's local address; empty for
// none.
func interfaceWith(local any) string {
	tcp, ok := local.(*net.TCPAddr)
	interfaces, err := net.Interfaces()
	if !ok || err != nil {
		return ""
	}
	for _, i := range interfaces {
		addrs, err := i.Addrs()
		if err == nil && slices.ContainsFunc(addrs, func(a net.Addr) bool {
			own, ok := a.(*net.IPNet)
			return ok && own.IP.Equal(tcp.IP)
		}) {
			return i.Name
		}
	}
	return ""
}

// meshMost is what the addresses of wire.MaxNodes take, in bytes.
const meshMost = wire.MaxNodes * len("255.255.255.255,")

// mesh reads the node's address in the mesh, and those of others; none is absent.
func (c *call) mesh() (own netip.Prefix, peers []netip.Addr) {
	if !c.query.Has("mesh") {
		return own, nil
	}
	text := c.query.Get("mesh")
	words := strings.Split(text, ",")
	own, err := netip.ParsePrefix(words[0])
	for _, word := range words[1:] {
		peer, bad := netip.ParseAddr(word)
		err = errors.Join(err, bad)
		peers = append(peers, peer)
	}
	all := append(slices.Clone(peers), own.Addr())
	if c.bad == nil && (err != nil || len(text) > meshMost || slices.ContainsFunc(all, isNotIPv4)) {
		c.bad = wire.Errorf(wire.CodeBadRequest, "query: mesh: %.80q is not an IPv4 address with its prefix length, "+
			"and others, with commas between, in at most %d bytes", text, meshMost)
	}
	return own, peers
}

func isNotIPv4(a netip.Addr) bool { return !a.Is4() }

func (s *Server) clock(*call) (any, error) { return s.node.Clock(), nil }

func (s *Server) lease(c *call, l wire.Lease) (any, error) { return s.node.Lease(c.ctx, c.peer, l) }

func (s *Server) load(c *call, plan wire.RunPlan) (any, error) {
	if plan.Run != c.run {
		return nil, wire.Errorf(wire.CodeBadRequest, "plan: run: %.80q, but the path names %q", plan.Run, c.run)
	}
	return s.node.Load(c.ctx, c.peer, plan)
}

// noVersion is a version that no view has: asking past it never waits.
const noVersion = math.MaxUint64

func (s *Server) view(c *call) (any, error) {
	known, wait := c.number("known", 0, math.MaxInt64, noVersion), c.wait()
	if c.bad != nil {
		return nil, c.bad
	}
	if wait == 0 {
		return s.node.View(c.ctx, c.run, noVersion)
	}
	ctx, cancel := context.WithTimeout(c.poll, wait)
	defer cancel()
	return s.node.View(ctx, c.run, known)
}

// arm ends with the time that arming has, and not with its caller either: that may be back before the car is.
func (s *Server) arm(c *call, key wire.TrialKey) (any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), s.times.arm)
	defer cancel()
	return s.node.Arm(ctx, c.peer, c.run, key)
}

func (s *Server) abort(c *call, request wire.AbortRequest) (any, error) {
	return s.node.Abort(c.ctx, c.run, request)
}

// maxVerdicts is five times what the controller sends at once. With the longest
// reasons it is more than a body may hold; that is refused as such.
const maxVerdicts = 1000

func (s *Server) verdicts(c *call, list []wire.Verdict) (any, error) {
	if len(list) > maxVerdicts {
		return nil, wire.Errorf(wire.CodeBadRequest, "body: %d verdicts, at most %d", len(list), maxVerdicts)
	}
	for i, v := range list {
		if err := v.Validate(); err != nil {
			return nil, wire.Errorf(wire.CodeBadRequest, "body[%d]: %s", i, asWire(err).Message)
		}
	}
	return s.node.Verdicts(c.ctx, c.peer, c.run, list)
}

func (s *Server) end(c *call) (any, error) { return s.node.End(c.ctx, c.peer, c.run) }

func (s *Server) restore(c *call) (any, error) { return s.node.Restore(c.ctx) }

// withBody makes a handler of one that takes the body, decoded and, where it
// can, validated by itself.
func withBody[T any](handle func(*Server, *call, T) (any, error)) func(*Server, *call) (any, error) {
	return func(s *Server, c *call) (any, error) {
		var body T
		err := strict.Decode(c.body, &body)
		if v, ok := any(&body).(interface{ Validate() error }); ok && err == nil {
			err = v.Validate()
		}
		if err != nil {
			return nil, err
		}
		return handle(s, c, body)
	}
}

// Routes lists the API's calls as "METHOD /path", for the check against its description.
func Routes() []string {
	var out []string
	for _, r := range routes() {
		out = append(out, fmt.Sprintf("%s %s", r.method, r.path))
	}
	return out
}
