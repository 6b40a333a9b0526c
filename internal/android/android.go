// Package android gives a program what Android keeps elsewhere than Linux, and Go does not find there: name servers,
// the roots of TLS, and the time zone. Where a Linux system's own resolv.conf is, it changes nothing.
package android

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// conf is where the name servers are listed; empty: where Go looks for them itself.
var conf string

// Adapt is called before anything looks up a name, verifies a certificate or tells a local time.
func Adapt() {
	if os.Getenv("ANDROID_ROOT") == "" { // Android's init gives it to every process
		return
	}
	if _, err := os.Stat("/etc/resolv.conf"); err == nil {
		return // a Linux in a folder of Android's
	}
	conf = filepath.Join(cmp.Or(os.Getenv("PREFIX"), "/data/data/com.termux/files/usr"), "etc/resolv.conf")
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: dial}
	if os.Getenv("SSL_CERT_DIR") == "" { // SSL_CERT_FILE adds to it, as on Linux
		_ = os.Setenv("SSL_CERT_DIR", roots("/apex/com.android.conscrypt/cacerts", "/system/etc/security/cacerts"))
	}
	name := os.Getenv("TZ")
	if name == "" {
		said, _ := exec.Command("/system/bin/getprop", "persist.sys.timezone").Output()
		name = strings.TrimSpace(string(said))
	}
	if zone, err := time.LoadLocation(name); err == nil {
		time.Local = zone
	}
}

// roots is the first folder that is there: from Android 14 on updates replace the system's own.
func roots(newer, system string) string {
	if _, err := os.Stat(newer); err == nil {
		return newer
	}
	return system
}

// dial reaches the first or the second name server of conf in the place of the two of this machine that Go asks
// where there is no resolv.conf: 127.0.0.1, and then ::1.
func dial(ctx context.Context, network, instead string) (net.Conn, error) {
	servers, err := nameServers()
	if err != nil {
		return nil, err
	}
	server := servers[0]
	if strings.HasPrefix(instead, "[") {
		server = servers[min(1, len(servers)-1)]
	}
	return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(server, "53"))
}

// nameServers are those of conf. It is read each time, for whoever moves to another network.
func nameServers() (out []string, err error) {
	text, err := os.ReadFile(conf)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "nameserver" {
			if address, err := netip.ParseAddr(words[1]); err == nil {
				out = append(out, address.String())
			}
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	if err == nil {
		err = fmt.Errorf("%s names none", conf)
	}
	return nil, fmt.Errorf("no name server is known (%w): write the line `nameserver ADDRESS` to that file, with the "+
		"address of your router, or give the host by its address", err)
}

// Explain says of a failed look-up which servers were asked, for Go says those in whose place they were.
func Explain(err error) error {
	failed, ok := errors.AsType[*net.DNSError](err)
	if !ok || conf == "" {
		return err
	}
	lookup := *failed
	lookup.Server = ""
	if servers, err := nameServers(); err == nil {
		lookup.Server = fmt.Sprintf("%s (%s)", strings.Join(servers[:min(2, len(servers))], ", "), conf)
	}
	return &lookup
}
