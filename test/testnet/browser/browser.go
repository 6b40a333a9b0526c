// Package browser runs scripts that look at pages in a headless Chromium, by
// Playwright: Debian's chromium and the pinned playwright-core, which
// `scripts/setup test` installs.
package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// graceful is how long a script may take to close its browser when it is told
// to end.
const graceful = 10 * time.Second

// Script is a JavaScript file that runs with the arguments until ctx ends. It has
// `require("playwright-core")` and `require("chromium.cjs")`, which lies beside this
// file, and CHROMIUM in its environment names the browser. It is interrupted first, so
// that no browser stays behind.
func Script(ctx context.Context, t testing.TB, file string, args ...string) *exec.Cmd {
	t.Helper()
	testnet.Need(t, "node", "chromium")
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, "node", append([]string{file}, args...)...)
	c.Env = append(os.Environ(), "NODE_PATH="+modules(t), "CHROMIUM="+chromium)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = graceful
	return c
}

// modules are the folders of what scripts require: what package.json names, where
// scripts/setup has put it, and what lies beside this file.
func modules(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		found := filepath.Join(dir, ".tools/browser/node_modules")
		if _, err := os.Stat(found); err == nil {
			return found + ":" + filepath.Join(dir, "test/testnet/browser")
		}
	}
	t.Fatal("playwright-core is not in .tools/browser: `scripts/setup test` installs it")
	return ""
}
