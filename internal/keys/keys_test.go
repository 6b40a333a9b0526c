package keys_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

func made(t *testing.T, name string) (keys.Identity, []byte, []byte) {
	t.Helper()
	certPEM, keyPEM, pin, err := keys.New(name)
	if err != nil {
		t.Fatal(err)
	}
	id, err := keys.ParseIdentity(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	if id.Pin != pin || id.Name != name {
		t.Fatalf("read back %q with pin %s, made %q with pin %s", id.Name, id.Pin, name, pin)
	}
	return id, certPEM, keyPEM
}

func TestIdentityIsAP256KeyForACentury(t *testing.T) {
	id, certPEM, _ := made(t, "car-1")
	block, _ := pem.Decode(certPEM)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	public, ok := certificate.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		t.Fatalf("the key is %T", certificate.PublicKey)
	}
	point, err := public.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	// RFC 5480, section 2: SubjectPublicKeyInfo of a P-256 key is this prefix and the uncompressed point.
	spki, err := hex.DecodeString("3059301306072a8648ce3d020106082a8648ce3d030107034200")
	if err != nil {
		t.Fatal(err)
	}
	spki = append(spki, point...)
	sum := sha256.Sum256(spki)
	if want := hex.EncodeToString(sum[:]); id.Pin != want {
		t.Errorf("pin %s, want %s", id.Pin, want)
	}
	if certificate.NotBefore.Year() != 2000 || certificate.NotAfter.Year() != 2100 {
		t.Errorf("valid from %s until %s", certificate.NotBefore, certificate.NotAfter)
	}
	if err := certificate.CheckSignature(certificate.SignatureAlgorithm, certificate.RawTBSCertificate,
		certificate.Signature); err != nil {
		t.Errorf("not signed by itself: %v", err)
	}
}

//attack:network path traversal in names of runs, nodes, trials
func TestNamesArePlain(t *testing.T) {
	for _, name := range []string{"a", "car-1", strings.Repeat("x", 32)} {
		if err := keys.CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "Car", "a/b", "..", "a b", "a\n", "ä", strings.Repeat("x", 33)} {
		if _, _, _, err := keys.New(name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

//attack:local another user who reads a key | mode 0600; a key that others can read is not used
func TestIdentityIsKeptInFiles(t *testing.T) {
	id, certPEM, keyPEM := made(t, "car")
	dir := t.TempDir()
	if _, err := keys.LoadIdentity(dir); !errors.Is(err, keys.ErrNoIdentity) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := keys.SaveIdentity(dir, "node", certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "node.key")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %04o", info.Mode().Perm())
	}
	back, err := keys.LoadIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	if back.Pin != id.Pin {
		t.Errorf("pin %s, want %s", back.Pin, id.Pin)
	}
	if err := keys.SaveIdentity(dir, "node", certPEM, keyPEM); err == nil {
		t.Error("a key is written over")
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := keys.LoadIdentity(dir); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := keys.SaveIdentity(dir, "controller", certPEM, keyPEM); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.LoadIdentity(dir); err == nil || !strings.Contains(err.Error(), "keep one in a folder") {
		t.Errorf("two keys in a folder: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

func TestOnlySomeKindsOfKeyAreTaken(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	read := func(public, private any) error {
		template := &x509.Certificate{SerialNumber: big.NewInt(1)}
		der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
		if err != nil {
			t.Fatal(err)
		}
		pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
		if err != nil {
			t.Fatal(err)
		}
		_, err = keys.ParseIdentity(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
		return err
	}
	if err := read(&p256.PublicKey, p256); err != nil {
		t.Errorf("P-256: %v", err)
	}
	if err := read(&p384.PublicKey, p384); err == nil {
		t.Error("P-384 is taken")
	}
	if err := read(&large.PublicKey, large); err == nil {
		t.Error("RSA is taken")
	}
	_, certPEM, _ := made(t, "a")
	_, _, otherKey := made(t, "b")
	if _, err := keys.ParseIdentity(certPEM, otherKey); err == nil {
		t.Error("a certificate with another's key is taken")
	}
}

func authorized(t *testing.T, peers ...keys.Peer) *keys.Authorized {
	t.Helper()
	list, err := keys.NewAuthorized(peers...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

//attack:local a list of who is let in that others can write or read | it is not used
func TestAuthorizedList(t *testing.T) {
	a, _, _ := made(t, "controller")
	b, _, _ := made(t, "phone")
	list := authorized(t, keys.Peer{Name: "controller", Role: wire.RoleController, Pin: a.Pin},
		keys.Peer{Name: "phone", Role: wire.RoleApp, Pin: b.Pin})
	path := filepath.Join(t.TempDir(), "authorized.json")
	if err := list.Save(path); err != nil {
		t.Fatal(err)
	}
	back, err := keys.LoadAuthorized(path)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := back.Find(b.Pin); !ok || p.Name != "phone" || p.Role != wire.RoleApp {
		t.Errorf("found %+v, %v", p, ok)
	}
	if !back.Remove("phone") || back.Remove("phone") {
		t.Error("removing says wrongly whether there was something")
	}
	if _, ok := back.Find(b.Pin); ok {
		t.Error("a removed peer is found")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.LoadAuthorized(path); err == nil || !strings.Contains(err.Error(), "chmod 640") {
		t.Errorf("readable by others: %v", err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.LoadAuthorized(path); err == nil || !strings.Contains(err.Error(), "chmod 640") {
		t.Errorf("writable by others: %v", err)
	}
	for _, bad := range []keys.Peer{
		{Name: "Phone", Role: wire.RoleApp, Pin: b.Pin}, {Name: "x", Role: "root", Pin: b.Pin},
		{Name: "x", Role: wire.RoleApp, Pin: "12"},
		{Name: "controller", Role: wire.RoleApp, Pin: b.Pin}, {Name: "x", Role: wire.RoleApp, Pin: a.Pin},
	} {
		if err := back.Add(bad); err == nil {
			t.Errorf("%+v is added", bad)
		}
	}
}

// FuzzParseAuthorized: what is taken is well formed, and can be written and read again.
func FuzzParseAuthorized(f *testing.F) {
	f.Add([]byte(`[{"name":"controller","role":"controller","pin":"` + strings.Repeat("a", 64) + `"}]`))
	f.Add([]byte(`[]`))
	f.Add([]byte(`[{"name":"a","role":"app","pin":"","extra":1}] x`))
	fuzz.Run(f, func(t *testing.T, data []byte) {
		list, err := keys.ParseAuthorized(data)
		if err != nil {
			return
		}
		for _, p := range list.Peers() {
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}

// handshake joins two configurations over loopback and says what each end thinks.
func handshake(t *testing.T, server, client *tls.Config) (serverErr, clientErr error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			done <- err
			return
		}
		defer conn.Close()
		secure := tls.Server(conn, server)
		if err := secure.Handshake(); err != nil {
			done <- err
			return
		}
		_, err = secure.Write([]byte("hello"))
		done <- err
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	secure := tls.Client(conn, client)
	_, clientErr = secure.Read(make([]byte, 5))
	if clientErr == nil && secure.ConnectionState().Version != tls.VersionTLS13 {
		t.Errorf("the connection is TLS %x", secure.ConnectionState().Version)
	}
	conn.Close()
	return <-done, clientErr
}

//attack:network another machine in the node's place | the pin in the fleet file
func TestBothEndsArePinned(t *testing.T) {
	node, _, _ := made(t, "car")
	controller, _, _ := made(t, "controller")
	stranger, _, _ := made(t, "controller")
	list := authorized(t, keys.Peer{Name: "controller", Role: wire.RoleController, Pin: controller.Pin})
	if serverErr, clientErr := handshake(t, keys.ServerTLS(node, list),
		keys.ClientTLS(controller, node.Pin)); serverErr != nil || clientErr != nil {
		t.Errorf("known to each other: %v, %v", serverErr, clientErr)
	}
	serverErr, clientErr := handshake(t, keys.ServerTLS(node, list), keys.ClientTLS(stranger, node.Pin))
	var pin *keys.PinError
	if !errors.As(serverErr, &pin) || pin.Got != stranger.Pin || clientErr == nil {
		t.Errorf("a stranger at the node: %v, %v", serverErr, clientErr)
	}
	_, clientErr = handshake(t, keys.ServerTLS(stranger, list), keys.ClientTLS(controller, node.Pin))
	if !errors.As(clientErr, &pin) || pin.Got != stranger.Pin || pin.Want != node.Pin {
		t.Errorf("a stranger in the node's place: %v", clientErr)
	}
	old := keys.ServerTLS(node, list)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, clientErr := handshake(t, old, keys.ClientTLS(controller, node.Pin)); clientErr == nil {
		t.Error("the client talks TLS 1.2")
	}
}

// The apps of a list are replaced as a whole, or not at all.
//
//attack:phone an app that the controller has taken off its list | the controller tells the whole list, and who is not
//attack:and on it is out
func TestPeersOfARoleAreReplaced(t *testing.T) {
	controller, _, _ := made(t, "controller")
	old, _, _ := made(t, "old")
	phone, _, _ := made(t, "phone")
	list := authorized(t, keys.Peer{Name: "controller", Role: wire.RoleController, Pin: controller.Pin},
		keys.Peer{Name: "old", Role: wire.RoleApp, Pin: old.Pin})
	app := keys.Peer{Name: "phone", Role: wire.RoleApp, Pin: phone.Pin}
	for name, peers := range map[string][]keys.Peer{
		"another role":          {app, {Name: "x", Role: wire.RoleController, Pin: strings.Repeat("a", 64)}},
		"the controller's key":  {{Name: "x", Role: wire.RoleApp, Pin: controller.Pin}},
		"the controller's name": {{Name: "controller", Role: wire.RoleApp, Pin: phone.Pin}}, "one twice": {app, app},
		"no key": {{Name: "x", Role: wire.RoleApp}},
	} {
		if err := list.SetRole(wire.RoleApp, peers); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, ok := list.Find(old.Pin); !ok || len(list.Peers()) != 2 {
		t.Errorf("after refusals the list is %+v", list.Peers())
	}
	if err := list.SetRole(wire.RoleApp, []keys.Peer{app}); err != nil {
		t.Fatal(err)
	}
	if _, ok := list.Find(old.Pin); ok || len(list.Peers()) != 2 {
		t.Errorf("the list is %+v", list.Peers())
	}
	if err := list.SetRole(wire.RoleApp, nil); err != nil || len(list.Peers()) != 1 {
		t.Errorf("without apps the list is %+v, %v", list.Peers(), err)
	}
}

// A signature is of one key and one text, and the same each time.
func TestSignaturesAreOfOneKeyAndText(t *testing.T) {
	id, other := testnet.Identity(t, "controller"), testnet.Identity(t, "other")
	text := []byte("fieldmesh manifest 1\nabc\n")
	signed, err := id.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	if pin, err := signed.Check(text); err != nil || pin != id.Pin {
		t.Errorf("signed by %s, %v, want %s", pin, err, id.Pin)
	}
	if again, err := id.Sign(text); err != nil || again != signed {
		t.Errorf("signed again: %+v, %v, was %+v", again, err, signed)
	}
	theirs, err := other.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]keys.Signed{
		"another's signature": {signed.Key, theirs.Signature}, "another's key": {theirs.Key, signed.Signature},
		"no key": {"", signed.Signature}, "no signature": {signed.Key, ""}, "no base64": {signed.Key, "!"},
		"no key but text": {"AAAA", signed.Signature},
	} {
		if pin, err := s.Check(text); err == nil {
			t.Errorf("%s: signed by %s", name, pin)
		}
	}
	if _, err := signed.Check(append(text, '\n')); err == nil {
		t.Error("another text was signed")
	}
	if _, err := (keys.Identity{}).Sign(text); err == nil {
		t.Error("nobody signed")
	}
}
