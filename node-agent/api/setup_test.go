package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// bench is a server on loopback with a peer of each role.
type bench struct {
	t          *testing.T
	server     *Server
	node       *fakeNode
	records    *fakeRecords
	authorized *keys.Authorized
	address    string
	peers      map[string]keys.Identity // by role
	log        *bytes.Buffer
	stop       context.CancelFunc
	ended      chan error
	doc        *openapi3.T
}

// start serves until the test ends. change, if any, is applied before.
func start(t *testing.T, change func(*Server)) *bench {
	t.Helper()
	b := &bench{t: t, node: newFakeNode(), records: newFakeRecords(5), peers: map[string]keys.Identity{},
		log: &bytes.Buffer{}, ended: make(chan error, 1)}
	var err error
	if b.authorized, err = keys.NewAuthorized(); err != nil {
		t.Fatal(err)
	}
	for _, role := range everyone {
		b.peers[role] = testnet.Identity(t, role)
		if err := b.authorized.Add(keys.Peer{Name: role, Role: role, Pin: b.peers[role].Pin}); err != nil {
			t.Fatal(err)
		}
	}
	if b.doc, err = openapi3.NewLoader().LoadFromFile("../../protocols/wire/openapi.yaml"); err != nil {
		t.Fatal(err)
	}
	b.server = New(testnet.Identity(t, "car"), b.authorized, b.node, b.records,
		slog.New(slog.NewTextHandler(b.log, nil)))
	if change != nil {
		change(b.server)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	go func() { b.ended <- b.server.Serve(ctx, listener) }()
	t.Cleanup(func() { b.end() })
	return b
}

// end stops the server, once, and reads its log only then.
func (b *bench) end() string {
	b.t.Helper()
	b.stop()
	select {
	case err := <-b.ended:
		if err != nil {
			b.t.Errorf("serve: %v", err)
		}
		b.ended <- nil
	case <-time.After(20 * time.Second):
		b.t.Error("the server does not end")
	}
	return b.log.String()
}

func (b *bench) client(role string) *http.Client {
	transport := &http.Transport{TLSClientConfig: keys.ClientTLS(b.peers[role], b.server.identity.Pin)}
	b.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// dial makes a bare TLS connection as the controller.
func (b *bench) dial() *tls.Conn {
	b.t.Helper()
	conn, err := tls.Dial("tcp", b.address, keys.ClientTLS(b.peers[wire.RoleController], b.server.identity.Pin))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { conn.Close() })
	return conn
}

// reply is an answer, read whole.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) code() string {
	var e wire.Error
	if json.Unmarshal(r.body, &e) != nil {
		return ""
	}
	return e.Code
}

func (b *bench) ask(role, method, path, body string) reply {
	b.t.Helper()
	return b.askBy(b.client(role), method, path, body)
}

func (b *bench) askBy(client *http.Client, method, path, body string) reply {
	b.t.Helper()
	request, err := http.NewRequest(method, "https://"+b.address+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	r := reply{response.StatusCode, response.Header, data}
	b.conforms(method, path, r)
	return r
}

// conforms checks an answer against openapi.yaml: status, media type, schema.
func (b *bench) conforms(method, path string, r reply) {
	b.t.Helper()
	path, _, _ = strings.Cut(path, "?")
	found, _, _ := find(routes(), method, path)
	if found == nil { // 404 and 405 of what is not described have an Error all the same
		if r.code() == "" && method != http.MethodHead {
			b.t.Errorf("%s %s: %d without an error body: %.200q", method, path, r.status, r.body)
		}
		return
	}
	operation := b.doc.Paths.Value(found.path).GetOperation(method)
	described := operation.Responses.Status(r.status)
	if described == nil {
		b.t.Errorf("%s %s: status %d is not in openapi.yaml", method, path, r.status)
		return
	}
	media := described.Value.Content.Get(r.header.Get("Content-Type"))
	if media == nil {
		b.t.Errorf("%s %s: %d as %q is not in openapi.yaml", method, path, r.status, r.header.Get("Content-Type"))
		return
	}
	for name, header := range described.Value.Headers {
		if header.Value.Required && r.header.Get(name) == "" {
			b.t.Errorf("%s %s: header %s is missing", method, path, name)
		}
	}
	var value any = string(r.body)
	if r.header.Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(r.body, &value); err != nil {
			b.t.Fatalf("%s %s: %v in %.200q", method, path, err, r.body)
		}
	}
	if err := media.Schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		b.t.Errorf("%s %s: %d: %v", method, path, r.status, err)
	}
}

func golden(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../protocols/wire/golden/body_" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
