// Package cmd is the command line `fieldmesh-agent`: it reads flags and the
// configuration and starts the parts. Whatever does the work is elsewhere.
package cmd

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/confine"
	"fieldmesh.dev/fieldmesh/node-agent/face"
	"fieldmesh.dev/fieldmesh/node-agent/host"
)

// help has what the help of each command says.
//
//go:embed help
var help embed.FS

// Root is the whole command.
func Root() *cobra.Command {
	root := &cobra.Command{Use: "fieldmesh-agent"}
	flags.Root(root)
	root.AddCommand(ProbeCommand(), InitCommand(), PairCommand(), UpCommand(), RestoreCommand(), LogCommand(),
		SimulateGPSCommand(), RouteCommand(), HostCommand(), FaceCommand(), versionCommand())
	flags.Describe(root, help)
	return root
}

// gcPercent keeps the heaps of the agent's processes small, of which a phone has three.
// The default of 100 took 8 MB more for both nodes of a rehearsal; the processor time of
// both is the same within its noise (make bench).
const gcPercent = 50

// rootUmask leaves to what root makes the mode that is asked for, whatever umask a unit or sudo gives: with 077 the
// network face, another user, could not reach the socket in a folder that is made for it. What is a secret asks for
// 0600, and a folder of secrets for 0700.
const rootUmask = 0o022

// Main runs the command line and returns its exit status: 0 for success, 1 for an
// error, and 2 for a command line that is wrong.
func Main(args []string) int {
	// On the process's first thread, which has what whoever started it asked of it, as a
	// signal at its own death: the face begins again on the thread that it is on.
	runtime.LockOSThread()
	debug.SetGCPercent(gcPercent)
	if os.Geteuid() == 0 {
		unix.Umask(rootUmask)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := Root()
	root.SetArgs(args)
	begun := false // which is after the command line was understood
	root.PersistentPreRun = func(*cobra.Command, []string) { begun = true }
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fieldmesh-agent:", err)
		if !begun {
			return 2
		}
		return 1
	}
	return 0
}

// versionCommand is `fieldmesh-agent version`, which many type before they think of the flag.
func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Args: flags.None, RunE: func(c *cobra.Command, _ []string) error {
		_, err := fmt.Fprintln(c.OutOrStdout(), c.Root().Name(), "version", version.Build())
		return err
	}}
}

// FaceCommand is `fieldmesh-agent face`: the unprivileged half alone.
func FaceCommand() *cobra.Command {
	return configured(&cobra.Command{Use: "face"}, func(c *cobra.Command, cfg config.Config) error {
		if cfg.Unprivileged() {
			if err := needPrivileges(c, cfg, nil); err != nil {
				return err
			}
		}
		confined, err := confine.Face(c.Context(), cfg, c.Flag("config").Value.String())
		if err != nil {
			return err
		}
		return face.Run(c.Context(), cfg, confined, logger())
	})
}

// addConfig adds the flag --config.
func addConfig(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "config", config.DefaultPath, "the agent's configuration")
}

// configured makes c a command that takes the configuration and nothing else.
func configured(c *cobra.Command, do func(*cobra.Command, config.Config) error) *cobra.Command {
	return configuredOr(c, do, func(_ *cobra.Command, _ string, fault error) error { return fault })
}

// configuredOr is configured, for a command that does something even when the
// configuration has a fault.
func configuredOr(c *cobra.Command, do func(*cobra.Command, config.Config) error,
	otherwise func(c *cobra.Command, path string, fault error) error) *cobra.Command {
	var path string
	c.Args = flags.None
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, err := loadConfig(path)
		if err != nil {
			return otherwise(c, path, err)
		}
		return do(c, cfg)
	}
	addConfig(c, &path)
	return c
}

// loadConfig reads the configuration, and says how a missing one is made.
func loadConfig(path string) (cfg config.Config, err error) {
	if os.Geteuid() == 0 { // before a byte is read: what nobody else can exchange is then read by its name
		err = host.CheckConfiguration(path)
	}
	if err == nil {
		cfg, err = config.Load(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		name := ""
		if path != config.DefaultPath {
			name = " --config " + path
		}
		err = fmt.Errorf("%w; `sudo fieldmesh-agent init%s` writes a first one; for a node without root, leave sudo "+
			"out and add --privileges none", err, name)
	}
	return cfg, err
}

func logger() *slog.Logger { return slog.New(slog.NewTextHandler(os.Stderr, nil)) }
