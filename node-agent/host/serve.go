package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	maxConnections = 16
	idleTimeout    = 30 * time.Second // of a caller that says nothing, or does not read
)

// Config is what a host process may do, and for whom.
type Config struct {
	Socket     string            // path of the unix socket
	StateDir   string            // holds the journal; root's alone
	AllowUIDs  []int             // who may call, beside root
	Interfaces []string          // that may be changed
	Prefixes   []netip.Prefix    // in which addresses and routes lie
	Binaries   map[string]string // daemon → absolute path, writable by root alone
	DeadMan    time.Duration     // without a call for so long, everything is put back
	Log        *slog.Logger
}

// server is one life of the host process.
type server struct {
	keeper   *keeper
	uids     []int
	deadMan  time.Duration
	now      func() time.Time
	lastCall chan struct{} // a sign of life
	mu       sync.Mutex
	detail   string
}

// owned is a state directory that this process has to itself.
type owned struct {
	lock    *os.File
	journal *journal
	keeper  *keeper
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
	if _, err := own.keeper.restore(""); err != nil {
		return err
	}
	listener, err := listen(cfg)
	if err != nil {
		return err
	}
	srv := &server{
		keeper: own.keeper, uids: cfg.AllowUIDs, deadMan: cfg.DeadMan,
		now: time.Now, lastCall: make(chan struct{}, 1),
	}
	cfg.Log.Info("host process is ready", "socket", cfg.Socket)
	err = srv.run(ctx, listener)
	report, restoreErr := own.keeper.restore("")
	if restoreErr == nil && len(report.Failed) > 0 {
		restoreErr = fmt.Errorf("restore: not undone: %q", report.Failed)
	}
	return errors.Join(err, restoreErr)
}

// take locks and reads a state directory.
func take(cfg Config, s system) (*owned, error) {
	for _, name := range cfg.Interfaces {
		if err := checkInterfaceName(name); err != nil {
			return nil, err
		}
	}
	binaries := map[string]string{}
	for name, path := range cfg.Binaries {
		real, err := trustedBinary(path)
		if errors.Is(err, fs.ErrNotExist) {
			cfg.Log.Info("daemon is not installed", "daemon", name, "path", path)
			continue // a trial that needs it is refused
		}
		if err != nil {
			return nil, fmt.Errorf("check binary of %s: %w", name, err)
		}
		binaries[name] = real
	}
	lock, err := lockDir(cfg.StateDir)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(cfg.StateDir)
	if err == nil && s == nil {
		s, err = newKernel(dir, binaries, socketOwner(cfg.AllowUIDs))
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	j, replayed, err := openJournal(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	p := policy{interfaces: cfg.Interfaces, prefixes: cfg.Prefixes, binaries: binaries}
	return &owned{lock: lock, journal: j, keeper: newKeeper(s, j, replayed, p, cfg.Log)}, nil
}

func (o *owned) release() error { return errors.Join(o.journal.close(), o.lock.Close()) }

// RestoreOffline undoes a scope ("" for everything) when no host process
// runs; ErrRunning says that one does.
func RestoreOffline(cfg Config, scope string) (wire.RestoreReport, error) {
	own, err := take(cfg, nil)
	if err != nil {
		return wire.RestoreReport{}, err
	}
	report, err := own.keeper.restore(scope)
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
	if info, err := os.Lstat(cfg.Socket); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("listen on %q: something that is no socket is there", cfg.Socket)
		}
		if err := os.Remove(cfg.Socket); err != nil {
			return nil, fmt.Errorf("remove old socket: %w", err)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: cfg.Socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	mode := os.FileMode(0o600)
	if len(cfg.AllowUIDs) > 1 {
		mode = 0o666
	}
	err = os.Chmod(cfg.Socket, mode)
	if err == nil && socketOwner(cfg.AllowUIDs) != os.Geteuid() {
		err = os.Chown(cfg.Socket, socketOwner(cfg.AllowUIDs), -1)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("give socket to its user: %w", err), l.Close())
	}
	return l, nil
}

// run answers until ctx ends; when it returns, no call is under way.
func (s *server) run(ctx context.Context, l *net.UnixListener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() { s.watch(ctx) })
	var closeErr error
	group.Go(func() {
		<-ctx.Done()
		closeErr = l.Close()
	})
	slots := make(chan struct{}, maxConnections)
	var acceptErr error
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			if ctx.Err() == nil {
				acceptErr = fmt.Errorf("accept: %w", err)
			}
			break
		}
		select {
		case slots <- struct{}{}:
			group.Go(func() {
				defer func() { <-slots }()
				s.converse(ctx, conn)
			})
		default:
			s.keeper.log.Warn("too many callers", "most", maxConnections)
			s.hangUp(conn)
		}
	}
	cancel()
	group.Wait()
	return errors.Join(acceptErr, closeErr)
}

func (s *server) hangUp(conn *net.UnixConn) {
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		s.keeper.log.Warn("hang up", "error", err)
	}
}

// watch is the dead man's hand: without a call for so long, everything is
// put back, and again after as long when that failed in part.
func (s *server) watch(ctx context.Context) {
	timer := time.NewTimer(s.deadMan)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.lastCall:
		case <-timer.C:
			s.letGo()
		}
		timer.Reset(s.deadMan)
	}
}

func (s *server) letGo() {
	if len(s.keeper.status().Pending) == 0 {
		return
	}
	s.keeper.log.Warn("no call came; putting everything back", "after", s.deadMan)
	report, err := s.keeper.restore("")
	detail := fmt.Sprintf("put everything back at %s, because no call came for %s: %d undone, %d failed",
		s.now().UTC().Format(time.RFC3339), s.deadMan, len(report.Undone), len(report.Failed))
	if err != nil {
		detail = err.Error()
	}
	s.mu.Lock()
	s.detail = detail
	s.mu.Unlock()
}

// peer is the user at the other end.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("read peer's credentials: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, fmt.Errorf("read peer's credentials: %w", err)
	}
	if credErr != nil {
		return 0, fmt.Errorf("read peer's credentials: %w", credErr)
	}
	return int(cred.Uid), nil
}

// converse answers one caller until it hangs up.
func (s *server) converse(ctx context.Context, conn *net.UnixConn) {
	defer s.hangUp(conn)
	stop := context.AfterFunc(ctx, func() { s.expire(conn, time.Unix(1, 0)) })
	defer stop()
	uid, err := peer(conn)
	if err != nil || (uid != 0 && !slices.Contains(s.uids, uid)) {
		s.keeper.log.Warn("caller is refused", "uid", uid, "error", err)
		s.say(conn, answer{Refused: &Refused{
			Change: "the call", Reason: fmt.Sprintf("user %d may not change this machine", uid), Cure: "call as the agent's own user, or as root",
		}})
		return
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 4096), maxRequestBytes)
	for s.expire(conn, s.now().Add(idleTimeout)) && ctx.Err() == nil && lines.Scan() {
		r, err := decodeRequest(lines.Bytes())
		if err != nil {
			s.keeper.log.Warn("call is not understood", "uid", uid, "error", err)
			s.say(conn, answer{Error: err.Error()})
			return
		}
		if !s.say(conn, s.answer(r)) {
			return
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		s.keeper.log.Warn("call is too long", "uid", uid)
		s.say(conn, answer{Error: fmt.Sprintf("a request has at most %d bytes", maxRequestBytes)})
	}
}

func (s *server) expire(conn *net.UnixConn, at time.Time) bool {
	if err := conn.SetDeadline(at); err != nil {
		return false // closed
	}
	return true
}

// say writes an answer; a caller that has gone cannot be told.
func (s *server) say(conn *net.UnixConn, a answer) bool {
	line, err := json.Marshal(a)
	if err != nil {
		s.keeper.log.Error("encode answer", "error", err)
		return false
	}
	if !s.expire(conn, s.now().Add(idleTimeout)) {
		return false
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		s.keeper.log.Warn("answer is not delivered", "error", err)
		return false
	}
	return true
}

func (s *server) answer(r request) answer {
	if r.Apply != nil || r.Restore != nil || r.Keepalive != nil {
		s.alive()
	}
	switch {
	case r.Apply != nil:
		made, err := s.keeper.apply(r.Apply.Scope, r.Apply.Changes)
		return answerOr(err, answer{Applied: made})
	case r.Restore != nil:
		report, err := s.keeper.restore(r.Restore.Scope)
		return answerOr(err, answer{Restored: &report})
	case r.Readback != nil:
		read, err := readback(s.keeper.policy, *r.Readback)
		return answerOr(err, answer{Readback: &read})
	}
	status := s.keeper.status()
	s.mu.Lock()
	status.Detail = s.detail
	s.mu.Unlock()
	return answer{Status: &status}
}

// alive winds the dead man's timer up.
func (s *server) alive() {
	select {
	case s.lastCall <- struct{}{}:
	default: // one is on its way already
	}
}

func answerOr(err error, a answer) answer {
	var refused *Refused
	switch {
	case err == nil:
		return a
	case errors.As(err, &refused):
		return answer{Refused: refused}
	}
	return answer{Error: err.Error()}
}
