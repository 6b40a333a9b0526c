package face

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func pinOf(digit string) string { return strings.Repeat(digit, 64) }

// apps lists who is let in as an app.
func apps(a *keys.Authorized) (out string) {
	for _, p := range a.Peers() {
		if p.Role == wire.RoleApp {
			out += p.Name + " "
		}
	}
	return out
}

// The app that starts the agent is let in from the first moment, and stays so whatever apps
// the controller tells; with its own key told, it is there once.
//
//attack:controller a list of apps that shuts out the one which starts a phone's node, or gives its name to another
//attack:and | its key is in the node's own configuration (`app_key`), and its name is taken
func TestTheAppThatStartsTheAgentIsLetIn(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Config{StateDir: dir, KeysDir: filepath.Join(dir, "keys"), AppKey: pinOf("a")}
	list, err := keys.NewAuthorized(keys.Peer{Name: "desk", Role: wire.RoleController, Pin: pinOf("c")},
		keys.Peer{Name: "by-hand", Role: wire.RoleApp, Pin: pinOf("b")})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(cfg.KeysDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := list.Save(filepath.Join(cfg.KeysDir, "authorized.json")); err != nil {
		t.Fatal(err)
	}
	authorized, err := letIn(cfg, pinOf("f"), slog.New(slog.DiscardHandler))
	if err != nil || apps(authorized) != "by-hand own-app " {
		t.Fatalf("let in are %q (%v)", apps(authorized), err)
	}
	f := &Face{cfg: cfg, authorized: authorized, pin: pinOf("f"), log: slog.New(slog.DiscardHandler)}
	for _, c := range []struct {
		told []wire.App
		want string
	}{
		{[]wire.App{{Name: "passenger", Pin: pinOf("d")}}, "passenger own-app "},
		{[]wire.App{{Name: "phone", Pin: pinOf("a")}}, "phone "},
		{[]wire.App{}, "own-app "},
	} {
		desk := api.Peer{Name: "desk", Role: wire.RoleController, Pin: pinOf("c")}
		if _, err := f.LetIn(desk, wire.Apps{Apps: c.told}); err != nil {
			t.Fatal(err)
		}
		if got := apps(f.authorized); got != c.want {
			t.Errorf("told %v: let in are %q", c.told, got)
		}
		again, err := letIn(cfg, pinOf("f"), slog.New(slog.DiscardHandler))
		if err != nil || apps(again) != c.want {
			t.Errorf("told %v, and begun again: let in are %q (%v)", c.told, apps(again), err)
		}
	}
	if text, err := fs.ReadFile(os.DirFS(cfg.FaceDir()), "apps.json"); err != nil || strings.Contains(string(text),
		ownApp) {
		t.Errorf("what the controller tells is kept with what it does not: %s (%v)", text, err)
	}
	taken := wire.Apps{Apps: []wire.App{{Name: ownApp, Pin: pinOf("e")}}}
	if _, err := f.LetIn(api.Peer{Pin: pinOf("c")}, taken); err == nil {
		t.Error("another app takes its name")
	}
}

// What a controller told about apps counts while the node has the key of then, and obeys that controller.
//
//attack:phone a phone that was revoked, or is another lab's, comes to a node that was paired again since
//attack:and | what a controller told about apps counts only for the node's key of then, and while it is obeyed
func TestAppsOfAnEarlierPairingAreNotLetIn(t *testing.T) {
	desk, lab := keys.Peer{Name: "controller", Role: wire.RoleController, Pin: pinOf("c")},
		keys.Peer{Name: "controller", Role: wire.RoleController, Pin: pinOf("d")}
	phone := keys.Peer{Name: "phone", Role: wire.RoleApp, Pin: pinOf("1")}
	other := keys.Peer{Name: "other", Role: wire.RoleApp, Pin: pinOf("2")}
	for name, c := range map[string]struct {
		own    string
		paired []keys.Peer // whom the new pairing lets in
		older  []keys.Peer // what an older agent kept; nil: this one kept that desk told about phone
		want   string
	}{
		"the same pairing":                  {pinOf("a"), []keys.Peer{desk, other}, nil, "phone "},
		"another controller":                {pinOf("b"), []keys.Peer{lab, other}, nil, "other "},
		"the same controller, paired again": {pinOf("b"), []keys.Peer{desk, other}, nil, "other "},
		"another controller, by hand":       {pinOf("a"), []keys.Peer{lab, other}, nil, "other "},
		"of nobody knows whom":              {pinOf("a"), []keys.Peer{desk, other}, []keys.Peer{phone}, ""},
		"of nobody knows whom, but paired too": {pinOf("a"), []keys.Peer{desk, other}, []keys.Peer{phone, other},
			"other "},
		"of nobody knows whom, and none": {pinOf("a"), []keys.Peer{desk, other}, []keys.Peer{}, ""},
	} {
		dir := t.TempDir()
		cfg := config.Config{StateDir: dir, KeysDir: filepath.Join(dir, "keys")}
		save := func(path string, peers []keys.Peer) {
			list, err := keys.NewAuthorized(peers...)
			if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700)); err != nil {
				t.Fatal(err)
			}
			if err := list.Save(path); err != nil {
				t.Fatal(err)
			}
		}
		before, err := keys.NewAuthorized(desk)
		if err != nil {
			t.Fatal(err)
		}
		f := &Face{cfg: cfg, authorized: before, pin: pinOf("a"), log: slog.New(slog.DiscardHandler)}
		told := wire.Apps{Apps: []wire.App{{Name: phone.Name, Pin: phone.Pin}}}
		if _, err := f.LetIn(api.Peer(desk), told); err != nil {
			t.Fatal(err)
		}
		kept, err := keys.LoadAuthorized(appsFile(cfg)) // as an older agent does
		if err != nil || before.SetRole(wire.RoleApp, kept.Peers()) != nil {
			t.Errorf("%s: an older agent cannot let in %v (%v)", name, kept.Peers(), err)
		}
		if c.older != nil {
			save(appsFile(cfg), c.older)
			if err := os.Remove(byFile(cfg)); err != nil {
				t.Fatal(err)
			}
		}
		save(filepath.Join(cfg.KeysDir, "authorized.json"), c.paired)
		var log testnet.Output
		list, err := letIn(cfg, c.own, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil || apps(list) != c.want {
			t.Errorf("%s: let in are %q (%v), want %q", name, apps(list), err, c.want)
		}
		out := strings.Contains(log.String(), "fieldmesh keys tell") && strings.Contains(log.String(), "apps=[phone]")
		if shut := c.want != "phone " && (c.older == nil || len(c.older) > 0); out != shut {
			t.Errorf("%s: that the phone is shut out is said: %v\n%s", name, out, &log)
		}
	}
}

// A list by hand in which another app has its name is told with the cure.
func TestAnAppOfItsNameInTheListIsTold(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Config{StateDir: dir, KeysDir: dir, AppKey: pinOf("a")}
	list, err := keys.NewAuthorized(keys.Peer{Name: ownApp, Role: wire.RoleApp, Pin: pinOf("b")})
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Save(filepath.Join(dir, "authorized.json")); err != nil {
		t.Fatal(err)
	}
	_, err = letIn(cfg, pinOf("f"), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "correct app_key, or authorized.json in") {
		t.Errorf("it says %v", err)
	}
}
