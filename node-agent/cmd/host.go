package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/radio"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// HostCommand is `fieldmesh-agent host`: the privileged half alone. What keeps it from its
// work keeps no former life's changes in force.
func HostCommand() *cobra.Command {
	return configuredOr(&cobra.Command{Use: "host", PreRunE: needRoot},
		func(c *cobra.Command, cfg config.Config) error {
			if cfg.Unprivileged() {
				return restoreDespite(cfg, errNoHost)
			}
			face, err := faceUser(cfg)
			if err != nil {
				return restoreDespite(cfg, err)
			}
			return serveHost(c.Context(), cfg, hostConfig(cfg, []int{face.uid}, logger()))
		},
		func(_ *cobra.Command, path string, fault error) error { return restoreDespite(salvaged(path), fault) })
}

// errNoHost is what the privileged half says of a node that is to have none.
var errNoHost = errors.New("the configuration has `privileges: none`: this node has no privileged half; run " +
	"`fieldmesh-agent up` as an ordinary user, or leave that line out")

// restoreDespite puts back what a former life left changed, unless another is at work,
// and reports the fault because of which that is all.
func restoreDespite(cfg config.Config, fault error) error {
	if !hasJournal(cfg) {
		return fault
	}
	report, err := host.RestoreOffline(hostConfig(cfg, nil, logger()), "")
	if errors.Is(err, host.ErrRunning) {
		return fault
	}
	if err == nil && len(report.Failed) > 0 {
		err = fmt.Errorf("restore: not undone: %q", report.Failed)
	}
	return errors.Join(fault, err)
}

// salvaged is what restoring needs of a configuration that has a fault: where the journal
// lies. It is empty where that cannot be told, or others could have written it.
func salvaged(path string) config.Config {
	if host.CheckConfiguration(path) != nil {
		return config.Config{}
	}
	return config.Config{StateDir: config.StateDirOf(path)}
}

func hasJournal(cfg config.Config) bool {
	_, err := os.Stat(filepath.Join(cfg.JournalDir(), "journal"))
	return cfg.StateDir != "" && err == nil
}

// serveHost runs the privileged half and, where the configuration says so, what
// tells routing daemons of a real radio.
func serveHost(ctx context.Context, cfg config.Config, hc host.Config) error {
	if cfg.RadioSocket() == "" {
		return host.Serve(ctx, hc)
	}
	if err := os.MkdirAll(cfg.HostDir(), 0o711); err != nil { // as the privileged half makes it
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return host.Serve(ctx, hc) })
	g.Go(func() error { return radio.NewServer(cfg.Interface).Serve(ctx, cfg.RadioSocket()) })
	return g.Wait()
}

// RestoreCommand is `fieldmesh-agent restore`: put this machine back by hand.
func RestoreCommand() *cobra.Command {
	var trialOnly, ifEnded bool
	do := func(c *cobra.Command, cfg config.Config) error {
		left := cfg.Unprivileged() && hasJournal(cfg) // by an agent that was root
		if left && os.Geteuid() != 0 {
			return leftByRoot(cfg)
		}
		if err := needPrivileges(c, cfg, nil); err != nil && !left {
			return err
		}
		if cfg.Unprivileged() && !left {
			return writeRestored(c.OutOrStdout(), wire.RestoreReport{}) // it has changed nothing
		}
		scope := ""
		if trialOnly {
			scope = host.ScopeTrial
		}
		put := restore
		if ifEnded {
			put = restoreIfEnded
		}
		report, err := put(c.Context(), cfg, scope)
		if err != nil {
			return err
		}
		return writeRestored(c.OutOrStdout(), report)
	}
	c := configuredOr(&cobra.Command{Use: "restore"}, do,
		func(c *cobra.Command, path string, fault error) error {
			if err := needPrivileges(c, config.Config{}, fault); err != nil {
				return err
			}
			cfg := salvaged(path)
			if !hasJournal(cfg) {
				return fault
			}
			return errors.Join(fault, do(c, cfg))
		})
	c.Flags().BoolVar(&trialOnly, "trial", false, "put back only what the present trial changed, not what its run did")
	c.Flags().BoolVar(&ifEnded, "if-ended", false, "only when no agent runs: one that does is left alone, and puts "+
		"back by itself what it has changed, when it ends")
	return c
}

// restoreIfEnded restores for a script that cannot know whether the agent still
// runs: what a living one needs is not taken from it.
func restoreIfEnded(_ context.Context, cfg config.Config, scope string) (report wire.RestoreReport, err error) {
	if err := os.MkdirAll(cfg.StateDir, 0o755); err != nil {
		return report, fmt.Errorf("make state_dir: %w", err)
	}
	lock, err := lockNode(cfg)
	if err == nil {
		defer func() { err = errors.Join(err, lock.Close()) }()
		report, err = host.RestoreOffline(hostConfig(cfg, nil, slog.New(slog.DiscardHandler)), scope)
	}
	if errors.Is(err, errNodeRuns) || errors.Is(err, host.ErrRunning) {
		err = fmt.Errorf("nothing is put back: the agent with state_dir %s still runs, and does that when it ends; to "+
			"have it done now, leave --if-ended out", cfg.StateDir)
	}
	return report, err
}

// restore asks the host process that runs, or does it itself when none does.
func restore(ctx context.Context, cfg config.Config, scope string) (wire.RestoreReport, error) {
	log := slog.New(slog.DiscardHandler) // the report says it all
	report, err := host.RestoreByHand(hostConfig(cfg, nil, log), scope)
	if errors.Is(err, host.ErrRunning) {
		return host.Dial(cfg.HostSocket()).Restore(ctx, scope)
	}
	return report, err
}

func writeRestored(w io.Writer, report wire.RestoreReport) error {
	if _, err := fmt.Fprintln(w, strings.Join(report.Lines(), "\n")); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	var failed, damaged error
	again, damage := report.NotUndone()
	if n := len(again); n > 0 {
		failed = fmt.Errorf("%d not undone; the next restore, or start of the agent, tries again", n)
	}
	if n := len(damage); n > 0 {
		damaged = fmt.Errorf("%d of a damaged journal not undone, and no restore can: do what it says above", n)
	}
	return errors.Join(failed, damaged)
}

func hostConfig(cfg config.Config, uids []int, log *slog.Logger) host.Config {
	return host.Config{
		Socket: cfg.HostSocket(), StateDir: cfg.JournalDir(), AllowUIDs: uids,
		Interfaces: cfg.HostInterfaces(), Beside: cfg.PhyOf, ControlPort: cfg.ControlPort(),
		Prefixes: cfg.Allow.Prefixes, Binaries: cfg.Daemons(),
		Feedback: cfg.FeedbackSocket, RadioFeedback: cfg.RadioSocket(),
		DeadMan: cfg.DeadMan(), Settings: cfg.HostSettings(), Log: log,
	}
}

var errNotRoot = errors.New("must run as root")

func needRoot(c *cobra.Command, _ []string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	return fmt.Errorf("%w: it changes network settings; run sudo fieldmesh-agent %s", errNotRoot, c.Name())
}

// leftByRoot says that an agent which was root has left its journal.
func leftByRoot(cfg config.Config) error {
	return fmt.Errorf("an agent that was root has left its journal in %s: what it changed may be in force still; put "+
		"it back as root: sudo fieldmesh-agent restore --config FILE, then remove that folder", cfg.HostDir())
}

// needPrivileges is needRoot of a command that a node without root gives, too: as any user but root.
func needPrivileges(c *cobra.Command, cfg config.Config, fault error) error {
	if fault == nil && cfg.Unprivileged() {
		if os.Geteuid() == 0 {
			return errors.New("the configuration has `privileges: none`, and what faces the network must not be " +
				"root: run it as another user, or leave that line out")
		}
		return nil
	}
	broken := (*config.Error)(nil)
	if os.Geteuid() != 0 && (errors.As(fault, &broken) || errors.Is(fault, fs.ErrNotExist)) {
		return fault // nobody knows whose it is to be
	}
	return needRoot(c, nil)
}

// asOwner is how a command begins that root gives, or who runs a node without root: with the
// configuration, and who the network face runs as.
func asOwner(c *cobra.Command, path string) (config.Config, identity, error) {
	cfg, err := loadConfig(path)
	if err := needPrivileges(c, cfg, err); err != nil {
		return config.Config{}, identity{}, err
	}
	if err != nil {
		return config.Config{}, identity{}, err
	}
	face, err := faceUser(cfg)
	return cfg, face, err
}

// identity is a user as the kernel knows it.
type identity struct{ uid, gid int }

// faceUser looks up who the network face runs as. It never falls back to
// another user.
func faceUser(cfg config.Config) (identity, error) {
	if cfg.Unprivileged() {
		return identity{os.Getuid(), os.Getgid()}, nil
	}
	uid, gid, numeric := strings.Cut(cfg.FaceUser, ":")
	if !numeric {
		u, err := user.Lookup(cfg.FaceUser)
		if err != nil {
			return identity{}, fmt.Errorf("find face_user %q: %w; make it with `useradd --system --no-create-home "+
				"%s`, or set face_user in agent.yaml",
				cfg.FaceUser, err, cfg.FaceUser)
		}
		uid, gid = u.Uid, u.Gid
	}
	var id identity
	var err error
	if id.uid, err = strconv.Atoi(uid); err == nil {
		id.gid, err = strconv.Atoi(gid)
	}
	if err != nil {
		return identity{}, fmt.Errorf("read face_user %q: %w", cfg.FaceUser, err)
	}
	if id.uid == 0 || id.gid == 0 {
		return identity{}, fmt.Errorf("face_user %q is root, or of root's group: the part that faces the network "+
			"must not be", cfg.FaceUser)
	}
	return id, nil
}
