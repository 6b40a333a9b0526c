//go:build e2e

package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet/browser"
)

// underway is the trial that arrives while the page is looked at.
const underway = 7

// hostile is what a node would have to say to be more than text on a page.
const hostile = `<img src=x onerror=document.title='owned'><b id=owned>`

// Somebody uses the page in Chromium, by mouse, touch and keyboard, while records come; testdata/use.cjs says what
// must be seen.
//
//attack:archive markup in what nodes and people said, shown on the live page | it is set as text, and the page runs no
//attack:and script but its own
func TestE2EThePageIsUsed(t *testing.T) {
	whole := synthetic.Run(t, synthetic.Options{Seed: 41, Speeds: []float64{2.8, 8.3}, Repetitions: 2,
		Mishap: func(trial wire.Trial, attempt int, c *synthetic.Conditions) {
			c.GateTimeout = trial.Number == 2 && attempt == 1
		}})
	dir := halfwayOf(t, whole, underway)
	say(t, filepath.Join(dir, "journal.ndjson"), "the band was never held", hostile)

	ctx, cancel := context.WithCancel(t.Context())
	arrived := make(chan error, 1)
	go func() { arrived <- arrive(ctx, whole, dir, "car", "roadside") }()
	err := looked(t, dir, "testdata/use.cjs")
	cancel()
	if err := errors.Join(err, <-arrived); err != nil {
		t.Fatal(err)
	}
}

// The car leaves the controller's reach, and the roadside goes on: testdata/gone.cjs says what the page may still show.
// FIELDMESH_PICTURES names a folder that gets pictures of it.
func TestE2EACarOutOfReachIsNotShownAsCurrent(t *testing.T) {
	pictures := os.Getenv("FIELDMESH_PICTURES")
	if pictures == "" {
		pictures = t.TempDir()
	}
	for _, phase := range []string{"armed", "running"} {
		whole := synthetic.Run(t, synthetic.Options{Seed: 42, Speeds: []float64{8.3}, Repetitions: 4})
		rel := func(node string) string { return fmt.Sprintf("trials/%04d-a1/records/%s.ndjson", underway, node) }
		if phase == "armed" {
			for _, node := range []string{"car", "roadside"} {
				forget(t, filepath.Join(whole.Dir(), rel(node)), `"kind":"window"`)
			}
		}
		dir := halfwayOf(t, whole, underway)
		left := filepath.Join(t.TempDir(), "left")
		ctx, cancel := context.WithCancel(t.Context())
		arrived := make(chan error, 1)
		go func() { arrived <- leave(ctx, whole, dir, left) }()
		err := looked(t, dir, "testdata/gone.cjs", phase, pictures, left)
		cancel()
		if err := errors.Join(err, <-arrived); err != nil {
			t.Fatalf("%s: %v", phase, err)
		}
	}
}

// leave has both nodes heard until the file left is there, and then the roadside alone, until ctx ends.
func leave(ctx context.Context, whole *archive.Archive, dir, left string) error {
	heard := func(nodes ...string) error {
		for _, node := range nodes {
			path := filepath.Join(dir, fmt.Sprintf("trials/%04d-a1/records/%s.ndjson", underway, node))
			if err := os.Chtimes(path, time.Time{}, time.Now()); err != nil {
				return err
			}
		}
		return pause.For(ctx, 200*time.Millisecond)
	}
	for ctx.Err() == nil {
		if err := heard("car", "roadside"); err != nil && ctx.Err() == nil {
			return err
		}
		if _, err := os.Stat(left); err == nil {
			break
		}
	}
	if err := arrive(ctx, whole, dir, "roadside"); err != nil {
		return err
	}
	for ctx.Err() == nil { // all of its records came
		if err := heard("roadside"); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// The page is open on another machine while its server ends, an address with another token is served, and the page's
// own is served again: testdata/back.cjs says what must be seen. The files of the script's steps are its arguments.
func TestE2EThePageComesBack(t *testing.T) {
	dir := halfwayOf(t, synthetic.Run(t, synthetic.Options{Seed: 43, Speeds: []float64{8.3}, Repetitions: 4}), underway)
	token, err := Token(":1", filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var at net.Addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	serve := func(token string) (end func() error) {
		t.Helper()
		l, err := net.Listen("tcp", at.String())
		if err != nil {
			t.Fatal(err)
		}
		at = l.Addr()
		ctx, cancel := context.WithCancel(ctx)
		served := make(chan error, 1)
		go func() { served <- Serve(ctx, l, NewBoard(dir, slog.New(slog.DiscardHandler)), token) }()
		return func() error { cancel(); return <-served }
	}
	seen := filepath.Join(t.TempDir(), "seen")
	end := serve(token)
	script := browser.Script(ctx, t, "testdata/back.cjs", Addresses(at, token)[0], seen)
	said := make(chan error, 1)
	var out []byte
	go func() { var err error; out, err = script.CombinedOutput(); said <- err }()
	for _, next := range []string{"another token, which refuses the page", token} {
		if err := errors.Join(appears(ctx, seen), os.Remove(seen), end()); err != nil {
			t.Fatal(err)
		}
		end = serve(next)
	}
	if err := errors.Join(<-said, end()); err != nil {
		t.Errorf("what somebody sees: %v\n%s", err, out)
	}
}

// appears waits for a file.
func appears(ctx context.Context, path string) error {
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		if err := pause.For(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for what the script writes: %w", err)
		}
	}
}

// looked serves the page of a run while a script looks at it.
func looked(t *testing.T, dir, script string, args ...string) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, NewBoard(dir, slog.New(slog.DiscardHandler)), "") }()
	out, err := browser.Script(ctx, t, script, append([]string{"http://" + l.Addr().String() + "/"}, args...)...).
		CombinedOutput()
	cancel()
	if err := errors.Join(err, <-served); err != nil {
		return fmt.Errorf("what somebody sees: %w\n%s", err, out)
	}
	t.Logf("%s", out)
	return nil
}

// say replaces a text of a file that was said by one that is hostile.
func say(t *testing.T, path, text, by string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	said := bytes.ReplaceAll(raw, []byte(text), []byte(by))
	if bytes.Equal(raw, said) {
		t.Fatalf("%s does not say %q", path, text)
	}
	if err := os.WriteFile(path, said, 0o644); err != nil {
		t.Fatal(err)
	}
}

// arrive appends the rest of the trial's records of some nodes, and an event of the car's, a little at a time, until
// ctx ends.
func arrive(ctx context.Context, whole *archive.Archive, dir string, nodes ...string) error {
	const steps = 600 // three minutes: on a busy machine the browser takes one to come to what has to move
	rel := func(node string) string { return fmt.Sprintf("trials/%04d-a1/records/%s.ndjson", underway, node) }
	event, err := synthetic.Lines([]wire.Record{{Header: wire.Header{Node: "car", Epoch: "e-car", Seq: 999999,
		TBootNs: synthetic.OpenBootNs["car"] + int64(4*time.Second), Run: whole.Info().Run, Trial: underway,
		Attempt: 1}, Body: &wire.Event{Level: "info", Text: hostile}}})
	if err != nil {
		return err
	}
	rest := map[string][]byte{}
	for _, node := range nodes {
		all, err := os.ReadFile(filepath.Join(whole.Dir(), rel(node)))
		if err != nil {
			return err
		}
		had, err := os.Stat(filepath.Join(dir, rel(node)))
		if err != nil {
			return err
		}
		rest[node] = all[had.Size():]
	}
	if more, comes := rest["car"]; comes {
		first := bytes.IndexByte(more, '\n') + 1
		rest["car"] = slices.Concat(more[:first], event[0], []byte("\n"), more[first:])
	}
	next := time.NewTicker(300 * time.Millisecond)
	defer next.Stop()
	for left := steps; left > 0; left-- {
		for node, more := range rest {
			n := len(more) / left
			f, err := os.OpenFile(filepath.Join(dir, rel(node)), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.Write(more[:n])
			if err := errors.Join(err, f.Close()); err != nil {
				return err
			}
			rest[node] = more[n:]
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
