package traffic

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// awaitListening returns when the process itself listens at the address. That
// somebody does is not enough: another server on the port is why ours fails.
func (p *Process) awaitListening(ctx context.Context, at netip.AddrPort) error {
	timeout := time.NewTimer(listenTimeout)
	defer timeout.Stop()
	poll := time.NewTicker(listenInterval)
	defer poll.Stop()
	for {
		listens, err := p.listens(at)
		if err != nil {
			return err
		}
		if listens {
			return nil
		}
		select {
		case <-poll.C:
		case <-p.done:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
			return fmt.Errorf("it does not listen after %v", listenTimeout)
		}
	}
}

// listens looks in procfs, in the network namespace of the process; or at its sockets
// themselves, where they are reached.
func (p *Process) listens(at netip.AddrPort) (bool, error) {
	if p.program != nil {
		return listensAt(p.program, at)
	}
	proc := filepath.Join("/proc", strconv.Itoa(p.pid))
	table := "tcp"
	if !at.Addr().Unmap().Is4() {
		table = "tcp6"
	}
	text, err := os.ReadFile(filepath.Join(proc, "net", table))
	if isGone(err) {
		return false, nil // its end is seen by the caller
	}
	if err != nil {
		return false, fmt.Errorf("read listening sockets: %w", err)
	}
	inodes := listeners(text, at)
	if len(inodes) == 0 {
		return false, nil
	}
	files, err := os.ReadDir(filepath.Join(proc, "fd"))
	if isGone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read open files of iperf3: %w", err)
	}
	for _, f := range files {
		// A file that was closed since is none that listens.
		target, err := os.Readlink(filepath.Join(proc, "fd", f.Name()))
		if err == nil && slices.Contains(inodes, target) {
			return true, nil
		}
	}
	return false, nil
}

// isGone says that a process ended while it was looked at.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// listeners finds the sockets in /proc/net/tcp or tcp6 (proc(5)) that listen
// at an address, as the links in /proc/PID/fd name them.
func listeners(table []byte, at netip.AddrPort) []string {
	const stateListen = "0A"
	want := procAddress(at)
	var out []string
	for lines := bufio.NewScanner(bytes.NewReader(table)); lines.Scan(); {
		f := bytes.Fields(lines.Bytes())
		if len(f) > 9 && string(f[3]) == stateListen && string(f[1]) == want {
			out = append(out, "socket:["+string(f[9])+"]")
		}
	}
	return out
}

// procAddress writes an address as /proc/net/tcp does: 32-bit words in the
// machine's byte order, the port in the usual one.
func procAddress(at netip.AddrPort) string {
	raw := at.Addr().Unmap().AsSlice()
	text := make([]byte, 0, 37)
	littleEndian := binary.NativeEndian.Uint16([]byte{1, 0}) == 1
	for i := 0; i+4 <= len(raw); i += 4 {
		word := [4]byte{raw[i], raw[i+1], raw[i+2], raw[i+3]}
		if littleEndian {
			slices.Reverse(word[:])
		}
		text = hex.AppendEncode(text, word[:])
	}
	return string(bytes.ToUpper(text)) + fmt.Sprintf(":%04X", at.Port())
}
