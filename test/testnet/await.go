package testnet

import (
	"io"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
)

// Await waits until holds does. How long says only when to give up.
func Await(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(within); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited %s in vain: %s", within, what)
		}
	}
}

// CloseAtEnd closes something when the test ends.
func CloseAtEnd(t testing.TB, c io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Identity makes a key and its certificate.
func Identity(t testing.TB, name string) keys.Identity {
	t.Helper()
	certPEM, keyPEM, _, err := keys.New(name)
	if err != nil {
		t.Fatal(err)
	}
	id, err := keys.ParseIdentity(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
