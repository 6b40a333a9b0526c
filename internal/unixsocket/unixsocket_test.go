package unixsocket

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListenReplacesASocketAndNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := Listen(path, 0o600, 0)
	if err != nil {
		t.Fatal(err)
	}
	first.SetUnlinkOnClose(false) // as a process that is killed leaves it
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Listen(path, 0o600, os.Geteuid())
	if err != nil {
		t.Fatalf("in the place of a dead process's socket: %v", err)
	}
	defer second.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket's mode is %v: %v", info, err)
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(file, 0o600, 0); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("in the place of a file: %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept" {
		t.Errorf("the file has %q: %v", text, err)
	}
}

func TestServeBoundsItsCallsAndWaitsForThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path, 0o600, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan error)
	returned := false
	go func() {
		ended <- Serve(ctx, l, 1, func(c *net.UnixConn) { _ = c.Close() }, func(ctx context.Context, c *net.UnixConn) {
			begun <- struct{}{}
			<-ctx.Done()
			_ = c.Close()
			returned = true
		})
	}()
	dial := func() net.Conn {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	first := dial()
	<-begun
	if n, err := dial().Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("one more than may be served at a time read %d: %v", n, err)
	}
	stop()
	if err := <-ended; err != nil || !returned {
		t.Errorf("ended with %v; the call had returned: %t", err, returned)
	}
	if _, err := first.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("a served connection read %v", err)
	}
	if _, err := net.Dial("unix", path); err == nil {
		t.Error("somebody still listens")
	}
}
