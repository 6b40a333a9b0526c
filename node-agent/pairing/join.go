// Package pairing makes this node known to a controller by the one-time code
// that the controller shows: the node makes its key itself, the controller
// answers whom to let in. It writes the node's folder of keys; the messages are
// protocols/pairing's, and who runs the agent afterwards is its caller's.
package pairing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/pairing"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const callTime = 15 * time.Second

// Node is what this node says of itself.
type Node struct {
	Name    string // as in its configuration
	Listen  string // host:port of its API; the host may be empty
	KeysDir string
	// The interface by which neighbours are called, whatever the routes say, as Android's lead elsewhere from a Wi-Fi
	// without internet; empty: none
	Interface string
	UID       int // the user that the network face runs as owns the keys
	GID       int
}

// Join makes this node's key, shows it to the controller of the code, and keeps
// key and the controller's answer in KeysDir. Nothing is written unless the
// controller has proved that it made the code. It returns the controller's pin.
func Join(ctx context.Context, code pairing.Code, n Node) (controller string, err error) {
	if err := n.vacant(); err != nil {
		return "", err
	}
	certPEM, keyPEM, pin, err := keys.New(n.Name)
	if err != nil {
		return "", err
	}
	own, err := keys.ParseIdentity(certPEM, keyPEM)
	if err != nil {
		return "", err
	}
	reply, controller, err := n.ask(ctx, code, own, pairing.Request{Version: pairing.Version, Name: n.Name,
		Role: wire.RoleNode, Listen: n.Listen})
	if err != nil {
		return "", fmt.Errorf("pair with the controller at %s: %w", code.Address, err)
	}
	authorized, err := checkReply(code, controller, pin, n.Name, reply)
	if err != nil {
		return "", fmt.Errorf("pair with the controller at %s: %w", code.Address, err)
	}
	if err := n.save(certPEM, keyPEM, authorized); err != nil {
		return "", fmt.Errorf("%w; the controller knows this node already: correct the cause, `fieldmesh keys revoke "+
			"%s` there, and pair again", err, n.Name)
	}
	return controller, nil
}

// Adopt keeps the keys that a controller has issued for this node in a folder, wherever that was copied from. It
// returns the controller's pin.
func Adopt(bundle string, n Node) (controller string, err error) {
	if err := n.vacant(); err != nil {
		return "", err
	}
	var files [3][]byte
	for i, name := range []string{"node.crt", "node.key", "authorized.json"} {
		if files[i], err = os.ReadFile(filepath.Join(bundle, name)); err != nil {
			return "", fmt.Errorf("read the keys that `fieldmesh keys issue` made: %w", err)
		}
	}
	identity, err := keys.ParseIdentity(files[0], files[1])
	if err != nil {
		return "", fmt.Errorf("read the keys in %q: %w", bundle, err)
	}
	if identity.Name != n.Name {
		return "", fmt.Errorf("the keys in %q are those of %q, and this node is %q: correct `node` in its "+
			"configuration, or take the other folder", bundle, identity.Name, n.Name)
	}
	authorized, err := keys.ParseAuthorized(files[2])
	if err != nil {
		return "", fmt.Errorf("read whom to let in, in %q: %w", bundle, err)
	}
	for _, p := range authorized.Peers() {
		if p.Role == wire.RoleController {
			controller = p.Pin
		}
	}
	if controller == "" {
		return "", fmt.Errorf("nobody in %q may steer this node: copy the folder again", bundle)
	}
	return controller, n.save(files[0], files[1], authorized)
}

// vacant refuses to pair a node that has keys: it would cut itself off from
// whoever steers it now.
func (n Node) vacant() error {
	for _, name := range []string{"node.key", "node.crt", "authorized.json"} {
		path := filepath.Join(n.KeysDir, name)
		_, err := os.Lstat(path)
		if err == nil {
			return fmt.Errorf("this node is paired already: %q exists; to pair it again, delete the files of that "+
				"folder first", path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("look for keys: %w", err)
		}
	}
	return keys.CheckAlone(n.KeysDir)
}

// ask makes the one call, and returns the pin of who answered.
func (n Node) ask(ctx context.Context, code pairing.Code, own keys.Identity,
	request pairing.Request) (reply pairing.Reply, controller string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	conn, err := dial(ctx, n.Interface, code.Address, pairing.ClientTLS(own, code))
	if err != nil {
		return reply, "", err
	}
	defer conn.Close()
	if controller, err = keys.PeerPin(conn.ConnectionState()); err != nil {
		return reply, "", err
	}
	// Only now is it known for which keys the proof is to be.
	request.Proof = code.Prove(controller, own.Pin, request)
	body, err := wire.Encode(request)
	if err != nil {
		return reply, "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+code.Address+pairing.Path,
		bytes.NewReader(body))
	if err != nil {
		return reply, "", fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	reply, err = exchange(ctx, conn, r)
	return reply, controller, err
}

// checkReply accepts what a controller that knows the code says, and nothing that
// would let in anybody beside it.
func checkReply(code pairing.Code, controller, own, name string, reply pairing.Reply) (*keys.Authorized, error) {
	switch {
	case !code.Admits(controller, own, reply):
		return nil, errors.New("who answered does not know the code; nothing was kept")
	case reply.Name != name || reply.Role != wire.RoleNode:
		return nil, fmt.Errorf("the controller takes this node for %q of role %q; nothing was kept", reply.Name,
			reply.Role)
	}
	authorized, err := keys.NewAuthorized(reply.Authorized...)
	if err != nil {
		return nil, fmt.Errorf("read whom to let in: %w", err)
	}
	if p, ok := authorized.Find(controller); !ok || p.Role != wire.RoleController {
		return nil, errors.New("the controller does not let itself in; nothing was kept")
	}
	return authorized, nil
}

// save writes the folder of keys. The key is the user's who the network face runs
// as; whom it lets in, that user can only read.
func (n Node) save(certPEM, keyPEM []byte, authorized *keys.Authorized) error {
	if err := os.MkdirAll(n.KeysDir, 0o700); err != nil {
		return fmt.Errorf("make keys_dir: %w", err)
	}
	if err := authorized.Save(filepath.Join(n.KeysDir, "authorized.json")); err != nil {
		return err
	}
	if err := keys.SaveIdentity(n.KeysDir, "node", certPEM, keyPEM); err != nil {
		return err
	}
	if os.Geteuid() != 0 { // a node without root: they are its own user's
		return nil
	}
	return keys.GiveToReader(n.KeysDir, n.UID, n.GID)
}

// decode reads an answer of either kind.
func decode(status int, data []byte) (pairing.Reply, error) {
	var reply pairing.Reply
	if status == http.StatusOK {
		if err := json.Unmarshal(data, &reply); err != nil {
			return reply, fmt.Errorf("decode answer: %w", err)
		}
		return reply, nil
	}
	var refused wire.Error
	if err := json.Unmarshal(data, &refused); err != nil || refused.Code == "" {
		return reply, fmt.Errorf("HTTP status %d: %.200q", status, data)
	}
	return reply, &refused
}
