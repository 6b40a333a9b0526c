package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Peer is one key that is let in, and as what.
type Peer struct {
	Name string `json:"name"`
	Role string `json:"role"` // controller | app | node
	Pin  string `json:"pin"`
}

// Check refuses a peer that is not well formed.
func (p Peer) Check() error {
	if err := CheckName(p.Name); err != nil {
		return err
	}
	switch p.Role {
	case wire.RoleController, wire.RoleApp, wire.RoleNode:
	default:
		return fmt.Errorf("check peer %q: role %q is not controller, app or node", p.Name, p.Role)
	}
	if err := CheckPin(p.Pin); err != nil {
		return fmt.Errorf("check peer %q: %w", p.Name, err)
	}
	return nil
}

// Authorized is the list of keys that a node lets in. It may be changed while
// it is in use: who is taken off it is refused from the next request on.
type Authorized struct {
	mu    sync.RWMutex
	peers []Peer
}

// NewAuthorized makes a list. Names and pins are unique in it.
func NewAuthorized(peers ...Peer) (*Authorized, error) {
	a := &Authorized{}
	for _, p := range peers {
		if err := a.Add(p); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// LoadAuthorized reads a list from a file that only its owner can write: a JSON
// array of peers.
func LoadAuthorized(path string) (*Authorized, error) {
	data, err := readList(path)
	if err != nil {
		return nil, fmt.Errorf("load authorized keys: %w", err)
	}
	a, err := ParseAuthorized(data)
	if err != nil {
		return nil, fmt.Errorf("load authorized keys %q: %w", path, err)
	}
	return a, nil
}

// ParseAuthorized reads a list from its JSON text.
func ParseAuthorized(data []byte) (*Authorized, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var peers []Peer
	if err := decoder.Decode(&peers); err != nil {
		return nil, fmt.Errorf("decode peers at byte %d: %w", decoder.InputOffset(), err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("decode peers: more text after byte %d", decoder.InputOffset())
	}
	return NewAuthorized(peers...)
}

// Save writes the list to a file of mode 0600.
func (a *Authorized) Save(path string) error {
	data, err := json.MarshalIndent(a.Peers(), "", "  ")
	if err != nil {
		return fmt.Errorf("encode authorized keys: %w", err)
	}
	return WriteFile(path, append(data, '\n'), 0o600)
}

// Peers returns a copy of the list.
func (a *Authorized) Peers() []Peer {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return append([]Peer{}, a.peers...)
}

// Find returns the peer of a pin.
func (a *Authorized) Find(pin string) (Peer, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, p := range a.peers {
		if p.Pin == pin {
			return p, true
		}
	}
	return Peer{}, false
}

// Add lets one more peer in.
func (a *Authorized) Add(p Peer) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := p.fits(a.peers); err != nil {
		return err
	}
	a.peers = append(a.peers, p)
	return nil
}

// fits refuses a peer that is not well formed, or whose name or key is taken.
func (p Peer) fits(list []Peer) error {
	if err := p.Check(); err != nil {
		return err
	}
	for _, old := range list {
		if old.Name == p.Name || old.Pin == p.Pin {
			return fmt.Errorf("add peer %q: %q with pin %.12s… is on the list already", p.Name, old.Name, old.Pin)
		}
	}
	return nil
}

// SetRole puts peers in the place of all those that have the role. With an error
// the list is as it was.
func (a *Authorized) SetRole(role string, peers []Peer) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := slices.DeleteFunc(slices.Clone(a.peers), func(p Peer) bool { return p.Role == role })
	for _, p := range peers {
		if p.Role != role {
			return fmt.Errorf("set peers of role %s: %q has role %q", role, p.Name, p.Role)
		}
		if err := p.fits(next); err != nil {
			return err
		}
		next = append(next, p)
	}
	a.peers = next
	return nil
}

// Become makes the list what another one is.
func (a *Authorized) Become(other *Authorized) {
	peers := other.Peers()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.peers = peers
}

// Remove takes a peer off the list and reports whether it was on it.
func (a *Authorized) Remove(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := len(a.peers)
	a.peers = slices.DeleteFunc(a.peers, func(p Peer) bool { return p.Name == name })
	return len(a.peers) < before
}
