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

// ownNode is what this node is called where the apps are kept that it was told about.
const ownNode = "own-node"

// letIn is who may talk to the node of a key: those of its folder of keys, the app that starts it, and in place
// of that folder's apps those that its controller has told it of since. The latter are kept apart, because
// this process faces the network: what it writes never lets in more than an app.
func letIn(cfg config.Config, own string) (*keys.Authorized, error) {
	authorized, err := keys.LoadAuthorized(filepath.Join(cfg.KeysDir, "authorized.json"))
	if err != nil {
		return nil, err
	}
	path := appsFile(cfg)
	told, err := keys.LoadAuthorized(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, toldError(err, path)
	}
	list := byRole(authorized, wire.RoleApp)
	if err == nil && !ofAnotherPairing(told, authorized, own) {
		if err := authorized.SetRole(wire.RoleApp, withOwn(cfg, toldOf(told, list))); err != nil {
			return nil, toldError(err, path)
		}
		return authorized, nil
	}
	if err := authorized.SetRole(wire.RoleApp, withOwn(cfg, list)); err != nil {
		return nil, fmt.Errorf("let in the app of app_key: %w; correct app_key, or authorized.json in %q", err,
			cfg.KeysDir)
	}
	return authorized, nil
}

func toldError(err error, path string) error {
	return fmt.Errorf("load the apps that the controller reported: %w; delete %q and have it tell them again: "+
		"fieldmesh keys tell", err, path)
}

func byRole(a *keys.Authorized, role string) []keys.Peer {
	return slices.DeleteFunc(a.Peers(), func(p keys.Peer) bool { return p.Role != role })
}

// ofAnotherPairing reports whether apps were told to another key than the node's own, or by a controller that it no
// longer obeys. Each pairing makes a key.
func ofAnotherPairing(told, authorized *keys.Authorized, own string) bool {
	for _, p := range told.Peers() {
		by, known := authorized.Find(p.Pin)
		if p.Role == wire.RoleNode && p.Pin != own ||
			p.Role == wire.RoleController && (!known || by.Role != wire.RoleController) {
			return true
		}
	}
	return false
}

// toldOf are the apps that were told. An older agent did not keep by whom, nor to which key: of its apps only those
// stay that the folder of keys lets in, too.
func toldOf(told *keys.Authorized, list []keys.Peer) []keys.Peer {
	out := byRole(told, wire.RoleApp)
	if len(byRole(told, wire.RoleController)) == 0 {
		out = slices.DeleteFunc(out, func(p keys.Peer) bool { return !slices.Contains(list, p) })
	}
	return out
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
	f.listed.Lock()
	defer f.listed.Unlock()
	if _, still := f.authorized.Find(p.Pin); !still { // its key was taken back while it asked
		return wire.Apps{}, wire.Errorf(wire.CodeForbidden, "key %s is no longer authorized", p.Pin)
	}
	list, err := keys.NewAuthorized(f.authorized.Peers()...)
	if err == nil {
		// A trial of it: nothing is written that could not be read again.
		err = list.SetRole(wire.RoleApp, withOwn(f.cfg, peers))
	}
	if err != nil {
		return wire.Apps{}, wire.Errorf(wire.CodeConflict, "%v", err)
	}
	told, err := keys.NewAuthorized(append(peers, keys.Peer{Name: p.Name, Role: p.Role, Pin: p.Pin},
		keys.Peer{Name: ownNode, Role: wire.RoleNode, Pin: f.pin})...)
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
