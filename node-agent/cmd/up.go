package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/supervise"
)

// How long the halves have from SIGTERM to SIGKILL. The face ends its trial
// and closes its spool; the host process puts the machine back.
const (
	faceStops = 15 * time.Second
	hostStops = 45 * time.Second
)

// UpCommand is `fieldmesh-agent up`: the whole node.
func UpCommand() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "up",
		Short: "Run this node: its privileged half and its network face, each kept running",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return up(c, path) },
	}
	addConfig(c, &path)
	return c
}

func up(c *cobra.Command, path string) (err error) {
	cfg, face, err := asRoot(c, path)
	if err != nil {
		return err
	}
	// The children are started elsewhere than here.
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("find configuration: %w", err)
	}
	if err := makeDirs(cfg, face); err != nil {
		return err
	}
	log := logger()
	switch err := keys.GiveToReader(cfg.KeysDir, face.gid); {
	case errors.Is(err, keys.ErrShared):
		log.Warn("whoever takes the network face over may change whom this node lets in", "error", err)
	case err != nil:
		return err
	}
	lock, err := lockNode(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return supervise.Run(c.Context(), children(path, face), log)
}

// ownProgram is the program that runs, even when its file has been replaced
// since, or lies where the face's user may not look, as in a home directory.
const ownProgram = "/proc/self/exe"

// children are the two halves. The face is stopped first, so that nothing is
// asked of the host process while it puts the machine back.
func children(path string, face identity) []supervise.Child {
	args := func(half string) []string { return []string{"fieldmesh-agent", half, "--config", path} }
	return []supervise.Child{
		{Name: "host", Path: ownProgram, Args: args("host"), StopWithin: hostStops},
		{
			Name: "face", Path: ownProgram, Args: args("face"), StopWithin: faceStops,
			// No supplementary groups: an empty list, not those of this process.
			Credential: &syscall.Credential{Uid: uint32(face.uid), Gid: uint32(face.gid), Groups: []uint32{}},
			Confined:   true,
		},
	}
}

// makeDirs makes the state directory, root's, and in it the face's own.
func makeDirs(cfg config.Config, face identity) error {
	if err := os.MkdirAll(cfg.StateDir, 0o755); err != nil {
		return fmt.Errorf("make state_dir: %w", err)
	}
	if err := os.MkdirAll(cfg.HostDir(), 0o711); err != nil {
		return fmt.Errorf("make host's directory: %w", err)
	}
	if err := os.Mkdir(cfg.FaceDir(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make face's directory: %w", err)
	}
	// Not through a symbolic link, whoever may have put one there.
	if err := os.Lchown(cfg.FaceDir(), face.uid, face.gid); err != nil {
		return fmt.Errorf("give face its directory: %w", err)
	}
	return nil
}

// lockNode keeps a second agent away; closing the file, or dying, ends it.
func lockNode(cfg config.Config) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(cfg.StateDir, "up.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("another fieldmesh-agent runs with state_dir %s; stop it first, or give this one a "+
			"state_dir of its own", cfg.StateDir)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
