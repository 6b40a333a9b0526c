package keys

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
)

// Signed is who signed a message, and by what: the public key
// (SubjectPublicKeyInfo) and an ECDSA signature of the message's SHA-256
// (ASN.1), each in base64.
type Signed struct {
	Key       string `json:"key"`
	Signature string `json:"signature"`
}

// Sign signs a message. The same key gives the same signature of the same
// message (RFC 6979), so that what is made twice is the same twice. The message
// has to begin with what it is, so that it is taken for nothing else.
func (i Identity) Sign(message []byte) (Signed, error) {
	private, ok := i.Certificate.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return Signed{}, errors.New("sign: the identity has no key")
	}
	sum := sha256.Sum256(message)
	signature, err := private.Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		return Signed{}, fmt.Errorf("sign: %w", err)
	}
	return Signed{Key: base64.StdEncoding.EncodeToString(i.Certificate.Leaf.RawSubjectPublicKeyInfo),
		Signature: base64.StdEncoding.EncodeToString(signature)}, nil
}

// Check returns the pin of the key that signed a message. An error says that the
// message was not signed so.
func (s Signed) Check(message []byte) (pin string, err error) {
	der, err := base64.StdEncoding.Strict().DecodeString(s.Key)
	if err != nil {
		return "", fmt.Errorf("check signature: its key: %w", err)
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return "", fmt.Errorf("check signature: its key: %w", err)
	}
	public, ok := key.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return "", errors.New("check signature: its key is not an ECDSA key on P-256")
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(s.Signature)
	if err != nil {
		return "", fmt.Errorf("check signature: %w", err)
	}
	sum := sha256.Sum256(message)
	if !ecdsa.VerifyASN1(public, sum[:], signature) {
		return "", errors.New("check signature: it is not of this key and text")
	}
	sum = sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}
