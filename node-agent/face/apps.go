package face

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
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

// ownNode is what this node is called in the file that says who told it about apps.
const ownNode = "own-node"

// letIn is who may talk to the node of a key: those of its folder of keys, the app that starts it, and in place
// of that folder's apps those that its controller has told it of since. The latter are kept apart, because
// this process faces the network: what it writes never lets in more than an app.
func letIn(cfg config.Config, own string, log *slog.Logger) (*keys.Authorized, error) {
	authorized, err := keys.LoadAuthorized(filepath.Join(cfg.KeysDir, "authorized.json"))
	if err != nil {
		return nil, err
	}
	told, err := kept(appsFile(cfg))
	if err != nil {
		return nil, err
	}
	by, err := kept(byFile(cfg))
	if err != nil {
		return nil, err
	}
	list := byRole(authorized, wire.RoleApp)
	apps := list
	switch {
	case told == nil:
	case by == nil: // an older agent did not keep it
		apps = slices.DeleteFunc(byRole(told, wire.RoleApp), func(p keys.Peer) bool {
			return !slices.Contains(list, p)
		})
	case !ofAnotherPairing(by, authorized, own):
		apps = byRole(told, wire.RoleApp)
	}
	if out := leftOut(told, apps); len(out) > 0 {
		log.Warn("apps of which this node was told in an earlier pairing, or by nobody knows whom, are not let in; "+
			"to have them told again, on the controller: fieldmesh keys tell", "apps", out)
	}
	if err := authorized.SetRole(wire.RoleApp, withOwn(cfg, apps)); err != nil {
		return nil, fmt.Errorf("let in the apps: %w; correct app_key, or authorized.json in %q; or delete %q and have "+
			"the controller tell the apps again: fieldmesh keys tell", err, cfg.KeysDir, appsFile(cfg))
	}
	return authorized, nil
}

// kept is a list that the face wrote; nil: it wrote none.
func kept(path string) (*keys.Authorized, error) {
	list, err := keys.LoadAuthorized(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("load the apps that the controller reported: %w; delete %q and have it tell them "+
			"again: fieldmesh keys tell", err, path)
	}
	return list, nil
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

// leftOut are the names of the apps that were told and are not let in.
func leftOut(told *keys.Authorized, apps []keys.Peer) (names []string) {
	if told == nil {
		return nil
	}
	for _, p := range byRole(told, wire.RoleApp) {
		if !slices.ContainsFunc(apps, func(in keys.Peer) bool { return in.Pin == p.Pin }) {
			names = append(names, p.Name)
		}
	}
	return names
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

// byFile says by whom the apps were told, and to which key of this node. It is a file of its own because an older
// agent reads apps.json as a list of apps alone.
func byFile(cfg config.Config) string { return filepath.Join(cfg.FaceDir(), "apps-by.json") }

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
	by, err := keys.NewAuthorized(keys.Peer{Name: p.Name, Role: p.Role, Pin: p.Pin},
		keys.Peer{Name: ownNode, Role: wire.RoleNode, Pin: f.pin})
	if err != nil {
		return wire.Apps{}, wire.Errorf(wire.CodeBadRequest, "%v", err)
	}
	told, err := keys.NewAuthorized(peers...)
	if err != nil {
		return wire.Apps{}, wire.Errorf(wire.CodeBadRequest, "%v", err)
	}
	if err := os.MkdirAll(f.cfg.FaceDir(), 0o700); err != nil {
		return wire.Apps{}, fmt.Errorf("keep apps: %w", err)
	}
	// In this order a crash between the two never has apps of an earlier pairing pass for this one's.
	if err := told.Save(appsFile(f.cfg)); err != nil {
		return wire.Apps{}, fmt.Errorf("keep apps: %w", err)
	}
	if err := by.Save(byFile(f.cfg)); err != nil {
		return wire.Apps{}, fmt.Errorf("keep by whom apps were told: %w", err)
	}
	if err := f.authorized.SetRole(wire.RoleApp, withOwn(f.cfg, peers)); err != nil {
		return wire.Apps{}, wire.Errorf(wire.CodeConflict, "%v", err)
	}
	f.log.Info("apps that are let in", "by", p.Name, "number", len(apps.Apps))
	return apps, nil
}
