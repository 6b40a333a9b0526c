package keys

import (
	"crypto/tls"
	"errors"
	"fmt"
)

// PinError says that a peer showed another key than the pinned one, or, with
// Want empty, a key that is on no list.
type PinError struct {
	Got  string
	Want string
}

func (e *PinError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("key %s is not authorized", e.Got)
	}
	return fmt.Sprintf("peer shows key %s, pinned is %s", e.Got, e.Want)
}

var errNoCertificate = errors.New("peer shows no certificate")

// ServerTLS admits the peers of authorized by their pins, over TLS 1.3 only.
func ServerTLS(identity Identity, authorized *Authorized) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{identity.Certificate},
		// Any certificate, and then our own check: the pin stands in the place of
		// chain, names and dates.
		ClientAuth: tls.RequireAnyClientCert,
		VerifyConnection: func(state tls.ConnectionState) error {
			pin, err := PeerPin(state)
			if err != nil {
				return err
			}
			if _, ok := authorized.Find(pin); !ok {
				return &PinError{Got: pin}
			}
			return nil
		},
		NextProtos: []string{"http/1.1"},
		// A resumed session would outlive the removal of its peer's key.
		SessionTicketsDisabled: true,
	}
}

// ClientTLS admits the one server that has the pinned key, over TLS 1.3 only.
func ClientTLS(identity Identity, pin string) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{identity.Certificate},
		// Switches off chain, names and dates; the pin below is the check.
		InsecureSkipVerify: true, //nolint:gosec // see VerifyConnection
		VerifyConnection: func(state tls.ConnectionState) error {
			got, err := PeerPin(state)
			if err != nil {
				return err
			}
			if got != pin {
				return &PinError{Got: got, Want: pin}
			}
			return nil
		},
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true,
	}
}

// PeerPin is the pin of the key with which the other end of a connection
// proved itself. Only the first certificate counts: it is the one whose key
// signed the handshake (RFC 8446, section 4.4.3).
func PeerPin(state tls.ConnectionState) (string, error) {
	if len(state.PeerCertificates) == 0 {
		return "", errNoCertificate
	}
	return PinOf(state.PeerCertificates[0]), nil
}
