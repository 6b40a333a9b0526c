package face

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// letIn is who may talk to this node: those of its folder of keys, and the apps
// that the controller has told it of since. The latter are kept apart, because
// this process faces the network: what it writes never lets in more than an app.
func letIn(cfg config.Config) (*keys.Authorized, error) {
	authorized, err := keys.LoadAuthorized(filepath.Join(cfg.KeysDir, "authorized.json"))
	if err != nil {
		return nil, err
	}
	path := appsFile(cfg)
	told, err := keys.LoadAuthorized(path)
	if errors.Is(err, fs.ErrNotExist) {
		return authorized, nil
	}
	if err == nil {
		err = authorized.SetRole(wire.RoleApp, told.Peers())
	}
	if err != nil {
		return nil, fmt.Errorf("load the apps that the controller reported: %w; delete %q and have it tell them "+
			"again: fieldmesh keys tell", err, path)
	}
	return authorized, nil
}

func appsFile(cfg config.Config) string { return filepath.Join(cfg.FaceDir(), "apps.json") }

// LetIn takes over whom of the apps to let in, durably.
func (f *Face) LetIn(p api.Peer, apps wire.Apps) (wire.Apps, error) {
	var peers []keys.Peer
	for _, a := range apps.Apps {
		peers = append(peers, keys.Peer{Name: a.Name, Role: wire.RoleApp, Pin: a.Pin})
	}
	list, err := keys.NewAuthorized(f.authorized.Peers()...)
	if err == nil {
		err = list.SetRole(wire.RoleApp, peers) // a trial of it: nothing is written that could not be read again
	}
	if err != nil {
		return wire.Apps{}, wire.Errorf(wire.CodeConflict, "%v", err)
	}
	told, err := keys.NewAuthorized(peers...)
	if err != nil {
		return wire.Apps{}, wire.Errorf(wire.CodeBadRequest, "%v", err)
	}
	if err := os.MkdirAll(f.cfg.FaceDir(), 0o700); err != nil {
		return wire.Apps{}, fmt.Errorf("keep apps: %w", err)
	}
	if err := told.Save(appsFile(f.cfg)); err != nil {
		return wire.Apps{}, fmt.Errorf("keep apps: %w", err)
	}
	if err := f.authorized.SetRole(wire.RoleApp, peers); err != nil {
		return wire.Apps{}, wire.Errorf(wire.CodeConflict, "%v", err)
	}
	f.log.Info("apps that are let in", "by", p.Name, "number", len(apps.Apps))
	return apps, nil
}
