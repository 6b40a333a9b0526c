// Package ledger numbers the fields of a machine and writes down what each has made,
// so that whatever a dead one left is found and removed.
package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/pause"
)

// DefaultRunDir holds a lock and a ledger per field of this machine. It is on
// a file system that a reboot empties, as a reboot removes the namespaces.
const DefaultRunDir = "/run/fieldmesh"

// maxFields bounds the number of a field: it is a byte of its addresses.
const maxFields = 250

// Ledger says what a field has created, on disk before it is created. The
// field's owner holds the lock beside it, which the kernel releases when the
// owner ends, however it ends.
type Ledger struct {
	ID         int      `json:"id"`
	OwnerPID   int      `json:"owner_pid"`
	Dir        string   `json:"dir"`
	Namespaces []string `json:"namespaces"`
}

// Path is the file of a field's ledger.
func Path(runDir string, id int) string {
	return filepath.Join(runDir, fmt.Sprintf("field-%d.json", id))
}

// Claim takes the lowest number that nobody holds, after cleaning up what a
// dead owner left under it. The returned file is the lock.
func Claim(runDir string) (int, *os.File, error) {
	if err := os.MkdirAll(runDir, 0o755); err != nil {
		return 0, nil, fmt.Errorf("claim a field: %w", err)
	}
	for id := range maxFields {
		lock, err := tryLock(runDir, id)
		if err != nil {
			return 0, nil, err
		}
		if lock == nil {
			continue
		}
		if _, err := SweepOne(runDir, id); err != nil {
			return 0, nil, errors.Join(err, lock.Close())
		}
		return id, lock, nil
	}
	return 0, nil, fmt.Errorf("claim a field: all %d are in use", maxFields)
}

// tryLock returns nil when another process holds the number.
func tryLock(runDir string, id int) (*os.File, error) {
	f, err := tryFile(filepath.Join(runDir, fmt.Sprintf("field-%d.lock", id)))
	if err != nil {
		return nil, fmt.Errorf("lock field %d: %w", id, err)
	}
	return f, nil
}

// tryFile locks a file, made if need be; nil when another process has done so.
func tryFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return f, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, f.Close()
	default:
		return nil, errors.Join(err, f.Close())
	}
}

// StopWithin is how long a process may take to put things back after TERM.
const StopWithin = 8 * time.Second

// endsWithin is how long a field may take to end whose controller is gone.
const endsWithin = 4 * StopWithin

// LockFolder takes a field's folder. A field that is still ending there, after
// its controller was killed, is waited for: its nodes are writing their state.
func LockFolder(ctx context.Context, dir string) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	for {
		f, err := tryFile(filepath.Join(dir, "field.lock"))
		if err != nil {
			return nil, fmt.Errorf("lock folder of the field: %w", err)
		}
		if f != nil {
			return f, nil
		}
		if err := pause.For(ctx, 50*time.Millisecond); err != nil {
			return nil, fmt.Errorf("lock folder of the field: another field is at work in %q: %w", dir, err)
		}
	}
}

// Save writes the ledger to disk.
func (l Ledger) Save(runDir string) error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("encode ledger: %w", err)
	}
	return keys.WriteFile(Path(runDir, l.ID), append(data, '\n'), 0o600)
}

// Sweep cleans up after every field whose owner is gone and says which
// namespaces it removed; "" is DefaultRunDir. Fields in use are left alone.
func Sweep(runDir string) ([]string, error) {
	if runDir == "" {
		runDir = DefaultRunDir
	}
	paths, err := filepath.Glob(filepath.Join(runDir, "field-*.json"))
	if err != nil {
		return nil, fmt.Errorf("sweep fields: %w", err)
	}
	var removed []string
	var errs []error
	for _, p := range paths {
		id, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(p), "field-"), ".json"))
		if err != nil {
			continue // not one of ours
		}
		lock, err := tryLock(runDir, id)
		if err != nil || lock == nil {
			errs = append(errs, err)
			continue
		}
		names, err := SweepOne(runDir, id)
		removed = append(removed, names...)
		errs = append(errs, err, lock.Close())
	}
	return removed, errors.Join(errs...)
}

// SweepOne cleans up one number, whose lock the caller holds.
func SweepOne(runDir string, id int) ([]string, error) {
	path := Path(runDir, id)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sweep field %d: %w", id, err)
	}
	var l Ledger
	if err := json.Unmarshal(data, &l); err != nil {
		return nil, fmt.Errorf("sweep field %d: decode %q: %w", id, path, err)
	}
	removed, err := l.remove()
	if err != nil {
		return removed, err
	}
	// Of the nodes' sockets of radio feedback; a pattern of digits and one star is well formed.
	sockets, _ := filepath.Glob(filepath.Join(runDir, fmt.Sprintf("field-%d-*.sock", id)))
	for _, s := range sockets {
		if err := os.Remove(s); err != nil && !errors.Is(err, os.ErrNotExist) {
			return removed, fmt.Errorf("sweep field %d: %w", id, err)
		}
	}
	if err := os.Remove(path); err != nil {
		return removed, fmt.Errorf("sweep field %d: %w", id, err)
	}
	return removed, nil
}

// remove kills what runs in the listed namespaces and deletes them. Membership
// finds every process, also one that nobody wrote down, and never a stranger
// that was given an old process's number.
func (l Ledger) remove() ([]string, error) {
	spaces := map[string]netns.NsHandle{}
	var errs []error
	for _, name := range l.Namespaces {
		if !strings.HasPrefix(name, fmt.Sprintf("fm%d-", l.ID)) {
			errs = append(errs, fmt.Errorf("remove namespace %q: not a name of field %d", name, l.ID))
			continue
		}
		ns, err := netns.GetFromName(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		spaces[name] = ns // -1 when it cannot be opened: a name whose mount is gone
		errs = append(errs, err)
	}
	errs = append(errs, killAll(spaces))
	var removed []string
	for _, name := range l.Namespaces {
		ns, ok := spaces[name]
		if !ok {
			continue
		}
		if ns.IsOpen() {
			errs = append(errs, deleteLinks(ns), ns.Close())
		}
		if err := netns.DeleteNamed(name); err != nil {
			errs = append(errs, fmt.Errorf("delete namespace %q: %w", name, err))
			continue
		}
		removed = append(removed, name)
	}
	return removed, errors.Join(errs...)
}

// deleteLinks takes veths and bridges away at once: the namespace itself goes
// only some time after its name.
func deleteLinks(ns netns.NsHandle) error {
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open namespace's links: %w", err)
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("list namespace's links: %w", err)
	}
	var errs []error
	for _, l := range links {
		if t := l.Type(); t != "veth" && t != "bridge" {
			continue
		}
		if err := h.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, fmt.Errorf("delete link %q: %w", l.Attrs().Name, err))
		}
	}
	return errors.Join(errs...)
}

// killAll kills the namespaces' processes and waits until they are gone, at
// most 2 s. A process may be forking while it is looked for: so again and again.
func killAll(spaces map[string]netns.NsHandle) error {
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		pids, err := ProcessesIn(spaces)
		if err != nil || len(pids) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("kill processes of namespaces: %v are still there", pids)
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
	}
}

// ProcessesIn lists the processes in any of the namespaces but this one, by
// reading /proc once.
func ProcessesIn(spaces map[string]netns.NsHandle) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	type id struct{ dev, ino uint64 }
	want := map[id]bool{}
	for _, ns := range spaces {
		if !ns.IsOpen() {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(ns), &st); err != nil {
			return nil, fmt.Errorf("look at namespace: %w", err)
		}
		want[id{st.Dev, st.Ino}] = true
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		var got unix.Stat_t
		if err := unix.Stat(fmt.Sprintf("/proc/%d/ns/net", pid), &got); err != nil {
			continue // it has ended, or is about to
		}
		if want[id{got.Dev, got.Ino}] {
			out = append(out, pid)
		}
	}
	return out, nil
}
