package field

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/gps"
)

const (
	apiPort = 7443
	goPort  = wire.DefaultGoPort
)

// agentFile is agent.yaml as the agent reads it.
type agentFile struct {
	Node             string   `yaml:"node"`
	Listen           string   `yaml:"listen"`
	GoPort           int      `yaml:"go_port"`
	StateDir         string   `yaml:"state_dir"`
	Interface        string   `yaml:"interface"`
	ControlInterface string   `yaml:"control_interface"`
	Discovery        bool     `yaml:"discovery"` // no phone is there
	GPSD             string   `yaml:"gpsd"`
	FeedbackSocket   string   `yaml:"feedback_socket,omitempty"`
	FaceUser         string   `yaml:"face_user"`
	KeysDir          string   `yaml:"keys_dir"`
	Allow            allowing `yaml:"allow"`
	QuotaBytes       int64    `yaml:"quota_bytes"`
	QuotaKeptBytes   int64    `yaml:"quota_kept_bytes"` // 0: the nodes share a disk
}

type allowing struct {
	Prefixes []string `yaml:"prefixes"`
}

// fleetFile is fleet.yaml as the controller reads it.
type fleetFile struct {
	Version int                   `yaml:"version"`
	Keys    string                `yaml:"keys"`
	Nodes   map[string]fleetEntry `yaml:"nodes"`
}

type fleetEntry struct {
	Address string `yaml:"address"`
	Pin     string `yaml:"pin"`
	Unit    string `yaml:"unit,omitempty"`
	Netns   string `yaml:"netns"`
}

// prepare writes a node's folder: keys (kept when they are there), agent.yaml
// and the place for its state. It returns the node's entry for the fleet.
func (n *node) prepare(c Config, uid, gid int) (fleetEntry, error) {
	keysDir := filepath.Join(n.dir, "keys")
	for _, d := range []string{n.dir, keysDir, n.stateDir()} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return fleetEntry{}, fmt.Errorf("prepare node %q: %w", n.Name, err)
		}
	}
	pin, err := issue(keysDir, n.Name, c.Authorized, uid, gid)
	if err != nil {
		return fleetEntry{}, fmt.Errorf("prepare node %q: %w", n.Name, err)
	}
	feedback := n.feedback
	if c.MAC80211 {
		feedback = "" // the radio answers itself
	}
	text, err := yaml.Marshal(agentFile{
		Node: n.Name, Listen: n.listen(), GoPort: goPort, StateDir: n.stateDir(),
		Interface: radioLink, ControlInterface: controlLink, GPSD: "127.0.0.1:" + gps.Port,
		FeedbackSocket: feedback, FaceUser: c.FaceUser, KeysDir: keysDir,
		Allow: allowing{c.meshNetworks()}, QuotaBytes: c.QuotaBytes,
	})
	if err != nil {
		return fleetEntry{}, fmt.Errorf("encode agent.yaml of %q: %w", n.Name, err)
	}
	if err := keys.WriteFile(n.agentFile(), text, 0o644); err != nil {
		return fleetEntry{}, err
	}
	return fleetEntry{Address: n.listen(), Pin: pin, Unit: n.Unit}, nil
}

// meshNetworks are what the agents here may set addresses and routes in: those of
// the plan's addresses, beside the road's default.
func (c Config) meshNetworks() []string {
	out := []string{wire.DefaultMeshNetwork}
	for _, n := range c.Nodes {
		if p, err := netip.ParsePrefix(n.MeshAddress); err == nil && !slices.Contains(out, p.Masked().String()) {
			out = append(out, p.Masked().String())
		}
	}
	return out
}

// issue makes a node's identity, or loads the one that is there, and writes
// the list of peers that it lets in. The key belongs to the agent's unprivileged
// half.
func issue(dir, name string, peers []keys.Peer, uid, gid int) (pin string, err error) {
	id, err := keys.LoadIdentity(dir)
	switch {
	case err == nil:
		pin = id.Pin
	case errors.Is(err, keys.ErrNoIdentity):
		cert, key, fresh, err := keys.New(name)
		if err != nil {
			return "", err
		}
		if err := keys.SaveIdentity(dir, wire.RoleNode, cert, key); err != nil {
			return "", err
		}
		pin = fresh
	default:
		return "", err
	}
	list, err := keys.NewAuthorized(peers...)
	if err != nil {
		return "", err
	}
	if err := list.Save(filepath.Join(dir, "authorized.json")); err != nil {
		return "", err
	}
	return pin, os.Lchown(filepath.Join(dir, "node.key"), uid, gid) // `up` makes all else readable
}

func writeFleet(path, controllerKeys string, entries map[string]fleetEntry) error {
	text, err := yaml.Marshal(fleetFile{Version: 1, Keys: or(controllerKeys, "."), Nodes: entries})
	if err != nil {
		return fmt.Errorf("encode fleet file: %w", err)
	}
	return keys.WriteFile(path, text, 0o644)
}
