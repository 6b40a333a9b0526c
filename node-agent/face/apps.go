package face

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ownApp is what the app that starts this agent is called.
const ownApp = "own-app"

// letIn is who may talk to this node: those of its folder of keys, the app that starts
// it, and the apps that the controller has told it of since. The latter are kept apart,
// because this process faces the network: what it writes never lets in more than an app.
func letIn(cfg config.Config) (*keys.Authorized, error) {
	authorized, err := keys.LoadAuthorized(filepath.Join(cfg.KeysDir, "authorized.json"))
	if err != nil {
		return nil, err
	}
	path := appsFile(cfg)
	told, err := keys.LoadAuthorized(path)
	if errors.Is(err, fs.ErrNotExist) {
		byHand := slices.DeleteFunc(authorized.Peers(), func(p keys.Peer) bool { return p.Role != wire.RoleApp })
		if err := authorized.SetRole(wire.RoleApp, withOwn(cfg, byHand)); err != nil {
			return nil, fmt.Errorf("let in the app of app_key: %w; correct app_key, or authorized.json in %q", err,
				cfg.KeysDir)
		}
		return authorized, nil
	}
	if err == nil {
		err = authorized.SetRole(wire.RoleApp, withOwn(cfg, told.Peers()))
	}
	if err != nil {
		return nil, fmt.Errorf("load the apps that the controller reported: %w; delete %q and have it tell them "+
			"again: fieldmesh keys tell", err, path)
	}
	return authorized, nil
}

// withOwn is a list of apps with the one that starts this agent.
func withOwn(cfg config.Config, apps []keys.Peer) []keys.Peer {
	isOwn := func(p keys.Peer) bool { return p.Pin == cfg.AppKey }
	if cfg.AppKey == "" || slices.ContainsFunc(apps, isOwn) {
		return apps
	}
	return append(slices.Clone(apps), keys.Peer{Name: ownApp, Role: wire.RoleApp, Pin: cfg.AppKey})
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
		// A trial of it: nothing is written that could not be read again.
		err = list.SetRole(wire.RoleApp, withOwn(f.cfg, peers))
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
	if err := f.authorized.SetRole(wire.RoleApp, withOwn(f.cfg, peers)); err != nil {
		return wire.Apps{}, wire.Errorf(wire.CodeConflict, "%v", err)
	}
	f.log.Info("apps that are let in", "by", p.Name, "number", len(apps.Apps))
	return apps, nil
}
