//go:build e2e

package traffic

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func TestIperf3IsTriedOverLoopback(t *testing.T) {
	testnet.Need(t, "iperf3")
	bin, err := exec.LookPath("iperf3")
	if err != nil {
		t.Fatal(err)
	}
	g := generator(t, bin)
	began := time.Now()
	if err := g.Try(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("tried in %v", time.Since(began))
	if left, err := os.ReadDir(g.Folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	tried := filepath.Join(t.TempDir(), "tried")
	starved := generator(t, program(t, `if [ "$1" = -c ] && ! [ -e `+tried+` ]; then
		touch `+tried+`; echo '{"end": {"sum_received": {"bytes": 0}}}'; exit 0
	fi
	exec `+bin+` "$@"`))
	if err := starved.Try(t.Context()); err != nil {
		t.Errorf("an iperf3 whose server was given no processor once: %v", err)
	}
	for what, spoilt := range map[string]Generator{
		"an iperf3 that fails": generator(t, program(t, `exec `+bin+` "$@" --no-such-option`)),
		"a client that is killed": generator(t, program(t, `case "$1" in -c) kill -9 $$;; esac; exec `+bin+
			` "$@"`)),
		"a client that does not send": generator(t, program(t, `case "$1" in -c) echo '{}'; exit 0;; esac; exec `+bin+
			` "$@"`)),
		"no folder": {Bin: bin, Folder: "/proc/nowhere", Clock: clock.System{}},
	} {
		err := spoilt.Try(t.Context())
		t.Logf("%s: %v", what, err)
		if err == nil {
			t.Errorf("%s was not seen", what)
		}
	}
}
