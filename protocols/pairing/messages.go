package pairing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"strconv"
	"strings"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Path is where the request is posted.
const Path = "/v1/pair"

// Version is of the messages and the proofs.
const Version = 1

// BodyLimit bounds either message, in bytes.
const BodyLimit = 64 << 10

// The codes of the errors that only pairing has; the others are wire's.
const (
	CodeWrong   = "code_wrong"   // the proof is not that of the code
	CodeExpired = "code_expired" // the code's time is over
	CodeUsed    = "code_used"    // the code was good for one, and one has used it
)

// Request is what the new one says. Its key is the one of its TLS certificate,
// so it says no key.
type Request struct {
	Version int    `json:"version"`
	Name    string `json:"name,omitempty"` // the node's own; an app has none and takes the offered one
	Role    string `json:"role"`           // node | app
	// a node's: host:port of its API, the host empty where it listens on every address
	Listen string `json:"listen,omitempty"`
	Proof  string `json:"proof"` // see Code.Prove
}

// Validate refuses what cannot be.
func (r Request) Validate() error {
	if r.Version != Version {
		return wire.Errorf(wire.CodeBadRequest, "version: %d; this controller speaks %d", r.Version, Version)
	}
	if r.Role != wire.RoleNode && r.Role != wire.RoleApp {
		return wire.Errorf(wire.CodeBadRequest, "role: %.40q is neither node nor app", r.Role)
	}
	if r.Name != "" || r.Role == wire.RoleNode {
		if err := keys.CheckName(r.Name); err != nil {
			return wire.Errorf(wire.CodeBadRequest, "name: %v", err)
		}
	}
	if len(r.Proof) != hex.EncodedLen(sha256.Size) {
		return wire.Errorf(wire.CodeBadRequest, "proof: it is not 64 hexadecimal digits")
	}
	if (r.Role == wire.RoleNode) != (r.Listen != "") {
		return wire.Errorf(wire.CodeBadRequest, "listen: a node says it, an app does not")
	}
	return nil
}

// ListenPort is the port of Listen; ok is false where it has none.
func (r Request) ListenPort() (port string, ok bool) {
	_, port, err := net.SplitHostPort(r.Listen)
	n, perr := strconv.ParseUint(port, 10, 16)
	return port, err == nil && perr == nil && n > 0
}

// Reply is what the controller answers to a proof that is right.
type Reply struct {
	Proof      string      `json:"proof"` // that the controller knows the code too; see Code.Admit
	Name       string      `json:"name"`  // by which the new one is known from now on
	Role       string      `json:"role"`
	Authorized []keys.Peer `json:"authorized,omitempty"` // for a node: whom to let in
	Nodes      []Node      `json:"nodes,omitempty"`      // for an app: where the nodes are, and their keys
	Controller *Controller `json:"controller,omitempty"` // for an experimenter's app: where campaigns are driven
}

// Controller is where an experimenter's app has campaigns driven: at the code's host, by
// whoever has the controller's key.
type Controller struct {
	Port int `json:"port"`
}

// Node is a node of the fleet, as an app needs it.
type Node struct {
	Name    string `json:"name"`
	Address string `json:"address"` // host:port
	Pin     string `json:"pin"`
}

// Prove is the new one's proof that it was given the code. It is made for
// these two keys, which TLS has shown both ends to hold, so that it is of no
// use to anybody who sees it.
func (c Code) Prove(controllerPin, newPin string, r Request) string {
	return c.proof("joins", controllerPin, newPin, r.Name, r.Role, r.Listen)
}

// Proves reports whether a request's proof is right, in constant time.
func (c Code) Proves(controllerPin, newPin string, r Request) bool {
	return hmac.Equal([]byte(strings.ToLower(r.Proof)), []byte(c.Prove(controllerPin, newPin, r)))
}

// Admit is the controller's proof: the hash in the code tells its key, and this
// that it has made the code.
func (c Code) Admit(controllerPin, newPin string, r Reply) string {
	return c.proof("admits", controllerPin, newPin, r.Name, r.Role, "")
}

// Admits reports whether a reply's proof is right, in constant time.
func (c Code) Admits(controllerPin, newPin string, r Reply) bool {
	return hmac.Equal([]byte(strings.ToLower(r.Proof)), []byte(c.Admit(controllerPin, newPin, r)))
}

// proof is HMAC-SHA256 (RFC 2104) with the code's secret. No part may hold a
// line feed: names, roles, pins and addresses never do, or are refused.
func (c Code) proof(parts ...string) string {
	mac := hmac.New(sha256.New, c.secret[:])
	for _, p := range append([]string{"fieldmesh pairing 1"}, parts...) {
		mac.Write([]byte(p + "\n")) // a hash never fails
	}
	return hex.EncodeToString(mac.Sum(nil))
}
