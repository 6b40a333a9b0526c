//go:build e2e

package attacks

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/pairing"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

var codeShown = regexp.MustCompile(`FIELDMESH-PAIR/\S+`)

// offer runs `fieldmesh keys pair` on the laptop and reads its code.
func (p place) offer(t *testing.T, dir string, args ...string) (*testnet.Running, string) {
	t.Helper()
	args = append([]string{"keys", "pair", "--dir", dir, "--listen", laptopHost + ":7447", "--qr=false"}, args...)
	r := p.begin(t, p.laptop, "fieldmesh", args...)
	r.Says(t, "show it to nobody else")
	return r, codeShown.FindString(r.Said())
}

// told is the place where the next program reads a line.
func (p place) told(line string) place {
	p.line = line + "\n"
	return p
}

// pairs gives the node a code, and returns what it says.
func (p place) pairs(t *testing.T, code, config string) string {
	t.Helper()
	return p.told(code).must(t, p.node, "fieldmesh-agent", "pair", "--config", config)
}

// pairsNot gives the node a code that it has to refuse with all of the words.
func (p place) pairsNot(t *testing.T, code, config string, words ...string) {
	t.Helper()
	p.told(code).refused(t, words, p.node, "fieldmesh-agent", "pair", "--config", config)
}

// owned checks whose a file is, and who else may do what with it.
func owned(t *testing.T, path string, uid uint32, mode os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t).Uid; info.Mode().Perm() != mode || is != uid {
		t.Errorf("%s has mode %04o and owner %d", path, info.Mode().Perm(), is)
	}
}

//attack:phone an app that loads or arms
//attack:local another user of the node, who reads commands' words | a code is read from standard input
//attack:controller pairing a node that is paired | refused while it has keys
//attack:controller one whose key was deleted on a node whose agent runs | the node looks at its keys each second
//attack:controller talking to a node that was never paired | it has no key, and does not listen
func TestE2ENodeAndPhoneArePairedByACode(t *testing.T) {
	p := newPlace(t)
	// An agent that was never paired answers nobody.
	agent := p.begin(t, p.node, "fieldmesh-agent", "up", "--config", p.config)
	agent.Says(t, "this node is not paired yet: there is no node.key in ")
	p.silent(t)

	desk, code := p.offer(t, p.fleet(), "car", "--unit", "thinkpad-1")
	said := p.pairs(t, code, p.config)
	if err := desk.Wait(t, time.Minute); err != nil || !strings.Contains(desk.Said(),
		"car is paired: node at "+nodeHost+":7443") {
		t.Errorf("the laptop: %v", err)
	}
	if !strings.Contains(said, "car is paired: it obeys the controller with key ") {
		t.Errorf("the node says %q", said)
	}
	owned(t, p.keys("car"), 0, 0o750)
	owned(t, filepath.Join(p.keys("car"), "node.key"), testnet.Nobody, 0o600)
	owned(t, filepath.Join(p.keys("car"), "authorized.json"), 0, 0o640)
	p.refused(t, []string{"the code does not belong on the command line"}, p.node, "fieldmesh-agent", "pair", code,
		"--config", p.config)
	p.refused(t, []string{"no code was given"}, p.node, "fieldmesh-agent", "pair", "--config", p.config)
	// The agent that waits for its keys finds them.
	agent.Says(t, "node is ready")
	// Paired nodes are not paired again by whoever shows them a code.
	p.pairsNot(t, code, p.config, "this node is paired already")

	phone := p.pairPhone(t)
	for path, want := range map[string]int{"/v1/node": 200, "/v1/records": 200, "/v1/runs/x/capture": 403} {
		if status, err := p.ask(t, phone, path); err != nil || status != want {
			t.Errorf("the phone asks for %s: %d, %v; want %d", path, status, err, want)
		}
	}
	p.must(t, p.laptop, "fieldmesh", "keys", "revoke", "phone", "--dir", p.fleet())
	if status, err := p.ask(t, phone, "/v1/node"); err == nil {
		t.Errorf("a revoked phone is answered with %d", status)
	}
	agent.Says(t, "is not authorized")
	p.takenBack(t, agent)
}

// silent fails the test when the node's agent, which has no keys, listens.
func (p place) silent(t *testing.T) {
	t.Helper()
	p.node.Do(t, func() error {
		if conn, err := net.DialTimeout("tcp", nodeHost+":7443", time.Second); err == nil {
			t.Error("an agent without keys listens")
			return conn.Close()
		}
		return nil
	})
}

// takenBack deletes the node's keys while its agent runs, and pairs it again.
func (p place) takenBack(t *testing.T, agent *testnet.Running) {
	t.Helper()
	controller, err := keys.LoadIdentity(p.fleet())
	if err != nil {
		t.Fatal(err)
	}
	if status, err := p.ask(t, controller, "/v1/node"); err != nil || status != http.StatusOK {
		t.Fatalf("its controller asks the node: %d, %v", status, err)
	}
	p.must(t, p.laptop, "fieldmesh", "keys", "revoke", "car", "--dir", p.fleet())
	if err := os.RemoveAll(p.keys("car")); err != nil {
		t.Fatal(err)
	}
	agent.Says(t, "end with the keys that were there")
	p.silent(t)
	_, code := p.offer(t, p.fleet(), "car")
	p.pairs(t, code, p.config)
	testnet.Await(t, time.Minute, "the node that was paired again has its new key", func() bool {
		status, err := p.ask(t, controller, "/v1/node")
		return err == nil && status == http.StatusOK
	})
}

// pairPhone pairs as the app does: by protocols/pairing/README.md.
func (p place) pairPhone(t *testing.T) keys.Identity {
	t.Helper()
	desk, shown := p.offer(t, p.fleet(), "phone", "--app", "--experimenter", "--serve-port", "7450")
	code, err := pairing.Parse(shown)
	if err != nil {
		t.Fatal(err)
	}
	phone := testnet.Identity(t, "android")
	conn, err := p.dial(t, code.Address, pairing.ClientTLS(phone, code))
	if err != nil {
		t.Fatal(err)
	}
	controller, err := keys.PeerPin(conn.ConnectionState())
	if err != nil {
		t.Fatal(err)
	}
	request := pairing.Request{Version: 1, Role: wire.RoleApp}
	request.Proof = code.Prove(controller, phone.Pin, request)
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	status, answer := exchange(t, conn, "POST "+pairing.Path, body)
	var reply pairing.Reply
	if err := json.Unmarshal(answer, &reply); err != nil || status != 200 || !code.Admits(controller, phone.Pin,
		reply) {
		t.Fatalf("the phone is answered %d %s", status, answer)
	}
	if reply.Controller == nil || reply.Controller.Port != 7450 {
		t.Errorf("an experimenter's phone is told %+v of the controller", reply.Controller)
	}
	if reply.Name != "phone" || len(reply.Nodes) != 1 || reply.Nodes[0].Address != nodeHost+":7443" {
		t.Errorf("the phone is told %+v", reply)
	}
	if err := desk.Wait(t, time.Minute); err != nil || !strings.Contains(desk.Said(), "car: lets in 1 apps") {
		t.Errorf("the laptop: %v", err)
	}
	return phone
}

// dial makes a TLS connection from the laptop's namespace.
func (p place) dial(t *testing.T, address string, config *tls.Config) (*tls.Conn, error) {
	t.Helper()
	var plain net.Conn
	var err error
	p.laptop.Do(t, func() error {
		plain, err = net.DialTimeout("tcp", address, 10*time.Second)
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { plain.Close() })
	if err := plain.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	conn := tls.Client(plain, config)
	return conn, conn.Handshake()
}

// exchange sends one request and reads the answer. In TLS 1.3 a key that the
// node does not let in shows itself only here.
func exchange(t *testing.T, conn *tls.Conn, what string, body []byte) (status int, answer []byte) {
	t.Helper()
	status, answer, err := tryExchange(conn, what, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

func tryExchange(conn *tls.Conn, what string, body []byte) (int, []byte, error) {
	head := fmt.Sprintf("%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", what,
		len(body))
	if _, err := conn.Write(append([]byte(head), body...)); err != nil {
		return 0, nil, err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, data, err
}

// ask asks the node for something with a key of the test's.
func (p place) ask(t *testing.T, own keys.Identity, path string) (int, error) {
	t.Helper()
	identity, err := keys.LoadIdentity(p.keys("car"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := p.dial(t, nodeHost+":7443", keys.ClientTLS(own, identity.Pin))
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	status, _, err := tryExchange(conn, "GET "+path, nil)
	return status, err
}

//attack:network a wrong code, a guess
//attack:network a code used twice, or by two at once
//attack:network a code after its five minutes
//attack:network somebody in the middle, with keys of his own
func TestE2EPairingAttacks(t *testing.T) {
	p := newPlace(t)
	stranger := filepath.Join(p.dir, "stranger")
	p.must(t, p.laptop, "fieldmesh", "keys", "init", "--dir", stranger)
	controller, err := keys.LoadIdentity(p.fleet())
	if err != nil {
		t.Fatal(err)
	}
	unpaired := func(name string) {
		t.Helper()
		if _, err := os.Stat(p.keys("car")); !os.IsNotExist(err) {
			t.Errorf("%s: the node has a folder of keys: %v", name, err)
		}
		if text, err := os.ReadFile(filepath.Join(p.fleet(), "fleet.yaml")); err != nil ||
			strings.Contains(string(text), "car") {
			t.Errorf("%s: the fleet is %s, %v", name, text, err)
		}
	}

	// Somebody else answers at the address: his key is not the code's.
	middle, _ := p.offer(t, stranger, "car")
	forged, err := pairing.New(laptopHost+":7447", controller.Pin)
	if err != nil {
		t.Fatal(err)
	}
	p.pairsNot(t, forged.String(), p.config,
		"it is another controller, or somebody in the middle; nothing was told to it")
	unpaired("another controller")
	middle.Says(t, "TLS handshake error")
	_ = middle.Stop(t, syscall.SIGTERM) // "context canceled"

	// A code of another day, a mistyped one, and a right one after its time.
	desk, code := p.offer(t, p.fleet(), "car", "--valid", "20s")
	p.pairsNot(t, forged.String(), p.config, "that is not the code")
	desk.Says(t, "pairing refused")
	desk.Says(t, "code="+pairing.CodeWrong)
	last := code[len(code)-1]
	mistyped := code[:len(code)-1] + string('A'+(last-'A'+1)%2)
	if last == mistyped[len(mistyped)-1] {
		t.Fatal("the test has not mistyped")
	}
	p.pairsNot(t, mistyped, p.config, "a letter of the code is wrong or missing")
	unpaired("wrong codes")
	if err := desk.Wait(t, time.Minute); err == nil || !strings.Contains(desk.Said(),
		"the code has expired, and nobody used it") {
		t.Errorf("the laptop: %v", err)
	}
	p.pairsNot(t, code, p.config, "connection refused", "is the code still shown")
	unpaired("an expired code")

	// A code for another name says so and stays good; used twice it is not.
	desk, code = p.offer(t, p.fleet(), "car")
	van := p.agentYAML(t, "van")
	p.pairsNot(t, code, van, `the code is for "car", and you are "van"`)
	p.pairs(t, code, p.config)
	if err := desk.Wait(t, time.Minute); err != nil {
		t.Errorf("the laptop: %v", err)
	}
	desk, _ = p.offer(t, p.fleet(), "van")
	p.pairsNot(t, code, van, "that is not the code")
	desk.Says(t, "code="+pairing.CodeWrong)
	if _, err := os.Stat(p.keys("van")); !os.IsNotExist(err) {
		t.Errorf("the code was used twice: %v", err)
	}
}
