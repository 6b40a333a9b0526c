//go:build e2e

package api

import (
	"context"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/api/apifuzz"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// hastyNode and hastyRecords do not wait, so that fuzzed polls cost nothing.
type hastyNode struct{ *fakeNode }

func (n hastyNode) View(ctx context.Context, run string, _ uint64) (wire.CampaignView, error) {
	return n.fakeNode.View(ctx, run, noVersion)
}

type hastyRecords struct{ *fakeRecords }

func (hastyRecords) Wait(context.Context, uint64) error { return nil }

//attack:network unknown fields, wrong types, absurd numbers
func TestAPIWithstandsSchemathesis(t *testing.T) {
	dir := t.TempDir()
	certPEM, keyPEM, pin, err := keys.New("controller")
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.SaveIdentity(dir, "controller", certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	authorized, err := keys.NewAuthorized(keys.Peer{Name: "controller", Role: wire.RoleController, Pin: pin})
	if err != nil {
		t.Fatal(err)
	}
	server := New(testnet.Identity(t, "car"), authorized, hastyNode{newFakeNode()}, hastyRecords{newFakeRecords(20)},
		slog.New(slog.NewTextHandler(io.Discard, nil)))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	apifuzz.Run(t, apifuzz.Target{
		Address: listener.Addr().String(), CertPath: filepath.Join(dir, "controller.crt"),
		KeyPath: filepath.Join(dir, "controller.key"),
		Seed:    20260101, MaxExamples: 25, Limit: 4 * time.Minute, LongPolls: true,
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
