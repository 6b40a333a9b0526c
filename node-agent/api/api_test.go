package api

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func TestRoutesAreThoseOfTheDescription(t *testing.T) {
	b := start(t, nil)
	described := map[string][]string{}
	for path, item := range b.doc.Paths.Map() {
		for method, operation := range item.Operations() {
			described[method+" "+path] = slices.Sorted(maps.Keys(operation.Responses.Map()))
		}
	}
	if got, want := slices.Sorted(slices.Values(Routes())), slices.Sorted(maps.Keys(described)); !slices.Equal(got,
		want) {
		t.Errorf("the server has\n%s\nopenapi.yaml has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, r := range routes() {
		operation := b.doc.Paths.Value(r.path).GetOperation(r.method)
		if want := "Roles: " + strings.Join(r.roles, ", ") + "."; operation.Description != want {
			t.Errorf("%s %s: openapi.yaml says %q, the server %q", r.method, r.path, operation.Description, want)
		}
		var query []string
		for _, p := range operation.Parameters {
			if p.Value.In == "query" {
				query = append(query, p.Value.Name)
			}
		}
		if !slices.Equal(query, r.query) {
			t.Errorf("%s %s: openapi.yaml has the parameters %v, the server %v", r.method, r.path, query, r.query)
		}
		if (operation.RequestBody != nil) != (r.limit > 0) {
			t.Errorf("%s %s: openapi.yaml and the server do not agree about a body", r.method, r.path)
		}
	}
}

// photoSHA256 names the photo of the golden files.
const photoSHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

// script is every call once, in an order in which each succeeds.
func script(t *testing.T) []struct{ method, path, body string } {
	return []struct{ method, path, body string }{
		{"GET", "/v1/node", ""},
		{"GET", "/v1/clock", ""},
		{"PUT", "/v1/lease", golden(t, "lease")},
		{"PUT", "/v1/runs/velocity-1", golden(t, "run_plan")},
		{"GET", "/v1/runs/velocity-1", ""},
		{"GET", "/v1/runs/velocity-1/schedule", ""},
		{"POST", "/v1/gps", golden(t, "fix")},
		{"POST", "/v1/wifi", golden(t, "wifi_reading")},
		{"POST", "/v1/notes", golden(t, "note")},
		{"PUT", "/v1/apps", golden(t, "apps")},
		{"POST", "/v1/runs/velocity-1/arm", golden(t, "trial_key")},
		{"POST", "/v1/runs/velocity-1/abort", golden(t, "abort_request")},
		{"PUT", "/v1/runs/velocity-1/verdicts", golden(t, "verdicts")},
		{"GET", "/v1/runs/velocity-1/capture?trial=2&attempt=1&offset=4&bytes=3", ""},
		{"GET", "/v1/records?epoch=e1&after=2&limit=2", ""},
		{"PUT", "/v1/attachments", golden(t, "attachment_put")},
		{"GET", "/v1/attachments?sha256=" + photoSHA256, ""},
		{"GET", "/v1/attachments/data?sha256=" + photoSHA256 + "&offset=4&bytes=3", ""},
		{"POST", "/v1/attachments/archived", golden(t, "attachment_name")},
		{"POST", "/v1/records/confirm", `{"run":"r","epoch":"e1","seq":5}`},
		{"POST", "/v1/runs/velocity-1/end", ""},
		{"POST", "/v1/restore", ""},
	}
}

func TestEveryCallSucceedsAndConforms(t *testing.T) {
	b := start(t, nil)
	clients := map[string]*http.Client{wire.RoleController: b.client(wire.RoleController),
		wire.RoleApp: b.client(wire.RoleApp)}
	called := map[string]bool{}
	for range 2 { // every call is idempotent: the second round succeeds as well
		for _, c := range script(t) {
			by, _, _ := find(routes(), c.method, strings.Split(c.path, "?")[0])
			client := clients[wire.RoleController]
			if !slices.Contains(by.roles, wire.RoleController) {
				client = clients[by.roles[0]]
			}
			if r := b.askBy(client, c.method, c.path, c.body); r.status != http.StatusOK {
				t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.body)
			}
			path, _, _ := strings.Cut(c.path, "?")
			route, _, _ := find(routes(), c.method, path)
			called[route.method+" "+route.path] = true
		}
	}
	if len(called) != len(routes()) {
		t.Errorf("the script makes %d calls of %d", len(called), len(routes()))
	}
	if b.records.confirmed != 5 {
		t.Errorf("confirmed up to %d, want 5", b.records.confirmed)
	}
	var got, want wire.RunPlan
	if err := json.Unmarshal([]byte(golden(t, "run_plan")), &want); err != nil {
		t.Fatal(err)
	}
	got = b.node.plans["velocity-1"]
	if a, c := testnet.JSON(t, got), testnet.JSON(t, want); a != c {
		t.Errorf("the node got the plan\n%s\nwant\n%s", a, c)
	}
}

func TestTheGeneratorIsTriedWhenAskedTo(t *testing.T) {
	b := start(t, nil)
	for i, path := range []string{"/v1/node", "/v1/node?generator=0", "/v1/node?generator=1"} {
		if r := b.ask(wire.RoleController, "GET", path, ""); r.status != http.StatusOK {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
		if tried, want := b.node.tried.Load(), int32(i/2); tried != want {
			t.Errorf("%s: tried %d times, want %d", path, tried, want)
		}
	}
}

//attack:phone an app that loads or arms | roles, a list for each call
func TestRolesMayDoWhatIsTheirs(t *testing.T) {
	b := start(t, nil)
	allowed := map[string]string{
		wire.RoleApp: "GET /v1/node, GET /v1/clock, GET /v1/runs/velocity-1, GET /v1/runs/velocity-1/schedule, POST " +
			"/v1/gps, POST /v1/wifi, POST /v1/notes, POST /v1/runs/velocity-1/abort, PUT " +
			"/v1/attachments, GET /v1/attachments?sha256=" + photoSHA256 +
			", GET /v1/records?epoch=e1&after=2&limit=2, POST /v1/restore",
		wire.RoleNode: "GET /v1/clock",
	}
	if r := b.ask(wire.RoleController, "PUT", "/v1/runs/velocity-1", golden(t, "run_plan")); r.status != http.StatusOK {
		t.Fatalf("load: %d %s", r.status, r.body)
	}
	for role, list := range allowed {
		client := b.client(role)
		for _, c := range script(t) {
			want := http.StatusForbidden
			if slices.Contains(strings.Split(list, ", "), c.method+" "+c.path) {
				want = http.StatusOK
			}
			if r := b.askBy(client, c.method, c.path, c.body); r.status != want {
				t.Errorf("%s: %s %s: %d, want %d", role, c.method, c.path, r.status, want)
			}
		}
	}
	if log := b.end(); !strings.Contains(log, `role=node`) || !strings.Contains(log, "is not for the role node") {
		t.Errorf("refusals are not in the log:\n%s", log)
	}
}

//attack:network path traversal in names of runs, nodes, trials
func TestWhatIsNotThereIsSaid(t *testing.T) {
	b := start(t, nil)
	client := b.client(wire.RoleController)
	cases := []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/", 404, ""},
		{"GET", "/v1", 404, ""},
		{"GET", "/v1/node/", 404, ""},
		{"GET", "//v1/node", 404, ""},
		{"GET", "/v1/runs/a%2fb/../../node", 404, ""},
		{"GET", "/v1/runs/none", 404, ""},
		{"GET", "/v1/runs/%2e%2e", 400, ""},
		{"GET", "/v1/runs/A", 400, ""},
		{"GET", "/v1/runs/" + strings.Repeat("a", 65), 400, ""},
		{"DELETE", "/v1/node", 405, "GET"},
		{"HEAD", "/v1/node", 405, "GET"},
		{"POST", "/v1/runs/velocity-1", 405, "PUT, GET"},
		{"GET", "/v1/node?verbose=1", 400, ""},
		{"GET", "/v1/records?after=1&after=2", 400, ""},
		{"GET", "/v1/records?after=-1", 400, ""},
		{"GET", "/v1/records?after=1e3", 400, ""},
		{"GET", "/v1/records?limit=0", 400, ""},
		{"GET", "/v1/records?limit=10001", 400, ""},
		{"GET", "/v1/records?wait_ms=30001", 400, ""},
		{"GET", "/v1/records?epoch=", 400, ""},
		{"GET", "/v1/records?epoch=a/b", 400, ""},
		{"GET", "/v1/attachments?sha256=../node", 400, ""},
		{"GET", "/v1/attachments/data", 400, ""},
		{"GET", "/v1/records?after=%zz", 400, ""},
		{"GET", "/v1/runs/velocity-1?known=18446744073709551615", 400, ""},
		{"GET", "/v1/node?generator=2", 400, ""},
		{"GET", "/v1/node?mesh=10.77.0.1/24,fd77::2", 400, ""},
		{"GET", "/v1/node?mesh=10.77.0.1", 400, ""},
	}
	for _, c := range cases {
		r := b.askBy(client, c.method, c.path, "")
		if r.status != c.status || r.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q; want %d, %q: %s", c.method, c.path, r.status, r.header.Get("Allow"),
				c.status, c.allow, r.body)
		}
	}
}

func TestTheInterfaceOfTheConnectionIsTold(t *testing.T) {
	b := start(t, nil)
	if r := b.askBy(b.client(wire.RoleApp), http.MethodGet, "/v1/node", ""); !strings.Contains(string(r.body),
		`"reached_by":"lo"`) {
		t.Errorf("%s", r.body)
	}
}

func TestTheWaysToOthersAreAskedFor(t *testing.T) {
	b := start(t, nil)
	r := b.askBy(b.client(wire.RoleController), http.MethodGet, "/v1/node?mesh=10.77.0.1/24,10.77.0.2,10.77.0.3", "")
	if r.status != http.StatusOK || !strings.Contains(string(r.body), `"found":"10.77.0.1/24 [10.77.0.2 10.77.0.3]"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
}

//attack:network unknown fields, wrong types, absurd numbers | strict reading, bounds for every field
//attack:network a name twice in a body, of which one reader takes the first and another the last | each name once
//attack:controller a plan that is loaded under another run's name | the path's name is the plan's
func TestBodiesAreReadStrictly(t *testing.T) {
	b := start(t, nil)
	client := b.client(wire.RoleController)
	plan := golden(t, "run_plan")
	cases := []struct{ path, body, want string }{
		{"/v1/lease", `{"holder":"a","ttl_s":1,"force":true}`, `body: unknown name "force", at byte 31`},
		{"/v1/lease", `{"holder":"a"}`, "body: ttl_s missing"},
		{"/v1/lease", `{"Holder":"a","ttl_s":1}`, `unknown name "Holder"`},
		{"/v1/lease", `{"holder":"a","ttl_s":1,"ttl_s":2}`, `name "ttl_s" is there twice`},
		{"/v1/lease", `{"holder":null,"ttl_s":1}`, "body.holder: null is not taken"},
		{"/v1/lease", `null`, "null is not taken"},
		{"/v1/lease", `[]`, "a JSON array does not fit"},
		{"/v1/lease", `"a"`, "does not fit"},
		{"/v1/lease", `{"holder":"a","ttl_s":"1"}`, "body.ttl_s: a JSON string does not fit"},
		{"/v1/lease", `{"holder":"a","ttl_s":1}{}`, "more text after"},
		{"/v1/lease", `{"holder":"a","ttl_s":`, "ends too early"},
		{"/v1/lease", `{"holder":"a","ttl_s":-1}`, "lease: ttl_s: -1"},
		{"/v1/lease", `{"holder":"a","ttl_s":1e400}`, "does not fit"},
		{"/v1/lease", `{"holder":"","ttl_s":1}`, "lease: holder"},
		{"/v1/runs/other", plan, `plan: run: "velocity-1", but the path names "other"`},
		{"/v1/runs/velocity-1", strings.Replace(plan, `"timeout_s": 120`, `"timeout_s": 120, "timeout_ms": 1`, 1),
			`body.trials[0].gate: unknown name "timeout_ms"`},
		{"/v1/runs/velocity-1", strings.Replace(plan, `"streams": 6`, `"streams": 0`, 1),
			"plan: trials[0].traffic[0].streams: 0"},
		{"/v1/runs/velocity-1/verdicts", `[{"trial":1,"attempt":1,"outcome":"won","final":true}]`,
			`body[0]: outcome: "won"`},
		{"/v1/runs/velocity-1/verdicts", `[{"trial":1,"attempt":1,"outcome":"accepted"}]`, "body[0]: final missing"},
	}
	for _, c := range cases {
		r := b.askBy(client, "PUT", c.path, c.body)
		if r.status != http.StatusBadRequest || !strings.Contains(message(t, r), c.want) {
			t.Errorf("PUT %s %.60s: %d %s, want 400 with %q", c.path, c.body, r.status, r.body, c.want)
		}
	}
	for _, body := range []string{`{"trial":0,"attempt":1}`, `{"trial":1.5,"attempt":1}`, `{"trial":1,"attempt":1001}`,
		""} {
		if r := b.askBy(client, "POST", "/v1/runs/velocity-1/arm", body); r.status/100 != 4 {
			t.Errorf("arm %s: %d", body, r.status)
		}
	}
	if len(b.node.plans) != 0 || b.node.holder != "" {
		t.Errorf("something bad reached the node: %v, %q", b.node.plans, b.node.holder)
	}
}

func message(t *testing.T, r reply) string {
	t.Helper()
	var e wire.Error
	if err := json.Unmarshal(r.body, &e); err != nil {
		t.Fatal(err)
	}
	return e.Message
}

//attack:network bodies of 100 MB, announced or chunked | 1 MiB, 24 MiB for a plan; the rest is not read
func TestLargeBodiesAreRefused(t *testing.T) {
	b := start(t, nil)
	client := b.client(wire.RoleController)
	for path, size := range map[string]int{"/v1/lease": bodyLimit + 1, "/v1/runs/velocity-1": planLimit + 1} {
		r := b.askBy(client, "PUT", path, `"`+strings.Repeat("x", size)+`"`)
		if r.status != http.StatusRequestEntityTooLarge || r.code() != wire.CodeTooLarge {
			t.Errorf("PUT %s with %d bytes: %d %s", path, size, r.status, r.body)
		}
	}
	// Chunked, the size is not announced.
	chunked := struct{ *strings.Reader }{strings.NewReader(strings.Repeat(" ", bodyLimit+1))}
	if got := b.putLease(t, "application/json", chunked); got != http.StatusRequestEntityTooLarge {
		t.Errorf("chunked: %d", got)
	}
}

// putLease sends a body as it is, and returns the status of the answer.
func (b *bench) putLease(t *testing.T, contentType string, body io.Reader) int {
	t.Helper()
	request, err := http.NewRequest("PUT", "https://"+b.address+"/v1/lease", body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := b.client(wire.RoleController).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

//attack:network a page in the browser of somebody who is let in, which posts a form | only JSON is taken, which no
//attack:and form is
func TestOnlyJSONIsTaken(t *testing.T) {
	b := start(t, nil)
	if got := b.putLease(t, "text/plain", strings.NewReader(`{"holder":"a","ttl_s":1}`)); got !=
		http.StatusUnsupportedMediaType {
		t.Errorf("got %d, want 415", got)
	}
}

func TestErrorsOfTheNodeReachThePeer(t *testing.T) {
	for code, status := range map[string]int{
		wire.CodeBadRequest: 400, wire.CodeForbidden: 403, wire.CodeNotFound: 404, wire.CodeMethodNotAllowed: 405,
		wire.CodeTooSlow: 408, "a_new_word": 409, wire.CodeTooLarge: 413, wire.CodeMediaType: 415,
		wire.CodeInternal: 500, wire.CodeUnavailable: 503, wire.CodeDiskFull: 507,
	} {
		if got := wire.HTTPStatus(code); got != status {
			t.Errorf("%s is answered with %d, want %d", code, got, status)
		}
	}
	b := start(t, nil)
	if r := b.ask(wire.RoleController, "PUT", "/v1/lease", `{"holder":"a","ttl_s":9}`); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if r := b.ask(wire.RoleController, "PUT", "/v1/lease", `{"holder":"b","ttl_s":9}`); r.status != 409 ||
		r.code() != wire.CodeLeaseHeld {
		t.Errorf("second lease: %d %s", r.status, r.body)
	}
	if e := asWire(errors.New("spool: broken")); e.Code != wire.CodeInternal ||
		!strings.Contains(e.Message, "spool: broken") {
		t.Errorf("a plain error becomes %+v", e)
	}
}

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	b := start(t, nil)
	b.node.fault = func() { panic("broken") }
	client := b.client(wire.RoleController)
	if r := b.askBy(client, "GET", "/v1/node", ""); r.status != 500 || r.code() != wire.CodeInternal {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := b.askBy(client, "GET", "/v1/clock", ""); r.status != 200 {
		t.Errorf("after a panic: %d %s", r.status, r.body)
	}
	if log := b.end(); !strings.Contains(log, "panic=broken") || !strings.Contains(log, "fakeNode") {
		t.Errorf("the panic and its stack are not in the log:\n%s", log)
	}
}

func TestRecordsAreReadByOffset(t *testing.T) {
	b := start(t, nil)
	client := b.client(wire.RoleController)
	cases := []struct{ query, first, last string }{
		{"", `{"kind":"event","seq":1}`, "5"},
		{"?epoch=e1&after=2&limit=2", `{"kind":"event","seq":3}`, "4"},
		{"?after=4", `{"kind":"event","seq":5}`, "5"},
		{"?epoch=other&after=4", `{"kind":"event","seq":1}`, "5"},
		{"?epoch=e1&after=5", "", "5"},
		{"?epoch=e1&after=99", "", "99"},
	}
	for _, c := range cases {
		r := b.askBy(client, "GET", "/v1/records"+c.query, "")
		first, _, _ := strings.Cut(string(r.body), "\n")
		if r.status != 200 || first != c.first || r.header.Get("Fieldmesh-Last") != c.last ||
			r.header.Get("Fieldmesh-Epoch") != "e1" {
			t.Errorf("%s: %d, %q, %v", c.query, r.status, first, r.header)
		}
	}
	for body, want := range map[string]string{
		`{"run":"r","epoch":"e0","seq":1}`:                    wire.CodeEpochChanged,
		`{"run":"r","epoch":"e1","seq":6}`:                    wire.CodeConflict,
		`{"run":"r","epoch":"e1","seq":9223372036854775808}`:  wire.CodeBadRequest,
		`{"run":"r","epoch":"../../etc/passwd","seq":0}`:      wire.CodeBadRequest,
		`{"run":"r","epoch":"e1","seq":-1}`:                   wire.CodeBadRequest,
		`{"run":"r","epoch":"e1","seq":18446744073709551616}`: wire.CodeBadRequest,
		`{"run":"a b","epoch":"e1","seq":1}`:                  wire.CodeBadRequest,
		`{"epoch":"e1","seq":1}`:                              wire.CodeBadRequest, // of which run?
	} {
		if r := b.askBy(client, "POST", "/v1/records/confirm", body); r.code() != want {
			t.Errorf("confirm %s: %d %s, want %s", body, r.status, r.body, want)
		}
	}
	// Of a run that is under way, whose records nobody has, none are dropped; a controller's own word is taken.
	b.node.holder = "desk"
	for body, want := range map[string]int{`{"run":"r","epoch":"e1","seq":0,"over":true}`: http.StatusConflict,
		`{"run":"r","epoch":"e1","seq":5,"over":true}`: http.StatusOK, `{"run":"r","epoch":"e1","seq":0}`: http.StatusOK} {
		if r := b.askBy(client, "POST", "/v1/records/confirm", body); r.status != want {
			t.Errorf("confirm %s: %d %s, want %d", body, r.status, r.body, want)
		}
	}
	b.node.holder = ""
	const forgotten = `{"run":"r","epoch":"e1","seq":0,"over":true}`
	if r := b.askBy(client, "POST", "/v1/records/confirm", forgotten); r.status != http.StatusOK {
		t.Errorf("confirm %s: %d %s", forgotten, r.status, r.body)
	}
}

func TestPollsWaitForSomethingNew(t *testing.T) {
	// A poll outlasts the time that a body has to arrive.
	b := start(t, func(s *Server) { s.times.body = 50 * time.Millisecond })
	client := b.client(wire.RoleController)
	if r := b.askBy(client, "PUT", "/v1/runs/velocity-1", golden(t, "run_plan")); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if r := b.askBy(client, "GET", "/v1/runs/velocity-1?known=1&wait_ms=300", ""); r.status != 200 ||
		!strings.Contains(string(r.body), `"version":1,`) {
		t.Errorf("poll without news: %d %s", r.status, r.body)
	}
	if r := b.askBy(client, "GET", "/v1/records?after=5&wait_ms=200", ""); r.status != 200 || len(r.body) != 0 {
		t.Errorf("poll without records: %d %s", r.status, r.body)
	}
	done := make(chan string, 2)
	for _, path := range []string{"/v1/runs/velocity-1?known=1&wait_ms=30000", "/v1/records?after=5&wait_ms=30000"} {
		go func() { done <- string(b.ask(wire.RoleController, "GET", path, "").body) }()
	}
	time.Sleep(100 * time.Millisecond) // so that the polls are likely to be waiting; either way they must end
	b.records.add()
	if r := b.askBy(client, "POST", "/v1/runs/velocity-1/arm", golden(t, "trial_key")); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	news := <-done + <-done
	if !strings.Contains(news, `"version":2,`) || !strings.Contains(news, `"seq":6`) {
		t.Errorf("the polls brought %s", news)
	}
}

func TestEndOfTheServerEndsPolls(t *testing.T) {
	b := start(t, nil)
	done := make(chan reply, 1)
	go func() { done <- b.ask(wire.RoleController, "GET", "/v1/records?after=5&wait_ms=30000", "") }()
	time.Sleep(200 * time.Millisecond)
	begin := time.Now()
	b.end()
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("the server needed %s to end", took)
	}
	if r := <-done; r.status != 200 {
		t.Errorf("the poll was answered with %d %s", r.status, r.body)
	}
}

// Arming waits for a car that comes back to its start, for longer than any other call takes.
func TestArmingMayTakeLongerThanOtherCalls(t *testing.T) {
	b := start(t, func(s *Server) { s.times.work = 50 * time.Millisecond })
	b.node.arming = 200 * time.Millisecond
	client := b.client(wire.RoleController)
	if r := b.askBy(client, "PUT", "/v1/runs/velocity-1", golden(t, "run_plan")); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if r := b.askBy(client, "POST", "/v1/runs/velocity-1/arm", golden(t, "trial_key")); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	longest := wire.Trial{Gate: wire.Gate{AtStart: true}, Routing: wire.Routing{Protocol: "olsr",
		ReadyS: new(wire.RoutingReadyMaxS)}}
	most := longest.Routing.ReadyLimit() + time.Duration(longest.ReturnArmingS())*time.Second
	if got := usualTimes().arm; got < most+time.Minute {
		t.Errorf("arming has %v, and may wait for %v besides its work", got, most)
	}
}
