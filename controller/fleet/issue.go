package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"fieldmesh.dev/fieldmesh/internal/keys"
)

// controllerName is the name that the controller's key bears.
const controllerName = "controller"

// IssueOptions are what a node's entry may say beside its address.
type IssueOptions struct {
	Unit   string
	Netns  string
	Labels map[string]string
}

// Init makes the controller's identity and an empty fleet.yaml in dir. It
// leaves a folder that has either of them as it is, and fails.
func Init(dir string) (keys.Identity, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return keys.Identity{}, fmt.Errorf("make folder of keys: %w", err)
	}
	path := filepath.Join(dir, FileName)
	if _, err := os.Lstat(path); err == nil {
		return keys.Identity{}, fmt.Errorf("make keys in %q: fleet.yaml exists already; use it, or choose "+
			"another folder", dir)
	}
	certPEM, keyPEM, _, err := keys.New(controllerName)
	if err != nil {
		return keys.Identity{}, err
	}
	if err := keys.SaveIdentity(dir, "controller", certPEM, keyPEM); err != nil {
		return keys.Identity{}, err
	}
	if err := writeFile(path, file{Version: fileVersion, Keys: ".", Nodes: map[string]Node{}}, nil); err != nil {
		return keys.Identity{}, err
	}
	return keys.LoadIdentity(dir)
}

// Issue makes a node's bundle DIR/nodes/NAME/{node.crt,node.key,authorized.json}
// and adds the node to DIR/fleet.yaml; it returns the bundle's folder. The
// bundle goes to the node; its key need not stay here.
func Issue(dir, name, address string, o IssueOptions) (bundle string, err error) {
	err = alone(dir, func() (err error) { bundle, err = issue(dir, name, address, o); return err })
	return bundle, err
}

func issue(dir, name, address string, o IssueOptions) (bundle string, err error) {
	controller, err := Identity(dir)
	if err != nil {
		return "", fmt.Errorf("issue node %q: %w", name, err)
	}
	path := filepath.Join(dir, FileName)
	f, comments, err := readFile(path)
	if err != nil {
		return "", err
	}
	if err := f.vacant(name); err != nil {
		return "", fmt.Errorf("issue node: %w", err)
	}
	certPEM, keyPEM, pin, err := keys.New(name)
	if err != nil {
		return "", fmt.Errorf("issue node: %w", err)
	}
	node := Node{Name: name, Address: address, Pin: pin, Unit: o.Unit, Netns: o.Netns, Labels: o.Labels}
	if err := f.add(node); err != nil {
		return "", fmt.Errorf("issue node %q: %w", name, err)
	}
	bundle = bundleOf(dir, name)
	if err := writeBundle(bundle, certPEM, keyPEM, f.peers(controller)); err != nil {
		return "", fmt.Errorf("issue node %q: %w", name, err)
	}
	// Last, so that a fleet never lists a node that has no key.
	if err := writeFile(path, f, comments); err != nil {
		return "", err
	}
	return bundle, nil
}

func bundleOf(dir, name string) string { return filepath.Join(dir, "nodes", name) }

func writeBundle(bundle string, certPEM, keyPEM []byte, peers []keys.Peer) error {
	if err := os.MkdirAll(bundle, 0o700); err != nil {
		return fmt.Errorf("make bundle: %w", err)
	}
	if err := keys.SaveIdentity(bundle, "node", certPEM, keyPEM); err != nil {
		return err
	}
	authorized, err := keys.NewAuthorized(peers...)
	if err != nil {
		return err
	}
	return authorized.Save(filepath.Join(bundle, "authorized.json"))
}

// Revoke takes a node, or an app, out of DIR/fleet.yaml and deletes a node's
// bundle: this controller believes its key no longer. What the node itself
// believes is in its own authorized.json; the nodes have yet to be told about an
// app.
func Revoke(dir, name string) error {
	if err := keys.CheckName(name); err != nil {
		return fmt.Errorf("revoke node: %w", err)
	}
	return alone(dir, func() error { return revoke(dir, name) })
}

func revoke(dir, name string) error {
	path := filepath.Join(dir, FileName)
	f, comments, err := readFile(path)
	if err != nil {
		return err
	}
	_, listed := f.Nodes[name]
	_, app := f.Apps[name]
	if listed = listed || app; listed {
		delete(f.Nodes, name)
		delete(f.Apps, name)
		for place := range comments {
			if strings.HasPrefix(place+".", "$.nodes."+name+".") || strings.HasPrefix(place+".", "$.apps."+name+".") {
				delete(comments, place)
			}
		}
		if err := writeFile(path, f, comments); err != nil {
			return err
		}
	}
	removed, err := removeBundle(bundleOf(dir, name))
	if err != nil {
		return fmt.Errorf("revoke node %q: %w", name, err)
	}
	if !listed && !removed {
		has := slices.Sorted(maps.Keys(f.Nodes))
		if has = slices.AppendSeq(has, maps.Keys(f.Apps)); len(has) == 0 {
			return fmt.Errorf("revoke %q: fleet %q has no nodes", name, path)
		}
		return fmt.Errorf("revoke %q: fleet %q does not have it; it has %s", name, path, strings.Join(has, ", "))
	}
	return nil
}

// removeBundle deletes the files that Issue made, and the folder when nothing
// else is in it.
func removeBundle(bundle string) (removed bool, err error) {
	for _, name := range []string{"node.key", "node.crt", "authorized.json"} {
		err := os.Remove(filepath.Join(bundle, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, err
		}
		removed = removed || err == nil
	}
	left, err := os.ReadDir(bundle)
	if err != nil || len(left) > 0 {
		return removed, nil //nolint:nilerr // no folder, or files that are not ours: both are as they should be
	}
	return removed, os.Remove(bundle)
}

func writeFile(path string, f file, comments yaml.CommentMap) error {
	data, err := yaml.MarshalWithOptions(f, yaml.WithComment(comments), yaml.IndentSequence(true))
	if err != nil {
		return fmt.Errorf("encode fleet: %w", err)
	}
	return keys.WriteFile(path, data, 0o644)
}
