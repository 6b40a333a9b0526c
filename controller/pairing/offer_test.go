package pairing

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/pairing"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// stand is an offer for the node "car" that waits on loopback, with a clock of
// the test's.
type stand struct {
	t        *testing.T
	offer    *Offer
	address  string
	ended    chan error
	log      testnet.Output
	mu       sync.Mutex
	time     time.Time
	slept    time.Duration
	admitted []Newcomer
	fail     error // of Admit
}

func begin(t *testing.T) *stand {
	t.Helper()
	s := &stand{t: t, ended: make(chan error, 1), time: time.Now()}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	s.offer = &Offer{Identity: testnet.Identity(t, "controller"), Name: "car", Role: wire.RoleNode,
		Until: s.time.Add(pairing.Valid),
		Log:   slog.New(slog.NewTextHandler(&s.log, nil)), now: s.now, wall: s.wall,
		Admit: func(n Newcomer) (pairing.Reply, error) {
			s.admitted = append(s.admitted, n)
			return pairing.Reply{Authorized: []keys.Peer{{Name: "controller", Role: wire.RoleController,
				Pin: s.offer.Identity.Pin}}}, s.fail
		}}
	if s.offer.Code, err = pairing.New(s.address, s.offer.Identity.Pin); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { s.ended <- s.offer.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		<-s.ended
	})
	// Its time counts from when it answers; only then may a test turn the clock.
	if _, refused := s.post(testnet.Identity(t, "nobody"), struct{}{}); refused != wire.CodeBadRequest {
		t.Fatalf("an empty request: %q", refused)
	}
	return s
}

func (s *stand) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.time
}

func (s *stand) wall() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.time.Add(s.slept).Round(0)
}

// sleep lets time go by on the offer's wall clock alone.
func (s *stand) sleep(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slept += d
}

// pass lets time go by on the offer's clock.
func (s *stand) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.time = s.time.Add(d)
}

func (s *stand) waitEnd() error {
	s.t.Helper()
	select {
	case err := <-s.ended:
		s.ended <- nil // for the cleanup
		return err
	case <-time.After(30 * time.Second):
		s.t.Fatal("the offer does not end")
		return nil
	}
}

func (s *stand) request(own keys.Identity, code pairing.Code) pairing.Request {
	r := pairing.Request{Version: pairing.Version, Name: "car", Role: wire.RoleNode, Listen: ":7443"}
	r.Proof = code.Prove(s.offer.Identity.Pin, own.Pin, r)
	return r
}

// post sends a request as own, and returns the reply or the error's code.
func (s *stand) post(own keys.Identity, body any) (pairing.Reply, string) {
	s.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: pairing.ClientTLS(own, s.offer.Code), DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	response, err := client.Post("https://"+s.address+pairing.Path, "application/json", bytes.NewReader(data))
	if err != nil {
		return pairing.Reply{}, "no answer: " + err.Error()
	}
	defer response.Body.Close()
	if data, err = io.ReadAll(response.Body); err != nil {
		s.t.Fatal(err)
	}
	var reply pairing.Reply
	var refused wire.Error
	if response.StatusCode == http.StatusOK {
		err = json.Unmarshal(data, &reply)
	} else {
		err = json.Unmarshal(data, &refused)
	}
	if err != nil {
		s.t.Fatalf("%d %q: %v", response.StatusCode, data, err)
	}
	return reply, refused.Code
}

//attack:network a code used twice, or by two at once | one is let in, under a lock
func TestTheOneWithTheCodeIsLetInOnce(t *testing.T) {
	s := begin(t)
	own := testnet.Identity(t, "car")
	r := s.request(own, s.offer.Code)
	reply, refused := s.post(own, r)
	if refused != "" || !s.offer.Code.Admits(s.offer.Identity.Pin, own.Pin, reply) || reply.Name != "car" ||
		len(reply.Authorized) != 1 {
		t.Fatalf("reply %+v, %q", reply, refused)
	}
	if err := s.waitEnd(); err != nil {
		t.Error(err)
	}
	if len(s.admitted) != 1 || s.admitted[0].Pin != own.Pin || s.admitted[0].Port != "7443" || s.admitted[0].Remote !=
		"127.0.0.1" {
		t.Errorf("admitted %+v", s.admitted)
	}
	// The door is shut; and an offer that has been used answers nobody, whatever is shown.
	if _, refused := s.post(own, r); !strings.HasPrefix(refused, "no answer") {
		t.Errorf("after the end: %q", refused)
	}
	s.pass(time.Minute)
	var used *wire.Error
	if err := s.offer.check(r, own.Pin); !errors.As(err, &used) || used.Code != pairing.CodeUsed {
		t.Errorf("used twice: %v", err)
	}
}

// Two come at the same moment with the right code: one is let in.
//
//attack:network a code used twice, or by two at once
func TestOfTwoAtOnceOneIsLetIn(t *testing.T) {
	s := begin(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	in := 0
	for range 8 {
		own := testnet.Identity(t, "car")
		wg.Go(func() {
			if _, refused := s.post(own, s.request(own, s.offer.Code)); refused == "" {
				mu.Lock()
				defer mu.Unlock()
				in++
			}
		})
	}
	wg.Wait()
	if in != 1 || len(s.admitted) != 1 {
		t.Errorf("%d let in, %d admitted", in, len(s.admitted))
	}
}

//attack:network a wrong code, a guess | HMAC with the code's 128 bits
//attack:network a proof that was seen, for another key, name or role
func TestAWrongCodeIsRefusedAndLogged(t *testing.T) {
	s := begin(t)
	s.pass(logEvery)
	own, thief := testnet.Identity(t, "car"), testnet.Identity(t, "car")
	wrong, err := pairing.New(s.address, s.offer.Identity.Pin)
	if err != nil {
		t.Fatal(err)
	}
	if _, refused := s.post(thief, s.request(thief, wrong)); refused != pairing.CodeWrong {
		t.Errorf("another code: %q", refused)
	}
	s.pass(logEvery)
	// Overheard: a right proof, made for another's key.
	if _, refused := s.post(thief, s.request(own, s.offer.Code)); refused != pairing.CodeWrong {
		t.Errorf("another's proof: %q", refused)
	}
	if _, refused := s.post(own, s.request(own, s.offer.Code)); refused != "" {
		t.Errorf("the right one: %q", refused)
	}
	if err := s.waitEnd(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(s.log.String(), "code="+pairing.CodeWrong); n != 2 {
		t.Errorf("%d wrong codes are logged:\n%s", n, s.log.String())
	}
}

// A port scanner's handshakes, which fail, do not keep a person's wrong code out of the log.
func TestAWrongCodeIsLoggedBesideFailedHandshakes(t *testing.T) {
	s := begin(t)
	s.pass(logEvery)
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if strings.Contains(s.log.String(), "TLS handshake error") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	own := testnet.Identity(t, "car")
	r := s.request(own, s.offer.Code)
	r.Proof = strings.Repeat("0", 64)
	if _, refused := s.post(own, r); refused != pairing.CodeWrong {
		t.Errorf("a wrong code: %q", refused)
	}
	if log := s.log.String(); !strings.Contains(log, "TLS handshake error") ||
		!strings.Contains(log, "code="+pairing.CodeWrong) {
		t.Errorf("a failed handshake and a wrong code at once are logged as\n%s", log)
	}
}

// Whoever tries codes neither keeps the right one out nor fills the log.
//
//attack:network wrong codes without end, to keep the right one out | they are refused, and delay nobody
func TestWhoTriesCodesKeepsNobodyOut(t *testing.T) {
	s := begin(t)
	s.pass(logEvery)
	own, thief := testnet.Identity(t, "car"), testnet.Identity(t, "car")
	r := s.request(thief, s.offer.Code)
	r.Proof = strings.Repeat("0", 64)
	for range 50 {
		if _, refused := s.post(thief, r); refused != pairing.CodeWrong {
			t.Fatalf("a guess: %q", refused)
		}
	}
	s.pass(logEvery)
	if _, refused := s.post(thief, r); refused != pairing.CodeWrong {
		t.Fatalf("a guess: %q", refused)
	}
	if _, refused := s.post(own, s.request(own, s.offer.Code)); refused != "" {
		t.Errorf("the right one: %q", refused)
	}
	if err := s.waitEnd(); err != nil {
		t.Error(err)
	}
	if log := s.log.String(); strings.Count(log, "code="+pairing.CodeWrong) != 2 ||
		!strings.Contains(log, "unlogged_before=49") {
		t.Errorf("51 guesses in two seconds are logged as\n%s", log)
	}
}

// Keys cost nothing: who opens connections by the hundred ends each handshake, too.
//
//attack:network connections of made-up keys that are held open, to keep the right one from pairing | 64 of all who have
//attack:and not shown the code; one more takes the place of the oldest, of the address that has the most
func TestWhoHoldsConnectionsKeepsNobodyFromPairing(t *testing.T) {
	s := begin(t)
	var held []*tls.Conn
	for range 5 {
		thief := testnet.Identity(t, "car")
		for i := range 32 {
			d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			conn, err := tls.DialWithDialer(d, "tcp", s.address, pairing.ClientTLS(thief, s.offer.Code))
			if err != nil {
				t.Fatal(err)
			}
			if held = append(held, conn); i%2 == 0 { // half say nothing, and half do not end what they say
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: car\r\nContent-Length: 1000\r\n\r\n{", pairing.Path)
			}
		}
	}
	own := testnet.Identity(t, "car")
	if _, refused := s.post(own, s.request(own, s.offer.Code)); refused != "" {
		t.Errorf("the right one: %q", refused)
	}
	for _, conn := range held {
		_ = conn.Close()
	}
	if err := s.waitEnd(); err != nil {
		t.Error(err)
	}
	if log := s.log.String(); strings.Count(log, "\n") > 20 {
		t.Errorf("%d connections are logged as\n%s", len(held), log)
	}
}

// The wall clock is an hour on after the machine has slept, and the monotonic one is not.
//
//attack:network a code after its five minutes | the offer ends, by the wall clock too: a controller may have slept
func TestACodeExpires(t *testing.T) {
	for name, pass := range map[string]func(*stand){
		"both clocks":    func(s *stand) { s.pass(pairing.Valid) },
		"the wall clock": func(s *stand) { s.sleep(time.Hour) },
	} {
		s := begin(t)
		own := testnet.Identity(t, "car")
		pass(s)
		var refused *wire.Error
		if err := s.offer.check(s.request(own, s.offer.Code), own.Pin); !errors.As(err, &refused) ||
			refused.Code != pairing.CodeExpired {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.waitEnd(); !errors.Is(err, ErrExpired) || len(s.admitted) != 0 {
			t.Errorf("%s: %v, admitted %+v", name, err, s.admitted)
		}
	}
}

// A name or a role other than the code's is said; the code stays good.
func TestAMistakeIsSaidAndTheCodeStaysGood(t *testing.T) {
	s := begin(t)
	own := testnet.Identity(t, "van")
	for _, change := range []func(*pairing.Request){
		func(r *pairing.Request) { r.Name = "van" },
		func(r *pairing.Request) { r.Name, r.Role, r.Listen = "", wire.RoleApp, "" },
	} {
		r := s.request(own, s.offer.Code)
		change(&r)
		r.Proof = s.offer.Code.Prove(s.offer.Identity.Pin, own.Pin, r)
		if _, refused := s.post(own, r); refused != wire.CodeConflict {
			t.Errorf("%+v: %q", r, refused)
		}
		s.pass(logEvery)
	}
	s.fail = errors.New("disk full")
	if _, refused := s.post(own, s.request(own, s.offer.Code)); refused != wire.CodeInternal {
		t.Errorf("a fleet that cannot be written: %q", refused)
	}
	s.fail = nil
	s.pass(logEvery)
	if _, refused := s.post(own, s.request(own, s.offer.Code)); refused != "" {
		t.Errorf("the right one: %q", refused)
	}
}

//attack:network whoever has a code asks to be let in as a controller | a code lets in a node or an app
//attack:network a name with a path or a line in it, to be written elsewhere | names are `[a-z0-9-]`
//attack:network a request to be let in without an end | it has a bound, and the rest is not read
func TestWhatIsNoRequestIsRefused(t *testing.T) {
	s := begin(t)
	own := testnet.Identity(t, "car")
	good := s.request(own, s.offer.Code)
	for name, change := range map[string]func(*pairing.Request){
		"version": func(r *pairing.Request) {
			r.Version = 2
		}, "role": func(r *pairing.Request) { r.Role = wire.RoleController },
		"no name": func(r *pairing.Request) { r.Name = "" }, "a path": func(r *pairing.Request) { r.Name = "../car" },
		"no proof": func(r *pairing.Request) { r.Proof = "" }, "no port": func(r *pairing.Request) { r.Listen = "" },
		"line feed": func(r *pairing.Request) { r.Name = "car\nnode" },
	} {
		r := good
		change(&r)
		if _, refused := s.post(own, r); refused != wire.CodeBadRequest {
			t.Errorf("%s: %q", name, refused)
		}
	}
	if _, refused := s.post(own, map[string]string{"name": strings.Repeat("x", 2*pairing.BodyLimit)}); refused !=
		wire.CodeTooLarge {
		t.Errorf("a large body: %q", refused)
	}
	if len(s.admitted) != 0 {
		t.Errorf("admitted %+v", s.admitted)
	}
	// Without a key, and without TLS, nobody is answered at all.
	bare := pairing.ClientTLS(own, s.offer.Code)
	bare.Certificates = nil
	conn, err := tls.Dial("tcp", s.address, bare)
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
	}
	if err == nil {
		t.Error("a peer without a key is answered")
	}
}

// The client ends the handshake with another controller before it says a word.
//
//attack:network somebody in the middle, with keys of his own | the code carries the hash of the controller's key;
//attack:and the handshake ends before a word
func TestAnotherControllerHearsNothing(t *testing.T) {
	s := begin(t)
	elsewhere, err := pairing.New(s.address, testnet.Identity(t, "controller").Pin)
	if err != nil {
		t.Fatal(err)
	}
	_, err = tls.Dial("tcp", s.address, pairing.ClientTLS(testnet.Identity(t, "car"), elsewhere))
	var hash *pairing.HashError
	if !errors.As(err, &hash) || hash.Got != s.offer.Identity.Pin {
		t.Errorf("error %v", err)
	}
}
