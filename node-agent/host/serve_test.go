package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/reach"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func testConfig(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	return Config{
		Socket: filepath.Join(dir, "host.sock"), StateDir: filepath.Join(dir, "host"), AllowUIDs: []int{os.Geteuid()},
		Interfaces: []string{"wlan0"}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16")},
		DeadMan: time.Hour, Settings: []string{"interface: wlan0"}, Log: quiet(),
	}
}

// begin serves a fake machine until the test, or stop, ends it.
func begin(t *testing.T, cfg Config, m *machine) (c *Client, stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, cfg, m) }()
	c = Dial(cfg.Socket)
	ended := false
	stop = func() error {
		cancel()
		if ended {
			return nil
		}
		ended = true
		return <-done
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	awaitAnswer(t, c)
	return c, stop
}

func awaitAnswer(t *testing.T, c *Client) {
	t.Helper()
	testnet.Await(t, 30*time.Second, "the host answers", func() bool {
		_, err := c.Status(t.Context())
		return err == nil
	})
}

func TestCallsAndTheirEnd(t *testing.T) {
	m, cfg := newMachine(), testConfig(t)
	before := m.snapshot()
	c, stop := begin(t, cfg, m)
	made, err := c.Apply(t.Context(), ScopeRun, []change.Change{linkUp(), address("10.77.0.1/24")})
	if err != nil || len(made) != 2 {
		t.Fatalf("made %v, %v", made, err)
	}
	if s, err := c.Status(t.Context()); err != nil || !s.Reached || len(s.Pending) != 2 ||
		!slices.Equal(s.Settings, cfg.Settings) {
		t.Errorf("status %+v, %v", s, err)
	}
	var refused *change.Refused
	other := []change.Change{change.Link{Interface: "eth0", Up: ptr(false)}}
	if _, err := c.Apply(t.Context(), ScopeRun, other); !errors.As(err, &refused) || refused.Cure == "" {
		t.Errorf("eth0: %v", err)
	}
	if err := c.Keepalive(t.Context()); err != nil {
		t.Error(err)
	}
	if r, err := c.Restore(t.Context(), ScopeTrial); err != nil || len(r.Undone) != 0 {
		t.Errorf("restored %+v, %v", r, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(m.snapshot(), before) {
		t.Errorf("machine is %v after the end, was %v", m.snapshot(), before)
	}
	if s, err := c.Status(t.Context()); err == nil || s.Reached {
		t.Errorf("status of a dead host: %+v, %v", s, err)
	}
}

// A network that may be out of reach is told from what the machine cannot do, to a caller in another process, too.
func TestWhatMayBeOutOfReachIsToldAsThat(t *testing.T) {
	m := newMachine()
	c, _ := begin(t, testConfig(t), m)
	for _, says := range []error{reach.Error{Err: errors.New("not in it")}, errors.New("no such device")} {
		m.mu.Lock()
		m.spoil, m.says = 1, fmt.Errorf("join: %w", says)
		m.mu.Unlock()
		_, err := c.Apply(t.Context(), ScopeRun, []change.Change{linkUp()})
		if err == nil || !strings.Contains(err.Error(), says.Error()) || reach.Is(err) != reach.Is(says) {
			t.Errorf("%v: %v, may be out of reach: %t", says, err, reach.Is(err))
		}
	}
}

// A caller tells by the instance that what it had changed is in force no more.
func TestEveryLifeHasItsInstance(t *testing.T) {
	m, cfg := newMachine(), testConfig(t)
	seen := map[string]bool{}
	for range 2 {
		c, stop := begin(t, cfg, m)
		s, err := c.Status(t.Context())
		if err != nil || s.Instance == "" || seen[s.Instance] {
			t.Errorf("instance %q after %v, %v", s.Instance, seen, err)
		}
		if again, err := c.Status(t.Context()); err != nil || again.Instance != s.Instance {
			t.Errorf("instance %q within the life of %q, %v", again.Instance, s.Instance, err)
		}
		seen[s.Instance] = true
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestANewLifeRestoresTheOldOnes(t *testing.T) {
	m, cfg := newMachine(), testConfig(t)
	before := m.snapshot()
	if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	j, r, err := openJournal(cfg.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newKeeper(m, j, r, testPolicy(), quiet()).apply(ScopeTrial, []change.Change{linkUp()}); err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil { // as a crash leaves it
		t.Fatal(err)
	}
	c, _ := begin(t, cfg, m)
	s, err := c.Status(t.Context())
	if err != nil || len(s.Pending) != 0 || !strings.Contains(s.Detail, "1 undone, 0 failed") {
		t.Errorf("status %+v, %v", s, err)
	}
	if !maps.Equal(m.snapshot(), before) {
		t.Errorf("machine is %v, was %v", m.snapshot(), before)
	}
}

func TestTheDeadManLetsGo(t *testing.T) {
	m, cfg := newMachine(), testConfig(t)
	cfg.DeadMan = 50 * time.Millisecond
	before := m.snapshot()
	c, _ := begin(t, cfg, m)
	if _, err := c.Apply(t.Context(), ScopeRun, []change.Change{linkUp()}); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		s, err := c.Status(t.Context()) // looks, and is no sign of life
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Pending) == 0 && strings.Contains(s.Detail, "no call came for 50ms: 1 undone") {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("the dead man holds on: %+v", s)
		}
	}
	if !maps.Equal(m.snapshot(), before) {
		t.Errorf("machine is %v, was %v", m.snapshot(), before)
	}
}

// underDeadMan is a host process under its dead man's hand, in a bubble of synctest: a change is in force. gone reports
// whether it is undone.
func underDeadMan(t *testing.T) (srv *server, asleep *atomic.Int64, gone func() bool) {
	t.Helper()
	m, d := newMachine(), &disk{bomb: &bomb{}}
	before, begun := m.snapshot(), time.Now()
	asleep = new(atomic.Int64)
	srv = &server{keeper: wake(t, m, d), deadMan: 30 * time.Minute,
		bootNs: func() int64 { return time.Since(begun).Nanoseconds() + asleep.Load() }}
	srv.alive()
	if _, err := srv.keeper.apply(ScopeRun, []change.Change{linkUp()}); err != nil {
		t.Fatal(err)
	}
	go srv.watch(t.Context())
	return srv, asleep, func() bool { synctest.Wait(); return maps.Equal(m.snapshot(), before) }
}

// A phone may sleep for as long as nobody calls: that counts.
func TestTheDeadManLetsGoAfterASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, asleep, gone := underDeadMan(t)
		time.Sleep(29 * time.Minute)
		srv.alive()
		time.Sleep(29 * time.Minute)
		if gone() {
			t.Error("the dead man has let go too early")
		}
		srv.alive()
		asleep.Store(time.Hour.Nanoseconds())
		time.Sleep(lookEvery + time.Second)
		if !gone() {
			t.Error("after a sleep of an hour the dead man holds on")
		}
	})
}

// A face that keeps ending asks for a restore at each start. Such a request is no sign of life.
func TestRestoresHoldNoDeadManOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _, gone := underDeadMan(t)
		for range 31 {
			if a := srv.answer(t.Context(), request{Restore: &restoreCall{Scope: ScopeTrial}}, 1); a.Error != "" {
				t.Error(a.Error)
			}
			time.Sleep(time.Minute)
		}
		if !gone() {
			t.Error("the dead man holds on")
		}
	})
}

func TestASecondHostIsRefused(t *testing.T) {
	m, cfg := newMachine(), testConfig(t)
	begin(t, cfg, m)
	err := serve(t.Context(), cfg, m)
	if !errors.Is(err, ErrRunning) || !strings.Contains(err.Error(), cfg.StateDir) {
		t.Errorf("second host: %v", err)
	}
	if _, err := RestoreOffline(cfg, ""); !errors.Is(err, ErrRunning) {
		t.Errorf("restore beside a host: %v", err)
	}
}

//attack:local a daemon that others can write, or put elsewhere by a link | it and every folder above are root's
//attack:local a state folder that others can write, from which root undoes | it and every folder above are root's
func TestWhatRootTrustsMustBeRoots(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "babeld")
	if err := os.WriteFile(program, []byte("#!/bin/true\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := trustedBinary(program); err != nil {
		t.Errorf("a good binary: %v", err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	inOpen := filepath.Join(open, "babeld")
	if err := os.WriteFile(inOpen, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(open, 0o777), os.Symlink(inOpen, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{inOpen, filepath.Join(dir, "link")} {
		if _, err := trustedBinary(bad); err == nil || !strings.Contains(err.Error(), "can be written by others") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, bad := range []string{"babeld", dir, filepath.Join(dir, "none")} {
		if _, err := trustedBinary(bad); err == nil {
			t.Errorf("%s is trusted", bad)
		}
	}
	m, cfg := newMachine(), testConfig(t)
	cfg.Binaries = map[string]string{babeld: inOpen}
	if err := serve(t.Context(), cfg, m); err == nil || !strings.Contains(err.Error(), "check binary of babeld") {
		t.Errorf("host with a bad binary: %v", err)
	}
	cfg = testConfig(t)
	cfg.StateDir = filepath.Join(open, "state")
	if err := serve(t.Context(), cfg, m); err == nil || !strings.Contains(err.Error(), "check state directory") {
		t.Errorf("host with an open state directory: %v", err)
	}
	cfg = testConfig(t)
	cfg.DeadMan = 0
	if err := serve(t.Context(), cfg, m); err == nil {
		t.Error("host without a dead man")
	}
}

// What root does, and which programs it starts, stands in agent.yaml.
//
//attack:local agent.yaml, or a folder above it, that others can write | root does not read it
func TestAConfigurationOfOthersIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(path, []byte("node: car\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CheckConfiguration(path); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"that everybody can write":         func() error { return os.Chmod(path, 0o646) },
		"that a group can write":           func() error { return os.Chmod(path, 0o664) },
		"in a folder that everybody fills": func() error { return os.Chmod(dir, 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			err := spoil()
			if err == nil {
				err = CheckConfiguration(path)
			}
			if err == nil || !strings.Contains(err.Error(), "chmod go-w") {
				t.Errorf("%v, and it should say what to do", err)
			}
			if err := errors.Join(os.Chmod(path, 0o644), os.Chmod(dir, 0o755)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

const anotherUser = 65534

// asAnother does something as another user, in a thread of its own, which ends with it.
func asAnother(do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		same := ^uintptr(0)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, anotherUser, same); errno != 0 {
			done <- errno
			return
		}
		done <- do()
	}()
	return <-done
}

// TestRudeCallers: none of them harms the next one.
//
//attack:face long or broken calls, callers that say nothing | limits, deadlines
//attack:face connections that are held, so that root's restore is not heard | one user has three quarters of them
func TestRudeCallers(t *testing.T) {
	m, cfg := newMachine(), testConfig(t)
	cfg.AllowUIDs = append(cfg.AllowUIDs, anotherUser)
	if err := os.Chmod(filepath.Dir(filepath.Dir(cfg.Socket)), 0o755); err != nil { // the test's own
		t.Fatal(err)
	}
	var log testnet.Output
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	c, _ := begin(t, cfg, m)
	long := `{"restore":{"scope":"` + strings.Repeat("x", maxRequestBytes) + `"}}`
	for say, want := range map[string]string{
		"GET / HTTP/1.0\n":                               "decode request",
		"{}\n":                                           "0 calls in one",
		`{"status":{},"keepalive":{}}` + "\n":            "2 calls in one",
		`{"shell":"reboot"}` + "\n":                      "unknown field",
		`{"status":{}} {"status":{}}` + "\n":             "more than one value",
		`{"apply":{"scope":"run","changes":3}}` + "\n":   "decode request",
		`{"apply":{"scope":"week","changes":[]}}` + "\n": "neither run nor trial",
		long + "\n":                                      "at most",
	} {
		conn, err := net.Dial("unix", cfg.Socket)
		if err != nil {
			t.Fatal(err)
		}
		a, err := exchange(conn, []byte(say))
		if err != nil || !strings.Contains(a.Error, want) {
			t.Errorf("%.40q was answered %q, %v; want %q", say, a.Error, err, want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	var held []net.Conn
	for range 2 * maxConnections { // that say nothing
		conn, err := net.Dial("unix", cfg.Socket)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	_, err := c.Restore(t.Context(), "")
	if !errors.Is(err, ErrAway) || strings.Contains(err.Error(), "impossible") {
		t.Errorf("beside as many callers as may be at a time: %v", err)
	}
	if os.Geteuid() == 0 { // who alone can call as another user
		if err := asAnother(func() error { _, err := c.Restore(t.Context(), ""); return err }); err != nil {
			t.Errorf("another user has no place beside those of one: %v", err)
		}
	}
	for _, conn := range held {
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	awaitAnswer(t, c)
	if !strings.Contains(log.String(), "call is not understood") {
		t.Error("rude calls are not logged")
	}
	many := slices.Repeat([]change.Change{linkUp()}, maxChanges+1)
	if _, err := c.Apply(t.Context(), ScopeRun, many); err == nil || !strings.Contains(err.Error(), "at most 256") {
		t.Errorf("%d changes: %v", len(many), err)
	}
}
