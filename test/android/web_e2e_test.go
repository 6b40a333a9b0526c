//go:build e2e

package android

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// What the network of the controller's machine has: a name server, and an InfluxDB that speaks TLS.
const (
	webServer = "10.98.0.1"
	webName   = "influx.lan"
	webPort   = "8443"
	timeZone  = "Asia/Tokyo" // the phone's
)

// publishes is the controller in Termux, with a run.
type publishes struct {
	phone
	pair    *testnet.Pair
	program []string
	db      *testnet.Influxd
}

// The controller in Termux finds an InfluxDB by its name, trusts it as the phone does, and tells times in the phone's
// zone, although Android has nothing of that where Linux has it. What it does not find it says, with what to do.
func TestE2EControllerInTermuxPublishes(t *testing.T) {
	p := newPublishes(t)
	p.program = []string{termux + "/bin/fieldmesh"}
	p.test(t)
}

// So does the one that the package for Termux has, with Go's port to Android.
func TestE2EControllerForAndroidPublishes(t *testing.T) {
	text, err := os.ReadFile(buildForAndroid(t, "fieldmesh"))
	if err != nil {
		t.Fatal(err)
	}
	p := newPublishes(t)
	p.program = []string{"/usr/bin/qemu-aarch64", termux + "/bin/fieldmesh"}
	p.write(t, p.program[1], string(text), 0o755)
	p.mustRoot(t, "ln", "-s", loader, "/system/bin/linker64")
	p.test(t)
}

func newPublishes(t *testing.T) publishes {
	t.Helper()
	testnet.Need(t, "ip", "influxd")
	p := publishes{pair: testnet.NewPair(t, "10.98.0", [2]string{"alpha", "bravo"}), db: testnet.NewInfluxd(t)}
	p.phone = newPhone(t, p.pair.Nodes["alpha"], kernelSU)
	return p
}

func (p publishes) test(t *testing.T) {
	t.Helper()
	run := synthetic.Run(t, synthetic.Options{Seed: 3, Speeds: []float64{5.6}, Repetitions: 1})
	if err := os.CopyFS(p.path(termux+"/../home/runs/run"), os.DirFS(run.Dir())); err != nil {
		t.Fatal(err)
	}
	p.mustRoot(t, "chown", "-R", fmt.Sprintf("%d:%d", user, user), termux+"/../home")
	own := serveDatabase(t, p.pair.Control, p.db.URL)
	answerNames(t, p.pair.Control)

	if out := p.must(t, termuxs, slices.Concat(p.env(), p.program, []string{"runs", "--runs",
		termux + "/../home/runs"})...); !strings.Contains(out, "2026-03-14 18:30") {
		t.Errorf("the time is not in %s:\n%s", timeZone, out)
	}
	const conf = termux + "/etc/resolv.conf"
	p.refused(t, "without name servers", webName, "lookup influx.lan: no name server is known", conf,
		"write the line `nameserver ADDRESS` to that file, with the address of your router, or give the host by its")
	p.write(t, conf, "# none\n", 0o644)
	p.refused(t, "with an empty list of name servers", webName, conf+" names none")
	p.write(t, conf, "search lan\nnameserver "+webServer+"\n", 0o644)
	p.refused(t, "an unknown name", "influxx.lan", "lookup influxx.lan on "+webServer+" ("+conf+"): no such host; "+
		"correct the name in --influx")
	p.refused(t, "without the authority", webName, "certificate signed by unknown authority",
		"name the file of its certificate in the variable SSL_CERT_FILE")

	p.write(t, termux+"/../home/own.pem", own, 0o644)
	p.writes(t, "SSL_CERT_FILE="+termux+"/../home/own.pem")
	p.write(t, "/system/etc/security/cacerts/0a1b2c3d.0", own, 0o644) // up to Android 13
	p.writes(t)
	p.write(t, "/apex/com.android.conscrypt/cacerts/1a2b3c4d.0", "none\n", 0o644)
	p.refused(t, "the system's own where an update has others", webName, "unknown authority")
	p.write(t, "/apex/com.android.conscrypt/cacerts/0a1b2c3d.0", own, 0o644) // from Android 14 on
	p.writes(t)
	// A first name server that does not answer delays, and no more.
	p.write(t, conf, "nameserver 10.98.0.99\nnameserver "+webServer+"\n", 0o644)
	p.writes(t)
}

// env is how Termux starts a program.
func (p publishes) env(more ...string) []string {
	return append([]string{"/usr/bin/env", "ANDROID_ROOT=/system", "PREFIX=" + termux,
		"FIELDMESH_INFLUX_PASSWORD=" + testnet.InfluxAdminPassword}, more...)
}

func (p publishes) publish(host string, env ...string) (out string, err error) {
	c := p.command(termuxs, slices.Concat(p.env(env...), p.program, []string{"publish",
		termux + "/../home/runs/run", "--influx", "https://" + net.JoinHostPort(host, webPort), "--user",
		testnet.InfluxAdmin, "--patience", "1s"})...)
	text, err := c.CombinedOutput()
	return string(text), err
}

func (p publishes) refused(t *testing.T, when, host string, says ...string) {
	t.Helper()
	out, err := p.publish(host)
	if err == nil {
		t.Errorf("%s it publishes:\n%s", when, out)
	}
	for _, want := range says {
		if !strings.Contains(out, want) {
			t.Errorf("%s it does not say %q:\n%s", when, want, out)
		}
	}
}

// writes fails the test unless the database has the run, of which it had nothing before.
func (p publishes) writes(t *testing.T, env ...string) {
	t.Helper()
	p.db.Query("", "DROP DATABASE fieldmesh")
	out, err := p.publish(webName, env...)
	if err != nil {
		t.Errorf("publish: %v\n%s", err, out)
	} else if len(p.db.Query("fieldmesh", "SHOW MEASUREMENTS")) == 0 {
		t.Errorf("the database has nothing, and publish says\n%s", out)
	}
}

// serveDatabase serves the database by TLS until the test ends, and returns the certificate of its own authority.
func serveDatabase(t *testing.T, ns *testnet.NS, at string) (authority string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a field's authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{webName},
		IsCA: true, BasicConstraintsValid: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	ns.Do(t, func() (err error) { l, err = net.Listen("tcp", net.JoinHostPort(webServer, webPort)); return err })
	s := &http.Server{Handler: httputil.NewSingleHostReverseProxy(to), TLSConfig: &tls.Config{Certificates: []tls.
		Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}}
	ended := make(chan error, 1)
	go func() { ended <- s.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
	})
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
}

// answerNames is a name server that knows webName alone.
func answerNames(t *testing.T, ns *testnet.NS) {
	t.Helper()
	var conn net.PacketConn
	ns.Do(t, func() (err error) { conn, err = net.ListenPacket("udp", webServer+":53"); return err })
	ended := make(chan error, 1)
	go func() {
		var err error
		buffer := make([]byte, 1500)
		for err == nil {
			n, from, errRead := conn.ReadFrom(buffer)
			if errRead != nil {
				break
			}
			var answer []byte
			if answer, err = answerName(buffer[:n]); err == nil {
				_, err = conn.WriteTo(answer, from)
			}
		}
		ended <- err
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func answerName(question []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	switch q := m.Questions[0]; {
	case q.Name.String() != webName+".":
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 60},
			Body: &dnsmessage.AResource{A: netip.MustParseAddr(webServer).As4()}}}
	}
	return m.Pack()
}
