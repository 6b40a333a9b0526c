//go:build e2e

package fleet

import (
	"context"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// namespaceOf names the network namespace of the calling thread.
func namespaceOf(t *testing.T) string {
	t.Helper()
	name, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestNodeInsideANamespaceIsReached(t *testing.T) {
	testnet.Need(t, "ip")
	ns := testnet.NewNS(t, "dial")
	ns.Up(t, "lo", "")
	node, controller := testnet.Identity(t, "car"), testnet.Identity(t, "controller")
	list, err := keys.NewAuthorized(keys.Peer{Name: "controller", Role: wire.RoleController, Pin: controller.Pin})
	if err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	ns.Do(t, func() error {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	server := &http.Server{TLSConfig: keys.ServerTLS(node, list),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(`{"boot_ns":1,"wall_ns":2}`))
		})}
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	defer func() {
		server.Close()
		<-served
	}()

	home := namespaceOf(t)
	entry := Node{Name: "car", Address: listener.Addr().String(), Pin: node.Pin, Netns: ns.Name}
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			c := NewClient(controller, entry)
			defer c.Close()
			if reply, err := c.Clock(context.Background()); err != nil || reply.WallNs != 2 {
				t.Errorf("inside: %+v, %v", reply, err)
			}
		})
	}
	callers.Wait()
	outside := entry
	outside.Netns = ""
	if _, err := NewClient(controller, outside).Clock(context.Background()); err == nil {
		t.Error("the node is reached from outside of its namespace")
	}
	missing := entry
	missing.Netns = "fm-no-such-namespace"
	if _, err := NewClient(controller, missing).Clock(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "fm-no-such-namespace") {
		t.Errorf("a namespace that is not there: %v", err)
	}
	// Every thread that is still in use is back home.
	var threads sync.WaitGroup
	for range 32 {
		threads.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if here := namespaceOf(t); here != home {
				t.Errorf("a thread stayed in %s, home is %s", here, home)
			}
			time.Sleep(10 * time.Millisecond) // so that the next one needs another thread
		})
	}
	threads.Wait()
}
