package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
)

const babeld = "babeld"

var errCrash = errors.New("the process was killed")

// bomb goes off at a step: every later step of the same life fails too, as
// if the process were no more.
type bomb struct {
	at, step int // at 0: never
}

func (b *bomb) tick() error {
	b.step++
	if b.at != 0 && b.step >= b.at {
		return errCrash
	}
	return nil
}

func (b *bomb) due() bool { return b.at != 0 && b.step+1 == b.at }

// machine is a fake system: what is set, by name. Every change writes two
// names, so that it can be cut in half.
type machine struct {
	mu    sync.Mutex
	state map[string]string
	bomb  *bomb
	deny  map[string]error // target → why revert fails
	spoil int              // the so-manieth write from now fails, without a crash
	says  error            // of a write that is spoilt; nil: that the kernel says no
	gone  string           // target whose revert finds nothing
}

func newMachine() *machine {
	return &machine{
		state: map[string]string{"sysctl net.ipv4.tcp_sack/a": "1", "sysctl net.ipv4.tcp_sack/b": "1"},
		bomb:  &bomb{}, deny: map[string]error{},
	}
}

func (m *machine) snapshot() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.state)
}

func (m *machine) Void(u change.Undo) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone != "" && m.gone == recall(u).Target
}

func (m *machine) Here(change.Undo) bool { return true }

func halves(c change.Change) []string { return []string{c.Target() + "/a", c.Target() + "/b"} }

// memory is what the fake's undo needs. It lies in the kind's own undo, where
// the kernel's have the name of their boot, and so goes through the journal.
type memory struct {
	Target string
	Former map[string]*string // nil: it was not there
}

func (m *machine) Prepare(_ uint64, c change.Change) (change.Undo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.bomb.tick(); err != nil {
		return nil, err
	}
	was := memory{Target: c.Target(), Former: map[string]*string{}}
	for _, name := range halves(c) {
		was.Former[name] = nil
		if v, ok := m.state[name]; ok {
			was.Former[name] = &v
		}
	}
	text, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	u := blankUndo(c)
	u.Place().Boot = string(text)
	return u, nil
}

func blankUndo(c change.Change) change.Undo {
	u, err := change.EmptyUndo(c)
	if err != nil {
		panic(err)
	}
	return u
}

func recall(u change.Undo) memory {
	var was memory
	if err := json.Unmarshal([]byte(u.Place().Boot), &was); err != nil {
		panic(err)
	}
	return was
}

func (m *machine) Apply(c change.Change, _ change.Undo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range halves(c) {
		if err := m.bomb.tick(); err != nil {
			return err
		}
		if m.spoil > 0 {
			if m.spoil--; m.spoil == 0 {
				return cmp.Or(m.says, errors.New("the kernel says no"))
			}
		}
		m.state[name] = c.String()
	}
	return nil
}

func (m *machine) Revert(u change.Undo) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := recall(u)
	if err := m.deny[was.Target]; err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(was.Former)) {
		if err := m.bomb.tick(); err != nil {
			return "", err
		}
		if v := was.Former[name]; v != nil {
			m.state[name] = *v
		} else {
			delete(m.state, name)
		}
	}
	if m.gone == was.Target {
		return "interface is gone", nil
	}
	return "", nil
}

// disk is a journal's file in memory. When the bomb goes off in a write, torn
// bytes of it are there.
type disk struct {
	data []byte
	bomb *bomb
	torn int
	full bool // it takes no more bytes
}

func (d *disk) WriteAt(p []byte, at int64) (int, error) {
	if int64(len(d.data)) != at {
		return 0, fmt.Errorf("write at %d of a file of %d bytes", at, len(d.data))
	}
	if d.full {
		return 0, syscall.ENOSPC
	}
	if d.bomb.due() {
		d.data = append(d.data, p[:min(d.torn, len(p))]...)
	}
	if err := d.bomb.tick(); err != nil {
		return 0, err
	}
	d.data = append(d.data, p...)
	return len(p), nil
}

func (d *disk) Sync() error { return d.bomb.tick() }

func (d *disk) Truncate(size int64) error {
	if err := d.bomb.tick(); err != nil {
		return err
	}
	d.data = d.data[:size]
	return nil
}

func (d *disk) Close() error { return nil }

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func testPolicy() change.Policy {
	return change.Policy{
		Interfaces: []string{"wlan0"},
		Prefixes:   []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16"), netip.MustParsePrefix("fd77::/48")},
		Binaries:   map[string]string{babeld: "/usr/sbin/babeld"},
	}
}

// wake starts a life on what is on the disk.
func wake(t *testing.T, m *machine, d *disk) *keeper {
	t.Helper()
	r := replay(d.data)
	j := &journal{file: d, size: r.length}
	if err := j.cut(r.length); err != nil && !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	if len(r.damage) > 0 {
		t.Fatalf("a crash damaged the journal: %v", r.damage)
	}
	return newKeeper(m, j, r, testPolicy(), quiet())
}

func sysctl(key, value string) change.Sysctl { return change.Sysctl{Key: key, Value: value} }

func address(prefix string) change.Address {
	return change.Address{Interface: "wlan0", Prefix: netip.MustParsePrefix(prefix)}
}

func route(dst string) change.Route {
	return change.Route{Interface: "wlan0", Destination: netip.MustParsePrefix(dst)}
}

func linkUp() change.Link {
	up := true
	return change.Link{Interface: "wlan0", Up: &up}
}

func routingDaemon() change.Daemon {
	return change.Daemon{Name: babeld, Interface: "wlan0", Announce: netip.MustParsePrefix("10.77.0.0/16")}
}
