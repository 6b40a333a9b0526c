package pairing

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"errors"
	"fmt"

	"fieldmesh.dev/fieldmesh/internal/keys"
)

// HashError says that whoever answered is not the controller that made the
// code: somebody is in the middle, or the address is another controller's.
type HashError struct{ Got string }

func (e *HashError) Error() string {
	return fmt.Sprintf("who answers has key %.12s…, not the key of the code: it is another controller, or somebody "+
		"in the middle; nothing was told to it", e.Got)
}

// ServerTLS lets anybody in who holds the private key to a P-256 certificate:
// the key becomes known by the proof that follows, and by nothing else.
func ServerTLS(controller keys.Identity) *tls.Config {
	config := keys.ServerTLS(controller, nil)
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if _, err := keys.PeerPin(state); err != nil {
			return err
		}
		if public, ok := state.PeerCertificates[0].PublicKey.(*ecdsa.PublicKey); !ok || public.Curve !=
			elliptic.P256() {
			return errors.New("the key that wants to be paired is not an ECDSA key on P-256")
		}
		return nil
	}
	return config
}

// ClientTLS admits the one controller whose hash the code carries. The
// handshake ends before anything is said to another.
func ClientTLS(own keys.Identity, code Code) *tls.Config {
	config := keys.ClientTLS(own, "")
	config.VerifyConnection = func(state tls.ConnectionState) error {
		pin, err := keys.PeerPin(state)
		if err != nil {
			return err
		}
		if !code.Is(pin) {
			return &HashError{Got: pin}
		}
		return nil
	}
	return config
}
