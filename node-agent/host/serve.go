// Package host is the one seam between the agent and the machine. It alone
// changes links, addresses, routes, sysctls and daemons; for every change it
// first writes to disk how to take it back. It runs as a small root process
// of its own, reached over a unix socket by typed calls only. Measuring, and
// everything that faces the network, stays out. The kinds of change are those of
// package change, beside which lies what speaks to the kernel.
package host

//go:generate go test ./change -run ^TestKindsAreListed$ -update

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/internal/unixsocket"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/flows"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	maxConnections = 16
	idleTimeout    = 30 * time.Second // of a caller that says nothing, or does not read
	lookEvery      = 5 * time.Second  // at the boot clock: no timer counts while the machine sleeps
)

// Config is what a host process may do, and for whom.
type Config struct {
	Socket     string            // path of the unix socket
	StateDir   string            // holds the journal; root's alone
	AllowUIDs  []int             // who may call, beside root
	Interfaces []string          // that may be changed
	Beside     string            // the machine's own, on whose radio one of them may be made; empty: none
	Prefixes   []netip.Prefix    // in which addresses and routes lie
	Binaries   map[string]string // daemon → absolute path, writable by root alone
	Feedback   string            // radio-feedback socket, for daemons that use it; empty: none
	// RadioFeedback is the socket of a real radio's feedback, which knows no causes of losses; empty: none.
	RadioFeedback string
	ControlPort   int           // the agent's own TCP port, on which its controller calls
	DeadMan       time.Duration // without a call for so long, everything is put back
	Settings      []string      // of the node's configuration, for who calls to compare with its own
	Log           *slog.Logger
}

// server is one life of the host process.
type server struct {
	instance string // random for each life
	keeper   *keeper
	uids     []int
	deadMan  time.Duration
	captures atomic.Int32
	feeds    sync.WaitGroup // of captures
	mu       sync.Mutex
	bootNs   func() int64 // the boot clock
	lastNs   int64        // when there was a sign of life
	// abilities reports what of the transport can be had; probed once, for it
	// loads every program.
	abilities func() []wire.Ability
	// androidAPI is the level of the Android that runs here; 0: none does.
	androidAPI func() int
	settings   []string // of its Config
	detail     string
}

// owned is a state directory that this process has to itself.
type owned struct {
	lock     *os.File
	alone    io.Closer // in the network namespace
	journal  *journal
	keeper   *keeper
	binaries map[string]string // checked; what calls may start
}

// Serve puts back what a former life left changed, answers calls until ctx
// ends, and then puts everything back. An error after that names what could
// not be undone; it stays in the journal.
func Serve(ctx context.Context, cfg Config) error {
	return serve(ctx, cfg, nil)
}

// serve is Serve on another machine than the kernel when s is given.
func serve(ctx context.Context, cfg Config, s system) (err error) {
	if cfg.DeadMan <= 0 {
		return fmt.Errorf("dead-man time %s is not positive", cfg.DeadMan)
	}
	own, err := take(cfg, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.release()) }()
	left, err := own.keeper.restore("")
	if err != nil {
		return err
	}
	if err := own.admit(cfg); err != nil {
		return err
	}
	listener, err := listen(cfg)
	if err != nil {
		return err
	}
	srv := &server{instance: rand.Text(), keeper: own.keeper, uids: cfg.AllowUIDs, deadMan: cfg.DeadMan,
		settings: cfg.Settings, bootNs: clock.System{}.BootNs}
	srv.alive()
	srv.abilities = func() []wire.Ability { return nil }
	srv.androidAPI = androidAPI(cfg.Log)
	if s == nil {
		srv.abilities = sync.OnceValue(func() []wire.Ability {
			return append(tcp.Probe(cfg.Feedback != ""), flows.Destroying(), flows.TellingRoutes())
		})
	}
	if len(left.Undone)+len(left.Failed) > 0 {
		srv.detail = tell("its last life had left changes in force", left)
	}
	cfg.Log.Info("host process is ready", "socket", cfg.Socket)
	err = srv.run(ctx, listener)
	report, restoreErr := own.keeper.restore("")
	if restoreErr == nil && len(report.Failed) > 0 {
		restoreErr = fmt.Errorf("restore: not undone: %q", report.Failed)
	}
	return errors.Join(err, restoreErr)
}

// take locks and reads a state directory. It asks for as little of the
// configuration as restoring needs: what is wrong with the rest must not keep
// a former life's changes in force.
func take(cfg Config, s system) (*owned, error) {
	lock, dir, err := lockDir(cfg.StateDir)
	if err != nil {
		return nil, err
	}
	binaries := map[string]string{}
	alone := io.Closer(io.NopCloser(nil))
	if s == nil {
		if alone, err = holdNamespace(cfg.Log); err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		s, err = change.NewKernel(dir, binaries, socketOwner(cfg.AllowUIDs),
			cmp.Or(cfg.Feedback, cfg.RadioFeedback), cfg.Log)
	}
	if err != nil {
		return nil, errors.Join(err, alone.Close(), lock.Close())
	}
	j, replayed, err := openJournal(dir)
	if err != nil {
		return nil, errors.Join(err, alone.Close(), lock.Close())
	}
	p := change.Policy{Interfaces: cfg.Interfaces, Prefixes: cfg.Prefixes, Binaries: binaries, Feedback: cfg.Feedback,
		Beside: cfg.Beside, ControlPort: cfg.ControlPort}
	k := newKeeper(s, j, replayed, p, cfg.Log)
	k.hand = readByHand(dir)
	return &owned{lock: lock, alone: alone, journal: j, binaries: binaries, keeper: k}, nil
}

// admit checks what calls may name, before the first call.
func (o *owned) admit(cfg Config) error {
	named := cfg.Interfaces
	if cfg.Beside != "" {
		named = slices.Concat(named, []string{cfg.Beside})
	}
	for _, name := range named {
		if err := change.CheckInterfaceName(name); err != nil {
			return err
		}
	}
	// Our own protocols are run by this program, as it runs; its path tells which processes those are.
	if self, err := os.Executable(); err == nil {
		o.binaries[change.AgentBinary] = self
	}
	for name, path := range cfg.Binaries {
		real, err := trustedBinary(path)
		if errors.Is(err, fs.ErrNotExist) {
			cfg.Log.Info("daemon is not installed", "daemon", name, "path", path)
			continue // a trial that needs it is refused
		}
		if err != nil {
			return fmt.Errorf("check binary of %s: %w", name, err)
		}
		o.binaries[name] = real
	}
	return nil
}

func (o *owned) release() error {
	return errors.Join(o.journal.close(), o.alone.Close(), o.lock.Close())
}

// RestoreOffline undoes a scope ("" for everything) when no host process
// runs; ErrRunning says that one does.
func RestoreOffline(cfg Config, scope string) (wire.RestoreReport, error) {
	return offline(cfg, nil, func(k *keeper) (wire.RestoreReport, error) { return k.restore(scope) })
}

// RestoreByHand is RestoreOffline for somebody at the machine who wants it back: no agent goes on by itself then with
// the run whose changes are undone.
func RestoreByHand(cfg Config, scope string) (wire.RestoreReport, error) {
	return offline(cfg, nil, func(k *keeper) (wire.RestoreReport, error) { return k.restoreByHand(scope) })
}

func offline(cfg Config, s system, restore func(*keeper) (wire.RestoreReport, error)) (wire.RestoreReport, error) {
	own, err := take(cfg, s)
	if err != nil {
		return wire.RestoreReport{}, err
	}
	report, err := restore(own.keeper)
	return report, errors.Join(err, own.release())
}

// socketOwner is the user whose socket it is: the first that may call.
func socketOwner(uids []int) int {
	if len(uids) == 0 {
		return os.Geteuid()
	}
	return uids[0]
}

// listen makes the socket. The lock is held, so a socket that is there is a
// dead one's. Its mode is a courtesy; every caller's credentials are checked.
func listen(cfg Config) (*net.UnixListener, error) {
	mode := os.FileMode(0o600)
	if len(cfg.AllowUIDs) > 1 {
		mode = 0o666
	}
	return unixsocket.Listen(cfg.Socket, mode, socketOwner(cfg.AllowUIDs))
}

// run answers until ctx ends; when it returns, no call is under way.
func (s *server) run(ctx context.Context, l *net.UnixListener) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx) })
	defer s.feeds.Wait()
	defer watching.Wait()
	defer cancel()
	return unixsocket.Serve(ctx, l, maxConnections, func(conn *net.UnixConn) {
		s.keeper.log.Warn("too many callers", "most", maxConnections)
		s.hangUp(conn)
	}, s.converse)
}

func (s *server) hangUp(conn *net.UnixConn) {
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.keeper.log.Warn("hang up", "error", err)
	}
}

// watch is the dead man's hand: without a call for so long, everything is
// put back, and again after as long when that failed in part.
func (s *server) watch(ctx context.Context) {
	for pause.For(ctx, min(lookEvery, s.deadMan)) == nil {
		if s.silence() >= s.deadMan {
			s.letGo()
			s.alive()
		}
	}
}

// alive winds the dead man's timer up.
func (s *server) alive() {
	s.mu.Lock()
	s.lastNs = s.bootNs()
	s.mu.Unlock()
}

func (s *server) silence() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.bootNs() - s.lastNs)
}

func (s *server) letGo() {
	// A call that came first holds the keeper, and has ended the silence.
	report := s.keeper.restoreIf(func() bool { return s.silence() >= s.deadMan })
	if len(report.Undone)+len(report.Failed) == 0 {
		return
	}
	detail := tell(fmt.Sprintf("no call came for %s", s.deadMan), report)
	s.keeper.log.Warn(detail)
	s.mu.Lock()
	s.detail = detail
	s.mu.Unlock()
}

func tell(why string, r wire.RestoreReport) string {
	return fmt.Sprintf("put everything back at %s, because %s: %d undone, %d failed",
		time.Now().UTC().Format(time.RFC3339), why, len(r.Undone), len(r.Failed))
}
