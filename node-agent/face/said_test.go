package face

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/confine"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// The phone app reads in the log that its own node is ready, or not paired yet.
func TestThePhoneAppReadsHowTheNodeStands(t *testing.T) {
	keeper, err := os.ReadFile("../../android-app/core/src/main/kotlin/dev/fieldmesh/core/node/NodeKeeper.kt")
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]string{}
	for _, c := range regexp.MustCompile(`const val (READY|UNPAIRED) = "(.*)"`).FindAllStringSubmatch(string(keeper),
		-1) {
		reads[c[1]] = c[2]
	}
	if len(reads) != 2 {
		t.Fatalf("the app reads %v", reads)
	}
	cfg := config.Config{Node: "car", Interface: "lo", Privileges: config.NoPrivileges, GPSD: config.NoGPSD,
		StateDir: t.TempDir(), KeysDir: t.TempDir(), QuotaBytes: 1 << 30, Listen: "127.0.0.1:0",
		GoPort: testnet.FreePort(t)}
	var log testnet.Output
	run := func(ctx context.Context) error {
		return Run(ctx, cfg, confine.Confined{}, slog.New(slog.NewTextHandler(&log, nil)))
	}
	if err := run(t.Context()); err == nil || !strings.Contains(err.Error(), reads["UNPAIRED"]) {
		t.Errorf("without a key it ends with %v, the app reads %q", err, reads["UNPAIRED"])
	}
	cert, key, pin, err := keys.New("car")
	if err != nil {
		t.Fatal(err)
	}
	list, err := keys.NewAuthorized(keys.Peer{Name: "desk", Role: "controller", Pin: pin})
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.SaveIdentity(cfg.KeysDir, "node", cert, key); err != nil {
		t.Fatal(err)
	}
	if err := list.Save(filepath.Join(cfg.KeysDir, "authorized.json")); err != nil {
		t.Fatal(err)
	}
	testnet.Background(t, run)
	for until := time.Now().Add(30 * time.Second); !strings.Contains(log.String(), reads["READY"]); time.Sleep(
		5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the app reads %q, and the log is\n%s", reads["READY"], log.String())
		}
	}
}
