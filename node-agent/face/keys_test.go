package face

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// issued makes a folder of keys that lets in the peers, and returns the node's pin.
func issued(t *testing.T, dir string, peers ...keys.Peer) string {
	t.Helper()
	certPEM, keyPEM, pin, err := keys.New("alpha")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := keys.SaveIdentity(dir, "node", certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	list(t, dir, peers...)
	return pin
}

// list writes whom a folder of keys lets in.
func list(t *testing.T, dir string, peers ...keys.Peer) {
	t.Helper()
	a, err := keys.NewAuthorized(peers...)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Save(filepath.Join(dir, "authorized.json")); err != nil {
		t.Fatal(err)
	}
}

// every is how often the face looks at its keys in the test.
const every = 20 * time.Millisecond

// await waits until something is so, which takes a few looks.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(every / 4) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// What happens to the folder of keys is in force a moment later, also in an attempt, which is driven to its end first.
//
//attack:controller one whose key was deleted on the node goes on steering the agent that runs
//attack:and | the node looks at its keys each second, and lets nobody in when they are not those that it began with
func TestKeysThatAreDeletedLetNobodyIn(t *testing.T) {
	desk := keys.Peer{Name: "controller", Role: wire.RoleController, Pin: pinOf("c")}
	phone := keys.Peer{Name: "phone", Role: wire.RoleApp, Pin: pinOf("1")}
	for name, change := range map[string]func(dir string) error{
		"the folder":  os.RemoveAll,
		"the key":     func(dir string) error { return os.Remove(filepath.Join(dir, "node.key")) },
		"the list":    func(dir string) error { return os.Remove(filepath.Join(dir, "authorized.json")) },
		"another key": func(dir string) error { defer issued(t, dir, desk); return os.RemoveAll(dir) },
		"half a list": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "authorized.json"), []byte("["), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			cfg := config.Config{StateDir: state, KeysDir: filepath.Join(state, "keys")}
			pin := issued(t, cfg.KeysDir, desk)
			authorized, err := letIn(cfg, pin, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			f := &Face{cfg: cfg, authorized: authorized, pin: pin, keyFiles: keyFilesIn(cfg.KeysDir),
				log: slog.New(slog.DiscardHandler)}
			var underWay atomic.Bool
			underWay.Store(true)
			ended := make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() { ended <- f.watchKeys(ctx, every, underWay.Load) }()

			list(t, cfg.KeysDir, desk, phone)
			await(t, "who was added to the list is let in", func() bool {
				_, in := f.authorized.Find(phone.Pin)
				return in
			})
			// A list that others can read lets nobody in until its mode is right, which no other property shows.
			path := filepath.Join(cfg.KeysDir, "authorized.json")
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			await(t, "nobody is let in by a list that others can read", func() bool {
				return len(f.authorized.Peers()) == 0
			})
			if err := os.Chmod(path, 0o600); err != nil {
				t.Fatal(err)
			}
			await(t, "a list whose mode was corrected is read again", func() bool {
				return len(f.authorized.Peers()) == 2
			})
			if err := change(cfg.KeysDir); err != nil {
				t.Fatal(err)
			}
			await(t, "nobody is let in", func() bool { return len(f.authorized.Peers()) == 0 })
			if _, err := f.LetIn(api.Peer(desk), wire.Apps{}); err == nil {
				t.Error("who asked before that still says whom to let in")
			}
			select {
			case err := <-ended:
				t.Errorf("it ends in an attempt: %v", err)
			case <-time.After(2 * every):
			}
			underWay.Store(false)
			await(t, "it ends after the attempt", func() bool { return len(ended) > 0 })
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "end with the keys that were there") {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}
