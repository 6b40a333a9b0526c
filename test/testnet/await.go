package testnet

import (
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
