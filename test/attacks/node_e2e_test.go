//go:build e2e

package attacks

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// victim is a node that runs, with the one controller that it knows.
type victim struct {
	place
	agent      *testnet.Running
	controller keys.Identity
	pin        string // the node's
}

func newVictim(t *testing.T) victim {
	t.Helper()
	v := victim{place: newPlace(t)}
	v.must(t, v.laptop, "fieldmesh", "keys", "issue", "car", "--dir", v.fleet(), "--address", nodeHost+":7443")
	testnet.GiveKeys(t, filepath.Join(v.fleet(), "nodes", "car"), v.keys("car"))
	v.agent = v.begin(t, v.node, "fieldmesh-agent", "up", "--config", v.config)
	v.agent.Says(t, "node is ready")
	controller, err := keys.LoadIdentity(v.fleet())
	if err != nil {
		t.Fatal(err)
	}
	node, err := keys.LoadIdentity(v.keys("car"))
	if err != nil {
		t.Fatal(err)
	}
	v.controller, v.pin = controller, node.Pin
	return v
}

func (v victim) connect(t *testing.T) *tls.Conn {
	t.Helper()
	conn, err := v.dial(t, nodeHost+":7443", keys.ClientTLS(v.controller, v.pin))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// call makes one call as the controller.
func (v victim) call(t *testing.T, what, body string) (int, wire.Error) {
	t.Helper()
	status, answer := exchange(t, v.connect(t), what, []byte(body))
	var refused wire.Error
	if status != 200 {
		if err := json.Unmarshal(answer, &refused); err != nil {
			t.Errorf("%s: %d %q", what, status, answer)
		}
	}
	return status, refused
}

// well checks that the node still serves its controller.
func (v victim) well(t *testing.T) {
	t.Helper()
	if status, refused := v.call(t, "GET /v1/node", ""); status != 200 {
		t.Errorf("the node answers its controller with %d %+v", status, refused)
	}
}

// face is the process that faces the network.
func (v victim) face(t *testing.T) int {
	t.Helper()
	for _, pid := range testnet.Pids(v.node.Name) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), "\x00face\x00") {
			return pid
		}
	}
	t.Fatal("there is no face")
	return 0
}

func (v victim) peakKB(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.face(t)))
	if err != nil {
		t.Fatal(err)
	}
	kb, err := strconv.Atoi(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(string(status))[1])
	if err != nil {
		t.Fatal(err)
	}
	return kb
}

//attack:network no key, or one that nobody let in
//attack:network an older version of TLS, whose weaknesses are known
//attack:network plain HTTP, to be heard or changed on its way
//attack:network path traversal in names of runs, nodes, trials | names are `[a-z0-9-]`, paths compared piece by
//attack:and piece
//attack:network bodies of 100 MB, announced or chunked
//attack:network slow clients: no handshake, half a header, half a body, an answer not read
//attack:network many connections without a known key
//attack:network many connections without a known key, of many addresses, before the controller has come from its own
//attack:controller a stale lease, or that of another run
func TestE2EAttacksOverTheNetwork(t *testing.T) {
	v := newVictim(t)
	before := v.face(t)

	t.Run("wrong key", func(t *testing.T) {
		stranger := testnet.Identity(t, "controller")
		conn, err := v.dial(t, nodeHost+":7443", keys.ClientTLS(stranger, v.pin))
		if err == nil {
			_, _, err = tryExchange(conn, "GET /v1/node", nil)
		}
		if err == nil {
			t.Error("a stranger is answered")
		}
		v.agent.Says(t, "key "+stranger.Pin+" is not authorized")
	})
	t.Run("path traversal in names", func(t *testing.T) {
		for _, path := range []string{
			"/v1/runs/..", "/v1/runs/../../../etc/passwd", "/v1/runs/..%2f..%2f..%2fetc%2fpasswd",
			"/v1/runs/%2e%2e/schedule", "/v1/runs/a%00b", "/v1/runs/.hidden",
			"//v1/runs/x", "/v1/runs/..%2f..%2fspool/capture?trial=1&attempt=1&offset=0&bytes=9",
		} {
			if status, refused := v.call(t, "GET "+path, ""); status != 400 && status != 404 {
				t.Errorf("%s: %d %+v", path, status, refused)
			}
		}
		v.agent.Says(t, "call refused")
		v.agent.Says(t, "/v1/runs/../../../etc/passwd")
		outside, err := filepath.Glob(filepath.Join(v.dir, "*"))
		if err != nil || len(outside) != 4 { // car.yaml, fleet, keys-car, state-car
			t.Errorf("the node's folder holds %q, %v", outside, err)
		}
	})
	t.Run("stale and foreign leases", func(t *testing.T) {
		if status, refused := v.call(t, "PUT /v1/lease", `{"holder":"run-b","ttl_s":60}`); status != 200 {
			t.Fatalf("the lease: %d %+v", status, refused)
		}
		for _, late := range []string{`{"holder":"run-a","ttl_s":60}`, `{"holder":"run-a","ttl_s":0}`} {
			if status, refused := v.call(t, "PUT /v1/lease", late); status != 409 || refused.Code !=
				wire.CodeLeaseHeld {
				t.Errorf("another run's lease %s: %d %+v", late, status, refused)
			}
		}
		v.agent.Says(t, "status=409")
		if status, refused := v.call(t, "PUT /v1/lease", `{"holder":"run-b","ttl_s":0}`); status != 200 {
			t.Errorf("giving the lease up: %d %+v", status, refused)
		}
	})
	t.Run("a hundred megabytes", func(t *testing.T) {
		for _, chunked := range []bool{false, true} {
			if status := v.flood(t, chunked, 100<<20); status != 413 && status != 0 {
				t.Errorf("chunked %v: %d", chunked, status)
			}
		}
		v.agent.Says(t, "status=413")
		// A plan of 24 MiB may come; a hundred may not be held.
		if kb := v.peakKB(t); kb > 160<<10 {
			t.Errorf("the face has used %d kB", kb)
		}
	})
	t.Run("slow clients", func(t *testing.T) {
		v.slow(t)
	})
	t.Run("silent connections", func(t *testing.T) {
		v.silent(t)
	})
	v.well(t)
	if after := v.face(t); after != before {
		t.Errorf("the face is process %d, was %d: something has ended it", after, before)
	}
}

// flood sends a body of so many bytes; 0 is a connection that was closed in it.
func (v victim) flood(t *testing.T, chunked bool, size int) int {
	t.Helper()
	conn := v.connect(t)
	defer conn.Close()
	head := fmt.Sprintf("PUT /v1/runs/big HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "+
		"%d\r\n\r\n", size)
	if chunked {
		head = "PUT /v1/runs/big HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n"
	}
	answered := make(chan int, 1)
	go func() {
		line := make([]byte, 12)
		if _, err := io.ReadFull(conn, line); err != nil {
			answered <- 0
			return
		}
		status, _ := strconv.Atoi(string(line[9:]))
		answered <- status
	}()
	block := bytes.Repeat([]byte("x"), 1<<20)
	_, err := io.WriteString(conn, head)
	for sent := 0; sent < size && err == nil; sent += len(block) {
		if chunked {
			_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(block), block)
		} else {
			_, err = conn.Write(block)
		}
	}
	return <-answered
}

// slow holds connections open in every way, and checks that each is closed and
// that others are served meanwhile.
func (v victim) slow(t *testing.T) {
	t.Helper()
	var plain net.Conn
	v.laptop.Do(t, func() (err error) {
		plain, err = net.Dial("tcp", nodeHost+":7443")
		return err
	})
	t.Cleanup(func() { plain.Close() })
	header, body := v.connect(t), v.connect(t)
	for conn, text := range map[net.Conn]string{
		header: "GET /v1/node HTTP/1.1\r\nHo",
		body: "PUT /v1/lease HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
			"30\r\n\r\n{\"hol",
	} {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	v.well(t)
	for name, conn := range map[string]net.Conn{"no handshake": plain, "half a header": header, "half a body": body} {
		if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, err := io.ReadAll(conn)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("%s: the node keeps the connection", name)
		}
	}
	v.agent.Says(t, "status=408")
	v.agent.Says(t, "TLS handshake error")
}

// silent opens hundreds of connections that say nothing, from an address of the
// control network, and checks that they take no place of the controller's.
func (v victim) silent(t *testing.T) {
	t.Helper()
	const stranger, tries, keptMost = "10.96.0.66", 300, 16
	v.laptop.Run(t, "ip", "address", "add", stranger+"/24", "dev", "ctl0")
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	v.laptop.Do(t, func() error {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(stranger)}}
		for range tries {
			c, err := d.Dial("tcp", nodeHost+":7443")
			if errors.Is(err, syscall.ECONNRESET) {
				continue
			}
			if err != nil {
				return err
			}
			open = append(open, c)
		}
		return nil
	})
	v.well(t)
	kept := 0
	for _, c := range open {
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := c.Read(make([]byte, 1))
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			kept++
		}
	}
	if kept == 0 || kept > keptMost {
		t.Errorf("the node keeps %d of %d silent connections of one address, want 1 to %d", kept, tries, keptMost)
	}
	v.agent.Says(t, "too many connections without a known key")
	v.silentOnManyAddresses(t)
}

// silentOnManyAddresses takes what strangers may have, from as many addresses as it takes,
// and checks that the controller comes in from one from which it has never come.
func (v victim) silentOnManyAddresses(t *testing.T) {
	t.Helper()
	const addresses, ofOne, newHost = 8, 16, "10.96.0.90"
	dial := func(host string) (conn net.Conn) {
		v.laptop.Run(t, "ip", "address", "replace", host+"/24", "dev", "ctl0")
		v.laptop.Do(t, func() (err error) {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
			if conn, err = d.Dial("tcp", nodeHost+":7443"); errors.Is(err, syscall.ECONNRESET) {
				return nil
			}
			return err
		})
		if conn != nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
		return conn
	}
	for i := range addresses {
		for range ofOne {
			dial(fmt.Sprintf("10.96.0.%d", 100+i))
		}
	}
	plain := dial(newHost)
	if plain == nil {
		t.Fatal("the controller is refused where it has never come from")
	}
	if err := plain.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	status, _ := exchange(t, tls.Client(plain, keys.ClientTLS(v.controller, v.pin)), "GET /v1/node", nil)
	if status != 200 {
		t.Errorf("the node answers its controller, where it has never come from, with %d", status)
	}
}

const (
	envSocket = "FIELDMESH_ATTACK_SOCKET"
	somebody  = 12345 // a user of the machine who is not the agent's
)

// asSomebody is this test binary as another user: it calls the host process.
func asSomebody(socket string) int {
	if _, err := host.Dial(socket).Restore(context.Background(), ""); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

//attack:local a local user on the host process's socket | mode 0600; the peer's user id
//attack:face changes to other interfaces than the one under test
func TestE2EAttacksOnTheHostSocket(t *testing.T) {
	v := newVictim(t)
	before := testnet.Snapshot(t, v.node.Name)
	socket := filepath.Join(v.state("car"), "host", "host.sock")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(v.dir, "somebody")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	call := func() (string, error) {
		cmd := exec.Command(program)
		cmd.Env, cmd.Dir = []string{envSocket + "=" + socket}, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: somebody, Gid: somebody}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	// The kernel refuses; and where somebody has widened the socket's mode, the process does.
	if out, err := call(); err == nil || !strings.Contains(out, "permission denied") {
		t.Errorf("another user at the socket: %v %s", err, out)
	}
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := call(); err == nil || !strings.Contains(out, fmt.Sprintf("user %d may not change this machine",
		somebody)) {
		t.Errorf("another user at the open socket: %v %s", err, out)
	}
	v.agent.Says(t, "caller is refused")
	v.agent.Says(t, fmt.Sprintf("uid=%d", somebody))

	// Who may call asks for what is on no list.
	client := host.Dial(socket)
	up := true
	escapes := []change.Change{
		change.Sysctl{Key: "kernel.core_pattern", Value: "x"},
		change.Sysctl{Key: "net.ipv4.conf.../../../kernel.rp_filter", Value: "0"},
		change.Link{Interface: "ctl0", Up: &up},
		change.Address{Interface: "wlan0", Prefix: netip.MustParsePrefix("192.168.1.1/24")},
		change.Route{Interface: "wlan0", Destination: netip.MustParsePrefix("0.0.0.0/0")},
		change.Daemon{Name: "../../bin/sh", Interface: "wlan0", Announce: netip.MustParsePrefix("10.77.0.0/16")},
		change.BPFCongestion{Program: "../../etc/passwd"},
	}
	for _, c := range escapes {
		_, err := client.Apply(t.Context(), host.ScopeTrial, []change.Change{c})
		var refused *change.Refused
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", c, err)
		}
	}
	testnet.Await(t, time.Minute, "every escape is logged", func() bool {
		return strings.Count(v.agent.Said(), "call is refused") >= len(escapes)
	})
	if after := testnet.Snapshot(t, v.node.Name); after != before {
		t.Errorf("the machine is\n%s\nwas\n%s", after, before)
	}
	v.well(t)
}
