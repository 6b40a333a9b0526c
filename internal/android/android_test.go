package android

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNameServers(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"nameserver 192.168.1.1\nnameserver fe80::1%wlan0\n", []string{"192.168.1.1", "fe80::1%wlan0"}},
		{"# nameserver 192.0.2.1\n  nameserver\t8.8.8.8 # theirs\noptions edns0", []string{"8.8.8.8"}},
		{"nameserver\nnameserver dns.lan\n", nil},
		{"", nil},
	} {
		list(t, c.text)
		got, err := nameServers()
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%q: %v, %v", c.text, got, err)
		}
	}
	list(t, "")
	conf += ".none"
	if _, err := nameServers(); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "write the line") {
		t.Errorf("without the file: %v", err)
	}
}

// A failed look-up names the servers that were asked, and stays what it is.
func TestExplain(t *testing.T) {
	list(t, "nameserver 192.168.1.1\nnameserver 8.8.8.8\nnameserver 8.8.4.4\n")
	err := Explain(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "h",
		Server: "[::1]:53", IsNotFound: true}})
	lookup, ok := errors.AsType[*net.DNSError](err)
	if want := "lookup h on 192.168.1.1, 8.8.8.8 (" + conf + "): no such host"; !ok || !lookup.IsNotFound ||
		err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, other := range []error{nil, fs.ErrClosed} {
		if got := Explain(other); got != other { //nolint:errorlint // the very same
			t.Errorf("%v became %v", other, got)
		}
	}
}

// list has the name servers looked for in a file with a text.
func list(t *testing.T, text string) {
	t.Helper()
	conf = filepath.Join(t.TempDir(), "resolv.conf")
	t.Cleanup(func() { conf = "" })
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
