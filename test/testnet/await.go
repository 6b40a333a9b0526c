package testnet

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"strings"
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

// Background runs something until the test ends, when it must end without an error.
func Background(t testing.TB, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// Connect makes a TCP connection from one namespace to an address of another, which
// listens there. Both ends are closed when the test ends.
func Connect(t testing.TB, from, to *NS, local *net.TCPAddr, address string) (client, server *net.TCPConn) {
	t.Helper()
	var listener net.Listener
	to.Do(t, func() (err error) { listener, err = net.Listen("tcp4", address); return err })
	defer listener.Close()
	from.Do(t, func() error {
		c, err := (&net.Dialer{LocalAddr: local}).Dial("tcp4", address)
		if err == nil {
			client = c.(*net.TCPConn)
		}
		return err
	})
	t.Cleanup(func() { _ = client.Close() })
	c, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return client, c.(*net.TCPConn)
}

// Echo sends datagrams back to where they came from until the test ends.
func Echo(t testing.TB, c net.PacketConn) {
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return // closed
			}
			_, _ = c.WriteTo(b[:n], from)
		}
	}()
}

// JSON is a value as JSON.
func JSON(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// WellFormed fails the test unless a text is XML.
func WellFormed(t testing.TB, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %.300s", err, text)
		}
	}
}
