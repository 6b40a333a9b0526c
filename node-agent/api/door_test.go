package api

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// knock tries a call with a TLS configuration and returns the answer's status.
func (b *bench) knock(config *tls.Config) (int, error) {
	conn, err := net.DialTimeout("tcp", b.address, 5*time.Second)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return 0, err
	}
	secure := tls.Client(conn, config)
	if _, err := io.WriteString(secure, "GET /v1/clock HTTP/1.1\r\nHost: node\r\n\r\n"); err != nil {
		return 0, err
	}
	response, err := http.ReadResponse(bufio.NewReader(secure), nil)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

//attack:network no key, or one that nobody let in | mutual TLS with pins
//attack:network a stolen certificate without its key | the handshake proves the key
//attack:network a certificate that is let in, sent along behind one's own | the first certificate is the peer's, and
//attack:and no other counts
//attack:network an older version of TLS, whose weaknesses are known | TLS 1.3 only
//attack:network plain HTTP, to be heard or changed on its way | TLS only
func TestWithoutAKnownKeyTheDoorIsClosed(t *testing.T) {
	b := start(t, nil)
	known := b.peers[wire.RoleController]
	bare := keys.ClientTLS(known, b.server.identity.Pin)
	bare.Certificates = nil
	old := keys.ClientTLS(known, b.server.identity.Pin)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	borrowed := keys.ClientTLS(testnet.Identity(t, "controller"), b.server.identity.Pin)
	// The known certificate in the second place, behind an own one.
	borrowed.Certificates[0].Certificate = append(borrowed.Certificates[0].Certificate,
		known.Certificate.Certificate[0])
	stolen := known.Certificate
	stolen.PrivateKey = testnet.Identity(t, "thief").Certificate.PrivateKey
	thief := keys.ClientTLS(known, b.server.identity.Pin)
	thief.Certificates = []tls.Certificate{stolen}
	for name, config := range map[string]*tls.Config{
		"no certificate":                     bare,
		"foreign certificate, known name":    keys.ClientTLS(testnet.Identity(t, "controller"), b.server.identity.Pin),
		"known certificate behind a foreign": borrowed,
		"known certificate without its key":  thief,
		"TLS 1.2":                            old,
	} {
		if status, err := b.knock(config); err == nil {
			t.Errorf("%s: answered with %d", name, status)
		}
	}
	if response, err := http.Get("http://" + b.address + "/v1/clock"); err == nil {
		defer response.Body.Close()
		if response.StatusCode/100 == 2 {
			t.Errorf("plain HTTP: %d", response.StatusCode)
		}
	}
	if status, err := b.knock(keys.ClientTLS(known, b.server.identity.Pin)); err != nil || status != 200 {
		t.Errorf("the known key: %d, %v", status, err)
	}
}

func TestClocksDoNotCount(t *testing.T) {
	b := start(t, nil)
	past := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "old-phone"},
		NotBefore: past, NotAfter: past.AddDate(0, 0, 1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	expired := keys.Identity{Name: "old-phone", Pin: keys.PinOf(certificate),
		Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}}
	if err := b.authorized.Add(keys.Peer{Name: "old-phone", Role: wire.RoleApp, Pin: expired.Pin}); err != nil {
		t.Fatal(err)
	}
	for _, year := range []int{1970, 2026, 2200} {
		config := keys.ClientTLS(expired, b.server.identity.Pin)
		config.Time = func() time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
		if status, err := b.knock(config); err != nil || status != 200 {
			t.Errorf("in the year %d: %d, %v", year, status, err)
		}
	}
}

//attack:network a key that was taken off the list, on a connection that is still open | every request looks it up
func TestRevokedPeerIsRefusedOnItsOpenConnection(t *testing.T) {
	b := start(t, nil)
	client := b.client(wire.RoleController)
	if r := b.askBy(client, "GET", "/v1/clock", ""); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if !b.authorized.Remove(wire.RoleController) {
		t.Fatal("the controller is not on the list")
	}
	if r := b.askBy(client, "GET", "/v1/clock", ""); r.status != 403 || r.code() != wire.CodeForbidden {
		t.Errorf("on the open connection: %d %s", r.status, r.body)
	}
	if status, err := b.knock(keys.ClientTLS(b.peers[wire.RoleController], b.server.identity.Pin)); err == nil {
		t.Errorf("on a new connection: %d", status)
	}
}

//attack:phone a phone that is revoked while it waits at a node for records or for news of the run | it is asked for
//attack:and again before it is answered
func TestAPhoneThatIsRevokedWhileItWaitsAtANodeIsToldNothing(t *testing.T) {
	b := start(t, nil)
	if r := b.ask(wire.RoleController, "PUT", "/v1/runs/velocity-1", golden(t, "run_plan")); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	told := make(chan reply, 2)
	for _, path := range []string{"/v1/runs/velocity-1?known=1&wait_ms=2000", "/v1/records?after=5&wait_ms=2000"} {
		client := b.client(wire.RoleApp)
		b.askBy(client, "GET", "/v1/node", "") // the connection stays open
		go func() { told <- b.askBy(client, "GET", path, "") }()
	}
	time.Sleep(200 * time.Millisecond) // they wait, or come too late: refused either way
	if !b.authorized.Remove(wire.RoleApp) {
		t.Fatal("the app is not on the list")
	}
	b.records.add()
	for range 2 {
		if r := <-told; r.status != 403 || r.code() != wire.CodeForbidden {
			t.Errorf("it is told: %d %s", r.status, r.body)
		}
	}
}

// ends waits until the server closes a connection and returns what it said.
func ends(t *testing.T, conn net.Conn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(conn)
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		t.Errorf("the server keeps the connection open: %v", err)
	}
	return string(data)
}

//attack:network slow clients: no handshake, half a header, half a body, an answer not read | deadlines for each
func TestSlowClientsAreDropped(t *testing.T) {
	b := start(t, func(s *Server) {
		s.times.header, s.times.body, s.times.idle = 200*time.Millisecond, 200*time.Millisecond, 300*time.Millisecond
	})
	silent, err := net.Dial("tcp", b.address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ends(t, silent) // no handshake

	half := b.dial()
	fmt.Fprint(half, "GET /v1/clock HT")
	ends(t, half)

	body := b.dial()
	fmt.Fprint(body, "PUT /v1/lease HTTP/1.1\r\nHost: n\r\nContent-Type: application/json\r\nContent-Length: "+
		"24\r\n\r\n{\"hold")
	if said := ends(t, body); !strings.HasPrefix(said, "HTTP/1.1 408 ") || !strings.Contains(said, wire.CodeTooSlow) {
		t.Errorf("a slow body is answered with %q", said)
	}

	unasked := b.dial() // a body where none belongs, that never comes
	fmt.Fprint(unasked, "POST /v1/restore HTTP/1.1\r\nHost: n\r\nContent-Length: 10000\r\n\r\n{")
	if said := ends(t, unasked); !strings.HasPrefix(said, "HTTP/1.1 200 ") {
		t.Errorf("a body that nobody asked for: %q", said)
	}

	idle := b.dial()
	fmt.Fprint(idle, "GET /v1/clock HTTP/1.1\r\nHost: n\r\n\r\n")
	if said := ends(t, idle); !strings.HasPrefix(said, "HTTP/1.1 200 ") {
		t.Errorf("an idle connection: %q", said)
	}
}

// say sends bytes over TLS as a peer that is let in, and returns the status of the first answer;
// 0: there was none.
func (b *bench) say(t *testing.T, config *tls.Config, text string) int {
	t.Helper()
	conn, err := tls.Dial("tcp", b.address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, text) // which may be cut off
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

//attack:network a request that two readers would cut at two places (two lengths, or a length and chunks of a kind
//attack:and that nobody knows) | it is not read
//attack:network headers, or a path, without an end | they have 16 KiB at most
func TestRequestsWithoutOneMeaningAreRefused(t *testing.T) {
	b := start(t, nil)
	config := keys.ClientTLS(b.peers[wire.RoleController], b.server.identity.Pin)
	const head = "PUT /v1/lease HTTP/1.1\r\nHost: car\r\nContent-Type: application/json\r\n"
	const smuggled = head + "Content-Length: 27\r\n\r\n{\"holder\":\"evil\",\"ttl_s\":9}"
	for name, c := range map[string]struct {
		text string
		want []int
	}{
		"two lengths":            {head + "Content-Length: 2\r\nContent-Length: 60\r\n\r\n{}" + smuggled, []int{400}},
		"a length of two values": {head + "Content-Length: 2, 60\r\n\r\n{}" + smuggled, []int{400}},
		"chunks of no kind":      {head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled, []int{400, 501}},
		"a space before a colon": {head + "Content-Length : 60\r\n\r\n" + smuggled, []int{400}},
		"a length with a sign":   {head + "Content-Length: +2\r\n\r\n{}" + smuggled, []int{400}},
		"headers without an end": {head + "X: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", []int{0, 431}},
		"a path without an end": {"GET /" + strings.Repeat("x", 64<<10) + " HTTP/1.1\r\nHost: car\r\n\r\n",
			[]int{0, 414, 431}},
	} {
		if got := b.say(t, config, c.text); !slices.Contains(c.want, got) {
			t.Errorf("%s: %d, want one of %v", name, got, c.want)
		}
		if b.node.holder != "" {
			t.Errorf("%s: what was smuggled in was done", name)
		}
	}
	if got := b.say(t, config, smuggled); got != 200 || b.node.holder == "" {
		t.Errorf("by itself what is smuggled in is answered %d", got)
	}
}

//attack:network HTTP/2, whose streams one connection opens and resets without an end | HTTP/1.1 only
//attack:network a TLS session that is taken up again after its key was taken off the list | sessions are not taken
//attack:and up again
func TestOnlyPlainSessionsAreHeld(t *testing.T) {
	b := start(t, nil)
	config := keys.ClientTLS(b.peers[wire.RoleController], b.server.identity.Pin)
	config.NextProtos = []string{"h2"}
	if conn, err := tls.Dial("tcp", b.address, config); err == nil {
		_, err = conn.Read(make([]byte, 1))
		t.Errorf("HTTP/2 is spoken: %v", errors.Join(err, conn.Close()))
	}
	config = keys.ClientTLS(b.peers[wire.RoleController], b.server.identity.Pin)
	config.SessionTicketsDisabled, config.ClientSessionCache = false, tls.NewLRUClientSessionCache(8)
	for range 2 {
		conn, err := tls.Dial("tcp", b.address, config)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET /v1/clock HTTP/1.1\r\nHost: car\r\nConnection: close\r\n\r\n")
		if _, err := io.ReadAll(conn); err != nil { // a ticket would come with the answer
			t.Error(err)
		}
		if conn.ConnectionState().DidResume {
			t.Error("a session is taken up again")
		}
		_ = conn.Close()
	}
}
