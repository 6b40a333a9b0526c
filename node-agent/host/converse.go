package host

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/unixsocket"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/reach"
)

// converse answers one caller until it hangs up.
func (s *server) converse(ctx context.Context, conn *net.UnixConn) {
	defer s.hangUp(conn)
	stop := context.AfterFunc(ctx, func() { s.expire(conn, time.Unix(1, 0)) })
	defer stop()
	uid, err := unixsocket.Peer(conn)
	if err != nil || (uid != 0 && !slices.Contains(s.uids, uid)) {
		s.keeper.log.Warn("caller is refused", "uid", uid, "error", err)
		s.say(conn, answer{Refused: &change.Refused{
			Change: "the call", Reason: fmt.Sprintf("user %d may not change this machine", uid),
			Cure: "call as the agent's own user, or as root",
		}})
		return
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(make([]byte, 4096), maxRequestBytes)
	for s.expire(conn, time.Now().Add(idleTimeout)) && ctx.Err() == nil && lines.Scan() {
		r, err := decodeRequest(lines.Bytes())
		if err != nil {
			s.keeper.log.Warn("call is not understood", "uid", uid, "error", err)
			s.say(conn, answer{Error: err.Error()})
			return
		}
		a := s.answer(ctx, r, uid)
		if a.Refused != nil { // who may call has asked for what nobody may: it has a fault, or is not what it was
			s.keeper.log.Warn("call is refused", "uid", uid, "change", a.Refused.Change, "reason", a.Refused.Reason)
		}
		if !s.say(conn, a) {
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
	if a.file != nil {
		defer s.letGoOf(a.file) // the caller has its own by then
	}
	line, err := json.Marshal(a)
	if err != nil {
		s.keeper.log.Error("encode answer", "error", err)
		return false
	}
	if !s.expire(conn, time.Now().Add(idleTimeout)) {
		return false
	}
	var rights []byte
	if a.file != nil {
		rights = unix.UnixRights(int(a.file.Fd()))
	}
	if _, _, err := conn.WriteMsgUnix(append(line, '\n'), rights, nil); err != nil {
		s.keeper.log.Warn("answer is not delivered", "error", err)
		return false
	}
	return true
}

func (s *server) letGoOf(f *os.File) {
	if err := f.Close(); err != nil {
		s.keeper.log.Warn("close what was given away", "file", f.Name(), "error", err)
	}
}

func (s *server) answer(ctx context.Context, r request, uid int) answer {
	// Not Restore: a face that only puts back, start after start, wants nothing kept in force.
	if r.Apply != nil || r.Keepalive != nil || r.Sever != nil {
		s.alive()
	}
	switch {
	case r.Apply != nil:
		made, err := s.keeper.apply(r.Apply.Scope, r.Apply.changes())
		return answerOr(err, answer{Applied: made})
	case r.Restore != nil:
		restore := s.keeper.restore
		if uid == 0 && !slices.Contains(s.uids, 0) { // not the network face
			restore = s.keeper.restoreByHand
		}
		report, err := restore(r.Restore.Scope)
		return answerOr(err, answer{Restored: &report})
	case r.Packets != nil:
		file, filter, err := s.capture(ctx, *r.Packets)
		return answerOr(err, answer{Packets: &filter, file: file})
	case r.TCPEvents != nil:
		file, err := s.keeper.tcpEvents()
		return answerOr(err, answer{Ring: &struct{}{}, file: file})
	case r.Sever != nil:
		severed, err := s.keeper.sever(*r.Sever)
		return answerOr(err, answer{Severed: &severed})
	case r.WiFi != nil:
		caps, err := s.keeper.wifi(*r.WiFi)
		return answerOr(err, answer{Radio: caps})
	case r.Scan != nil:
		return answerOr(scan(s.keeper.policy, *r.Scan), answer{})
	}
	status := s.keeper.status()
	s.mu.Lock()
	status.Detail, status.Instance = s.detail, s.instance
	s.mu.Unlock()
	status.TCP, status.AndroidAPI, status.Settings = s.abilities(), s.androidAPI(), s.settings
	return answer{Status: &status}
}

func answerOr(err error, a answer) answer {
	var refused *change.Refused
	switch {
	case err == nil:
		return a
	case errors.As(err, &refused):
		return answer{Refused: refused}
	}
	return answer{Error: err.Error(), Reach: reach.Is(err)}
}
