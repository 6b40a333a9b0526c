// Package keys says who may talk to whom. An identity is a P-256 key with a
// self-signed certificate; a peer is known by its pin, the SHA-256 of its
// public key, and by nothing else: no authority signs, and no date is looked
// at, because a phone's clock may be wrong. Revoking a key is deleting its pin.
//
// The package reads and writes key files and makes TLS configurations. It
// opens no socket and knows no fleet.
package keys

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"regexp"
	"time"
)

// Identity is a private key with the certificate that shows its public half.
type Identity struct {
	Name        string // the certificate's common name; for people, not trusted
	Pin         string // see PinOf
	Certificate tls.Certificate
}

// Forms of a peer's name and of a pin, as regular expressions.
const (
	NameForm = `^[a-z0-9-]{1,32}$`
	PinForm  = `^[0-9a-f]{64}$`
)

var (
	nameForm = regexp.MustCompile(NameForm)
	pinForm  = regexp.MustCompile(PinForm)
)

// CheckName refuses what cannot be the name of a peer: [a-z0-9-], 1 to 32 characters.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("check name %q: allowed are a to z, 0 to 9 and -, 1 to 32 characters", name)
	}
	return nil
}

// CheckPin refuses what cannot be a pin: 64 lower-case hexadecimal digits.
func CheckPin(pin string) error {
	if !pinForm.MatchString(pin) {
		return fmt.Errorf("check pin %.80q: a pin is 64 lower-case hexadecimal digits", pin)
	}
	return nil
}

// PinOf is the SHA-256 of a certificate's SubjectPublicKeyInfo, in lower-case
// hexadecimal. It outlives a renewal of the certificate about the same key.
func PinOf(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// The years of a certificate's validity: wide enough for any clock, since
// nothing here looks at them but other TLS stacks may.
var (
	validFrom  = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	validUntil = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

// New makes an identity: certificate and private key (PKCS #8) in PEM, and the
// pin. The key is ECDSA on P-256, which every TLS stack in use speaks and a
// phone's key store can hold; Android's has no Ed25519 in TLS.
func New(name string) (certPEM, keyPEM []byte, pin string, err error) {
	if err := CheckName(name); err != nil {
		return nil, nil, "", err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, "", fmt.Errorf("make key %q: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, "", fmt.Errorf("make serial number of %q: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              []string{name},
		NotBefore:             validFrom,
		NotAfter:              validUntil,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, "", fmt.Errorf("make certificate %q: %w", name, err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, "", fmt.Errorf("read certificate %q: %w", name, err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, "", fmt.Errorf("encode key %q: %w", name, err)
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	return certPEM, keyPEM, PinOf(certificate), nil
}

// ParseIdentity reads an identity from its PEM texts.
func ParseIdentity(certPEM, keyPEM []byte) (Identity, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return Identity{}, fmt.Errorf("certificate and key are no pair: %w", err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return Identity{}, fmt.Errorf("read certificate: %w", err)
	}
	if public, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || public.Curve != elliptic.P256() {
		return Identity{}, fmt.Errorf("read certificate %q: its key is not an ECDSA key on P-256; make one with "+
			"fieldmesh keys", leaf.Subject.CommonName)
	}
	pair.Leaf = leaf
	return Identity{Name: leaf.Subject.CommonName, Pin: PinOf(leaf), Certificate: pair}, nil
}
