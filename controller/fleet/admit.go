package fleet

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Identity loads the controller's identity of a folder of keys.
func Identity(dir string) (keys.Identity, error) {
	identity, err := keys.LoadIdentity(dir)
	if _, there := os.Stat(filepath.Join(dir, FileName)); there == nil {
		return identity, err // a key that was lost
	}
	if errors.Is(err, keys.ErrNoIdentity) {
		return keys.Identity{}, fmt.Errorf("there is no fleet in %q yet; run `fieldmesh keys init --dir %s` first", dir,
			dir)
	}
	return identity, err
}

// Vacant refuses a name that the fleet of a folder has already, and one that
// cannot be.
func Vacant(dir, name string) error {
	if err := keys.CheckName(name); err != nil {
		return err
	}
	f, _, err := readFile(filepath.Join(dir, FileName))
	if err != nil {
		return err
	}
	return f.vacant(name)
}

// AdmitNode adds a node that made its key itself to DIR/fleet.yaml, and returns
// whom the node is to let in.
func AdmitNode(dir string, node Node) ([]keys.Peer, error) {
	controller, err := Identity(dir)
	if err != nil {
		return nil, fmt.Errorf("admit node %q: %w", node.Name, err)
	}
	var f file
	err = alone(dir, func() (err error) {
		f, err = change(dir, node.Name, func(f *file) error { return f.add(node) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("admit node: %w", err)
	}
	return f.peers(controller), nil
}

// AdmitApp adds a phone's app to DIR/fleet.yaml, and returns the fleet with it.
// The nodes have yet to be told.
func AdmitApp(dir, name string, app App) (*Fleet, error) {
	err := alone(dir, func() error {
		_, err := change(dir, name, func(f *file) error {
			if f.Apps == nil {
				f.Apps = map[string]App{}
			}
			f.Apps[name] = app
			return f.unique()
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("admit app: %w", err)
	}
	return Load(filepath.Join(dir, FileName))
}

// change adds something of a new name to a fleet file.
func change(dir, name string, add func(*file) error) (file, error) {
	path := filepath.Join(dir, FileName)
	f, comments, err := readFile(path)
	if err != nil {
		return file{}, err
	}
	if err := f.vacant(name); err != nil {
		return file{}, err
	}
	if err := add(&f); err != nil {
		return file{}, fmt.Errorf("%q: %w", name, err)
	}
	return f, writeFile(path, f, comments)
}

func (f file) vacant(name string) error {
	_, node := f.Nodes[name]
	_, app := f.Apps[name]
	if node || app || name == controllerName {
		return fmt.Errorf("%q: the fleet has it already; `fieldmesh keys revoke %s` takes it out", name, name)
	}
	return nil
}

func (f *file) add(node Node) error {
	if err := node.check(); err != nil {
		return err
	}
	if f.Nodes == nil {
		f.Nodes = map[string]Node{}
	}
	f.Nodes[node.Name] = node
	return f.unique()
}

// peers are whom a node of the fleet lets in: its controller and the apps.
func (f file) peers(controller keys.Identity) []keys.Peer {
	out := []keys.Peer{{Name: controllerName, Role: wire.RoleController, Pin: controller.Pin}}
	for _, name := range slices.Sorted(maps.Keys(f.Apps)) {
		out = append(out, keys.Peer{Name: name, Role: wire.RoleApp, Pin: f.Apps[name].Pin})
	}
	return out
}
