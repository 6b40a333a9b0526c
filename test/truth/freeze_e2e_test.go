//go:build e2e

package truth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// stillTime is longer than a node or its iperf3 may stand still within the
// campaign's window, and the beats by which that is noticed.
const stillTime = 500 * time.Millisecond

// freezers are where control groups freeze, in this order: of version 2, of version
// 2 beside version 1, and of version 1.
var freezers = []struct{ root, file, freeze, thaw string }{
	{"/sys/fs/cgroup", "cgroup.freeze", "1", "0"},
	{"/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"},
	{"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"},
}

// freeze has a control group freeze a process for as long as last does: no signal
// reports it. The process goes back to its own group when it is over.
func freeze(pid int, last func()) error {
	for _, z := range freezers {
		group := filepath.Join(z.root, fmt.Sprintf("fieldmesh-truth-%d", pid))
		if err := os.Mkdir(group, 0o755); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(group, z.file)); err != nil { // no control groups lie there
			_ = os.RemoveAll(group)
			continue
		}
		write := func(path, text string) error {
			return os.WriteFile(filepath.Join(z.root, path), []byte(text), 0o644)
		}
		name := filepath.Base(group)
		err := write(filepath.Join(name, "cgroup.procs"), strconv.Itoa(pid))
		if err == nil {
			err = write(filepath.Join(name, z.file), z.freeze)
		}
		if err == nil {
			last()
		}
		err = errors.Join(err, write(filepath.Join(name, z.file), z.thaw))
		_ = write("cgroup.procs", strconv.Itoa(pid)) // it may have been killed, and a group that it left is empty
		for until := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
			if gone := os.Remove(group); gone == nil || time.Now().After(until) {
				return errors.Join(err, gone)
			}
		}
	}
	return errors.New("there is no freezer of control groups")
}

// freezeNode stops a node's iperf3 and its face, as the freezer of an app does, and
// has iperf3 go on first: the face never sees that it stood.
func (r *run) freezeNode(f *fault, at attempt) error {
	ns := r.netns(at.node(f.role))
	face := process(ns, kind{what: "face"}.isOf)
	iperf3 := process(ns, kind{what: "iperf3 server"}.isOf)
	if f.role == "sender" {
		iperf3 = process(ns, kind{what: "iperf3 client"}.isOf)
	}
	if face == 0 || iperf3 == 0 {
		return fmt.Errorf("there is no face or no iperf3 at %s", f.role)
	}
	for _, pid := range []int{face, iperf3} {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			_ = syscall.Kill(face, syscall.SIGCONT) // it may have been the other
			return err
		}
	}
	f.last()
	for _, pid := range []int{iperf3, face} {
		_ = syscall.Kill(pid, syscall.SIGCONT) // somebody may have killed it since
	}
	return nil
}

// within is how much of a fault lies within the window.
func (s struck) within(openNs, closeNs int64) time.Duration {
	return time.Duration(min(s.endNs, closeNs) - max(s.beginNs, openNs))
}
