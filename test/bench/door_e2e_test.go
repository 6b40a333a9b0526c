//go:build e2e

package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/door"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

const (
	silentSockets = 2000 // that send nothing
	halfOpen      = 1000 // that begin a handshake, and leave it there
	doorCalls     = 100
)

// from dials from an address of the loopback, as another host does.
func from(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 5 * time.Second}
}

// TestBenchTheDoorUnderLoad calls as a known controller, each time over a new connection,
// while one host keeps as many open as it is let, and opens those again that are reset.
func TestBenchTheDoorUnderLoad(t *testing.T) {
	begin(t)
	var files syscall.Rlimit // both ends of every socket are this process's
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
	files.Cur = files.Max
	if err = errors.Join(err, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files)); err != nil {
		t.Fatal(err)
	}
	if most := uint64(4 * (silentSockets + halfOpen)); files.Max < most {
		t.Fatalf("needs %d open files, and may have %d: ulimit -Hn", most, files.Max)
	}
	node, controller := testnet.Identity(t, "node"), testnet.Identity(t, "controller")
	list, err := keys.NewAuthorized(keys.Peer{Name: "controller", Role: wire.RoleController, Pin: controller.Pin})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "well")
	})}
	served := make(chan error, 1)
	go func() { // with the bounds that the agent has
		served <- server.Serve(door.Listen(listener, keys.ServerTLS(node, list), 5*time.Second, 128,
			slog.New(slog.DiscardHandler)))
	}()
	address := listener.Addr().String()
	call := func() float64 {
		client := http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: from("127.0.0.3").DialContext, TLSClientConfig: keys.ClientTLS(controller, node.Pin)}}
		begun := time.Now()
		answer, err := client.Get("https://" + address + "/v1/clock")
		if err != nil {
			t.Fatalf("the controller is not served: %v", err)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return time.Since(begun).Seconds()
	}
	calls := func() (took []float64) {
		for range doorCalls {
			took = append(took, call())
		}
		return took
	}
	unloaded := calls()
	ctx, end := context.WithCancel(context.Background())
	var attackers sync.WaitGroup
	for i := range silentSockets + halfOpen {
		attackers.Go(func() { attack(ctx, address, i >= silentSockets) })
	}
	if err := pause.For(ctx, 2*time.Second); err != nil { // until all have tried
		t.Fatal(err)
	}
	loaded := calls()
	end()
	attackers.Wait()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	<-served
	worst := rank(loaded, 1)
	report(row{
		goal:      "a call under a flood of connections",
		measured:  fmt.Sprintf("%.1f ms, the worst %.1f ms", 1e3*median(loaded), 1e3*worst),
		reference: fmt.Sprintf("without it %.1f ms, the worst %.1f ms", 1e3*median(unloaded), 1e3*rank(unloaded, 1)),
		figure:    fmt.Sprintf("%.3f s", worst), limit: "each ≤ 1 s", met: worst <= 1,
	}, "%d calls of a known controller over a connection each, TLS and all, while one other host has %d silent "+
		"sockets and %d handshakes begun, and opens those again at once that are reset; both ends on this machine, "+
		"by the agent's door and its TLS. Median, and the worst.", doorCalls, silentSockets, halfOpen)
}

// attack holds one connection open until ctx ends, and opens it again whenever it is
// closed.
func attack(ctx context.Context, address string, begins bool) {
	for ctx.Err() == nil {
		conn, err := from("127.0.0.2").DialContext(ctx, "tcp4", address)
		if err != nil {
			_ = pause.For(ctx, 10*time.Millisecond) // no port was free, or it was reset at once
			continue
		}
		over := context.AfterFunc(ctx, func() { _ = conn.Close() })
		if begins {
			_, _ = conn.Write(hello())
		}
		_, _ = io.Copy(io.Discard, conn) // until it is closed
		over()
		_ = conn.Close()
	}
}

// hello is the first message of a TLS handshake.
var hello = sync.OnceValue(func() []byte {
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		_ = tls.Client(theirs, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}).Handshake()
		_ = theirs.Close()
	}()
	text := make([]byte, 4096)
	n, err := ours.Read(text)
	if err != nil {
		return nil
	}
	return text[:n]
})
