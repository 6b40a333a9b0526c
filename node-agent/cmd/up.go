package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/host"
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
	var untilEOF bool
	c := &cobra.Command{Use: "up", Args: flags.None, RunE: func(c *cobra.Command, _ []string) error {
		if untilEOF {
			c.SetContext(untilEnd(c.Context(), c.InOrStdin()))
		}
		return up(c, path)
	}}
	addConfig(c, &path)
	c.Flags().BoolVar(&untilEOF, "until-eof", false, "stop in order when standard input ends, as it does with whoever "+
		"holds the other end of a pipe")
	return c
}

// untilEnd returns a context that ends with another one, or when nothing can be
// read any more. The reader lives as long as the program does.
func untilEnd(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end, too
		cancel()
	}()
	return ctx
}

// up starts both halves. What keeps it from that keeps no former life's changes in force.
func up(c *cobra.Command, path string) (err error) {
	cfg, err := loadConfig(path)
	if err := needPrivileges(c, cfg, err); errors.Is(err, errNotRoot) {
		return fmt.Errorf("%w; without root, `privileges: none` in the configuration has it take part in trials that "+
			"change nothing", err)
	} else if err != nil {
		return restoreDespite(cfg, err)
	}
	if err != nil {
		return restoreDespite(salvaged(path), err)
	}
	if cfg.Unprivileged() && hasJournal(cfg) {
		return leftByRoot(cfg)
	}
	face, err := faceUser(cfg)
	if err != nil {
		return restoreDespite(cfg, err)
	}
	// The children are started elsewhere than here.
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("find configuration: %w", err)
	}
	log := logger()
	if err := errors.Join(makeDirs(cfg, face), giveKeys(cfg, face, log)); err != nil {
		return restoreDespite(cfg, err)
	}
	lock, err := lockNode(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	return supervise.Run(c.Context(), children(cfg, path, face), log)
}

func giveKeys(cfg config.Config, face identity, log *slog.Logger) error {
	if cfg.Unprivileged() { // they are the caller's already
		return nil
	}
	err := keys.GiveToReader(cfg.KeysDir, face.uid, face.gid)
	if errors.Is(err, keys.ErrShared) {
		log.Warn("whoever takes the network face over may change whom this node lets in", "error", err)
		return nil
	}
	return err
}

// ownProgram is the program that runs, even when its file has been replaced
// since, or lies where the face's user may not look, as in a home directory.
const ownProgram = "/proc/self/exe"

// children are the two halves. The face is stopped first, so that nothing is
// asked of the host process while it puts the machine back. Without root there is the face
// alone, as this process's own user.
func children(cfg config.Config, path string, face identity) []supervise.Child {
	args := func(half string) []string { return []string{"fieldmesh-agent", half, "--config", path} }
	if cfg.Unprivileged() {
		return []supervise.Child{{Name: "face", Path: ownProgram, Args: args("face"), StopWithin: faceStops,
			Confined: true}}
	}
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
	if !cfg.Unprivileged() {
		if err := os.MkdirAll(cfg.HostDir(), 0o711); err != nil {
			return fmt.Errorf("make host's directory: %w", err)
		}
	}
	if err := os.Mkdir(cfg.FaceDir(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make face's directory: %w", err)
	}
	if cfg.Unprivileged() {
		return ownFolder(cfg.FaceDir())
	}
	// Not through a symbolic link, whoever may have put one there.
	if err := os.Lchown(cfg.FaceDir(), face.uid, face.gid); err != nil {
		return fmt.Errorf("give face its directory: %w", err)
	}
	return nil
}

// ownFolder refuses a folder that is another's, that others may enter, or that a symbolic link stands for.
func ownFolder(path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return fmt.Errorf("look at face's directory: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() || st.Mode&0o077 != 0 {
		return fmt.Errorf("%s is not a folder of this user's alone: remove it, or name another state_dir", path)
	}
	return nil
}

// errNodeRuns says that `fieldmesh-agent up` runs with the same state directory.
var errNodeRuns = errors.New("another fieldmesh-agent runs with state_dir")

// lockNode keeps a second agent away; closing the file, or dying, ends it.
func lockNode(cfg config.Config) (*os.File, error) {
	f, err := host.Lock(filepath.Join(cfg.StateDir, "up.lock"))
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w %s; stop it first; only in another network namespace may this one have a state_dir of "+
			"its own instead", errNodeRuns, cfg.StateDir)
	}
	return f, err
}
