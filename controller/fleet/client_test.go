package fleet

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// agent is a stand-in for a node's API: it answers as its handler says, behind
// the real keys, and counts the connections.
type agent struct {
	identity, controller keys.Identity
	server               *httptest.Server
	connections          atomic.Int32
}

func newAgent(t *testing.T, handler http.Handler) *agent {
	t.Helper()
	a := &agent{identity: testnet.Identity(t, "car"), controller: testnet.Identity(t, "controller")}
	list, err := keys.NewAuthorized(keys.Peer{Name: "controller", Role: wire.RoleController, Pin: a.controller.Pin})
	if err != nil {
		t.Fatal(err)
	}
	a.server = httptest.NewUnstartedServer(handler)
	a.server.TLS = keys.ServerTLS(a.identity, list)
	a.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			a.connections.Add(1)
		}
	}
	a.server.StartTLS()
	t.Cleanup(a.server.Close)
	return a
}

func (a *agent) client(t *testing.T, identity keys.Identity, pin string) *Client {
	c := NewClient(identity, Node{Name: "car", Address: a.server.Listener.Addr().String(), Pin: pin})
	t.Cleanup(c.Close)
	return c
}

func (a *agent) usual(t *testing.T) *Client { return a.client(t, a.controller, a.identity.Pin) }

func golden(t *testing.T, name string, into any) []byte {
	t.Helper()
	data, err := os.ReadFile("../../protocols/wire/golden/body_" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	return data
}

// described answers every request that openapi.yaml describes with the golden
// file of its answer, and reports every other request.
func described(t *testing.T, called map[string]bool) http.Handler {
	doc, err := openapi3.NewLoader().LoadFromFile("../../protocols/wire/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"NodeStatus": "node_status", "ClockReply": "clock_reply", "Lease": "lease", "CampaignView": "campaign_view",
		"RestoreReport": "restore_report", "SpoolStatus": "spool_status", "Apps": "apps",
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for path, item := range doc.Paths.Map() {
			pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(path), `\{run\}`,
				"[a-z0-9-]{1,64}") + "$")
			operation := item.GetOperation(r.Method)
			if !pattern.MatchString(r.URL.Path) || operation == nil {
				continue
			}
			called[r.Method+" "+path] = true
			checkRequest(t, operation, r)
			if operation.OperationID == "getRecords" {
				w.Header().Set("Fieldmesh-Epoch", "e1")
				w.Header().Set("Fieldmesh-Last", "4")
				w.Header().Set("Content-Type", "application/x-ndjson")
				io.WriteString(w, "{\"seq\":3}\n{\"seq\":4}\n")
				return
			}
			schema := operation.Responses.Status(200).Value.Content.Get("application/json").Schema.Ref
			w.Header().Set("Content-Type", "application/json")
			w.Write(golden(t, files[schema[strings.LastIndexByte(schema, '/')+1:]], nil))
			return
		}
		t.Errorf("%s %s is not in openapi.yaml", r.Method, r.URL)
	})
}

// checkRequest compares a request's parameters and body with the description.
func checkRequest(t *testing.T, operation *openapi3.Operation, r *http.Request) {
	for name, values := range r.URL.Query() {
		p := operation.Parameters.GetByInAndName("query", name)
		if p == nil || len(values) != 1 {
			t.Errorf("%s %s: parameter %s is not in openapi.yaml", r.Method, r.URL, name)
			continue
		}
		var value any = values[0]
		if p.Schema.Value.Type.Is("integer") {
			value = json.Number(values[0])
		}
		if err := p.Schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s %s: %s: %v", r.Method, r.URL, name, err)
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	if operation.RequestBody == nil {
		if len(body) > 0 {
			t.Errorf("%s %s has a body: %.80s", r.Method, r.URL, body)
		}
		return
	}
	if kind := r.Header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s %s: the body is %q", r.Method, r.URL, kind)
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	schema := operation.RequestBody.Value.Content.Get("application/json").Schema.Value
	if err := schema.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
}

// want checks that a call gave the value of a golden file.
func want[T any](t *testing.T, name string) func(T, error) {
	return func(got T, err error) {
		t.Helper()
		var expected T
		golden(t, name, &expected)
		if err != nil || !reflect.DeepEqual(got, expected) {
			t.Errorf("got %+v, %v; want %+v", got, err, expected)
		}
	}
}

func TestEveryCallIsAsDescribed(t *testing.T) {
	called := map[string]bool{}
	a := newAgent(t, described(t, called))
	c, ctx := a.usual(t), context.Background()
	var plan wire.RunPlan
	var key wire.TrialKey
	var abort wire.AbortRequest
	var verdicts []wire.Verdict
	var lease wire.Lease
	var confirmation wire.Confirmation
	var apps wire.Apps
	for name, into := range map[string]any{"run_plan": &plan, "trial_key": &key, "abort_request": &abort,
		"verdicts": &verdicts, "lease": &lease, "confirmation": &confirmation, "apps": &apps} {
		golden(t, name, into)
	}
	view := want[wire.CampaignView](t, "campaign_view")
	want[wire.NodeStatus](t, "node_status")(c.Status(ctx))
	want[wire.ClockReply](t, "clock_reply")(c.Clock(ctx))
	want[wire.Lease](t, "lease")(c.Lease(ctx, lease))
	view(c.Load(ctx, plan))
	view(c.View(ctx, plan.Run, 0, 0))
	view(c.View(ctx, plan.Run, 16, 30*time.Second))
	view(c.Arm(ctx, plan.Run, key))
	view(c.Abort(ctx, plan.Run, abort))
	view(c.Verdicts(ctx, plan.Run, verdicts))
	view(c.Verdicts(ctx, plan.Run, nil)) // none is a list, not null
	want[wire.RestoreReport](t, "restore_report")(c.End(ctx, plan.Run))
	want[wire.RestoreReport](t, "restore_report")(c.Restore(ctx))
	want[wire.SpoolStatus](t, "spool_status")(c.Confirm(ctx, confirmation))
	want[wire.Apps](t, "apps")(c.LetIn(ctx, apps))
	for _, epoch := range []string{"", "e1"} {
		lines, newEpoch, last, err := c.Records(ctx, epoch, 2, 100, time.Second)
		if err != nil || len(lines) != 2 || string(lines[1]) != `{"seq":4}` || newEpoch != "e1" || last != 4 {
			t.Errorf("records: %q, %q, %d, %v", lines, newEpoch, last, err)
		}
	}
	if len(called) != 13 {
		t.Errorf("%d calls of 13: %v", len(called), called)
	}
	if n := a.connections.Load(); n != 1 {
		t.Errorf("%d connections, want one that is kept", n)
	}
}

// told checks an error's text and returns it as a NodeError.
func told(t *testing.T, err error, parts ...string) {
	t.Helper()
	var node *NodeError
	if !errors.As(err, &node) {
		t.Errorf("got %v, want a NodeError", err)
		return
	}
	for _, part := range append(parts, `node "car" at `, node.Address) {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
}

func TestErrorsSayWhatAndWhatToDo(t *testing.T) {
	answers := map[string]func(http.ResponseWriter){
		"/v1/node":  func(w http.ResponseWriter) { w.WriteHeader(409); w.Write(golden(t, "error", nil)) },
		"/v1/clock": func(w http.ResponseWriter) { w.WriteHeader(502); io.WriteString(w, "<html>proxy") },
		"/v1/lease": func(w http.ResponseWriter) { io.WriteString(w, "{") },
	}
	release := make(chan struct{})
	a := newAgent(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer, ok := answers[r.URL.Path]; ok {
			answer(w)
			return
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(release) })
	ctx := context.Background()
	c := a.usual(t)

	_, err := c.Status(ctx)
	var refused *wire.Error
	if !errors.As(err, &refused) || refused.Code != wire.CodeLeaseHeld || Unreached(err) {
		t.Errorf("the node's own error is lost: %v", err)
	}
	told(t, err, "ask status", "the lease is held by", "end that run, or wait")
	_, err = c.Clock(ctx)
	told(t, err, "502", "proxy")
	_, err = c.Lease(ctx, wire.Lease{Holder: "a"})
	told(t, err, "take lease", "decode answer")

	_, err = a.client(t, a.controller, testnet.Identity(t, "other").Pin).Status(ctx)
	told(t, err, "it answered with key "+a.identity.Pin, "the fleet file pins ")
	if !Unreached(err) {
		t.Errorf("a wrong pin counts as reached: %v", err)
	}
	stranger := testnet.Identity(t, "controller")
	_, err = a.client(t, stranger, a.identity.Pin).Status(ctx)
	told(t, err, "our key")

	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err = c.Restore(short)
	told(t, err, "restore", "no answer within", "control link")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the cause is lost: %v", err)
	}

	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Config.ErrorLog = log.New(io.Discard, "", 0)
	other.Start()
	defer other.Close()
	for address, want := range map[string]string{
		strings.TrimPrefix(other.URL, "http://"): "what answers there is not a fieldmesh-agent",
		"laptop-x.invalid:7443":                  "nobody knows the name laptop-x.invalid",
	} {
		away := NewClient(a.controller, Node{Name: "car", Address: address, Pin: a.identity.Pin})
		_, err = away.Status(ctx)
		told(t, err, want, "correct the node's address in the fleet file")
		away.Close()
	}

	a.server.Close()
	_, err = c.Status(ctx)
	told(t, err, "connection refused", "fieldmesh-agent up")
	if !Unreached(err) {
		t.Errorf("a refused connection counts as reached: %v", err)
	}
}

// A node whose caller hangs up ends its answer with what it has, and net/http
// may still deliver that: it is no answer.
func TestAnAnswerAfterTheDeadlineIsATimeout(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	if _, err := read(ctx, &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("got %v, want a time-out", err)
	}
}

func TestBrokenConnectionsAreTriedAgain(t *testing.T) {
	var asked atomic.Int32
	a := newAgent(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
			return
		}
		w.Write(golden(t, "clock_reply", nil))
	}))
	if _, err := a.usual(t).Clock(context.Background()); err != nil {
		t.Error(err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("asked %d times, want 3", n)
	}
}

// A link that is weak, or holds for seconds at a time, carries some of an answer: the records that came whole are not
// asked for again.
func TestRecordsOfAnAnswerThatBrokeOffAreKept(t *testing.T) {
	const whole = `{"epoch":"e1","seq":3}` + "\n" + `{"epoch":"e1","seq":7}` + "\n"
	for name, c := range map[string]struct {
		body   string
		stalls bool
		want   int
	}{
		"in a line":            {whole + `{"epoch":"e1","se`, false, 2},
		"after a line":         {whole, false, 2},
		"by its deadline":      {whole + `{`, true, 2},
		"in the first line":    {`{"epoch":"e1"`, false, 0},
		"with another epoch":   {whole + `{"epoch":"e2","seq":1}` + "\n", false, 2},
		"with what is no line": {whole + "no record\n", false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			a := newAgent(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				w.Header().Set("Fieldmesh-Epoch", "e1")
				w.Header().Set("Fieldmesh-Last", "5000")
				w.Header().Set("Content-Length", "100000")
				_, _ = io.WriteString(w, c.body)
				_ = http.NewResponseController(w).Flush()
				if c.stalls {
					<-r.Context().Done()
				}
				panic(http.ErrAbortHandler)
			}))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			lines, epoch, last, err := a.usual(t).Records(ctx, "e1", 2, 0, 0)
			if err == nil {
				t.Error("nobody is told that it broke off")
			}
			if len(lines) != c.want || c.want > 0 && (epoch != "e1" || last != 7 || asked.Load() != 1) {
				t.Errorf("%d lines of epoch %q up to %d, asked %d times: %v", len(lines), epoch, last, asked.Load(),
					err)
			}
		})
	}
}

func TestRefusalsAreNotTriedAgain(t *testing.T) {
	var asked atomic.Int32
	a := newAgent(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(503)
		io.WriteString(w, `{"code":"unavailable","message":"the host process does not answer"}`)
	}))
	if _, err := a.usual(t).Restore(context.Background()); err == nil {
		t.Error("no error")
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
}

func TestOffsetTakesTheAnswerAsHalfway(t *testing.T) {
	got := offset("car", wire.ClockReply{BootNs: 1000, WallNs: 500_000}, wire.ClockReply{BootNs: 9_000_000,
		WallNs: 100_000}, wire.ClockReply{BootNs: 1301, WallNs: 500_301})
	expected := wire.Clock{Peer: "car", OffsetNs: 9_000_000 - 1150, WallOffsetNs: 100_000 - 500_150, RTTNs: 301,
		UncertaintyNs: 151, OwnWallOffsetNs: new(int64(499_000))}
	if !reflect.DeepEqual(got, expected) {
		t.Errorf("got %+v, want %+v", got, expected)
	}
}

func TestClockOffsetTrustsTheQuickestExchange(t *testing.T) {
	const bootOffset, wallOffset = -40 * time.Second, 5 * time.Second
	var asked atomic.Int32
	a := newAgent(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// All answers but one are late after the clock was read, as if the way
		// back were slow: an average would be off by half of that.
		n := asked.Add(1)
		now, err := ownClock()
		if err != nil {
			t.Error(err)
		}
		if n != 4 {
			time.Sleep(40 * time.Millisecond)
		}
		data, err := wire.Encode(wire.ClockReply{BootNs: now.BootNs + int64(bootOffset), WallNs: now.WallNs +
			int64(wallOffset)})
		if err != nil {
			t.Error(err)
		}
		w.Write(data)
	}))
	got, err := a.usual(t).ClockOffset(context.Background(), 6)
	if err != nil {
		t.Fatal(err)
	}
	if off := time.Duration(got.OffsetNs) - bootOffset; off.Abs() > time.Duration(got.UncertaintyNs) {
		t.Errorf("the boot clock's offset is wrong by %s, more than ± %d ns", off, got.UncertaintyNs)
	}
	// The wall clock may be slewed meanwhile, by at most 500 ppm.
	if off := time.Duration(got.WallOffsetNs) - wallOffset; off.Abs() > time.Duration(got.UncertaintyNs)+
		time.Millisecond {
		t.Errorf("the wall clock's offset is wrong by %s, more than ± %d ns", off, got.UncertaintyNs)
	}
	if got.Exchanges != 6 || got.Peer != "car" || got.UncertaintyNs >= int64(20*time.Millisecond) {
		t.Errorf("got %+v", got)
	}
	if _, err := a.usual(t).ClockOffset(context.Background(), 0); err == nil {
		t.Error("no exchanges give an offset")
	}
}

// A node whose face was taken over answers the controller as it likes.
//
//attack:face whoever has taken it over sends the controller elsewhere, with what the call holds | no redirection is
//attack:and followed
//attack:face whoever has taken it over answers with a little that unfolds to a lot | nothing is unpacked, and an
//attack:and answer has 256 MiB at most, to the phone app 24 MiB, read piece by piece, unless it is a file
//attack:and (`AgentClientTest`)
func TestAnswersOfATakenOverNodeLeadNowhere(t *testing.T) {
	elsewhere := newAgent(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirection was followed")
	}))
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		"a redirection": {func(w http.ResponseWriter) {
			w.Header().Set("Location", elsewhere.server.URL+"/v1/clock")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "HTTP status 307"},
		"zeros, packed": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			_, _ = packed.Write(make([]byte, 64<<20))
			_ = packed.Close()
		}, "decode answer: invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
			_, err := a.client(t, a.controller, a.identity.Pin).Status(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// Arming waits for a car that comes back to its start. Whoever asks for less says so by the context.
func TestArmingIsWaitedForAsLongAsACarMayTake(t *testing.T) {
	longest := wire.Trial{Gate: wire.Gate{AtStart: true}, Routing: wire.Routing{Protocol: "olsr",
		ReadyS: new(wire.RoutingReadyMaxS)}}
	most := longest.Routing.ReadyLimit() + time.Duration(longest.ReturnArmingS())*time.Second
	if armTime < most+slowTime {
		t.Errorf("arming has %v, and may wait for %v besides its work", armTime, most)
	}
}
