package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
	"fieldmesh.dev/fieldmesh/node-agent/routing/manetd"
)

type routeFlags struct {
	control.Config
	catch    string
	hello    time.Duration
	stateDir string
	file     string
	show     string
}

// RouteCommand is `fieldmesh-agent route`: a routing daemon on one interface.
func RouteCommand() *cobra.Command {
	var f routeFlags
	c := &cobra.Command{Use: "route", Args: flags.None,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) }}
	flags := c.Flags()
	flags.StringVar(&f.Protocol, "protocol", "", strings.Join(manetd.Names(), ", "))
	_ = c.RegisterFlagCompletionFunc("protocol", // which is there
		cobra.FixedCompletions(manetd.Names(), cobra.ShellCompDirectiveNoFileComp))
	flags.StringVar(&f.Interface, "interface", "wlan0", "the interface of the mesh")
	flags.StringVar(&f.Feedback, "feedback", "", "unix socket of the radio's feedback: what it could not deliver")
	flags.BoolVar(&f.NoLinkFeedback, "no-link-feedback", false, "lost frames break no routes, only the protocol's own "+
		"packets do")
	flags.StringVar(&f.catch, "network", "", "the mesh's network, 10.77.0.0/16 (default: that of the interface's "+
		"address)")
	flags.BoolVar(&f.Fresh, "fresh", false, "nobody can remember an earlier life of this node: AODV need not wait at "+
		"its start")
	flags.DurationVar(&f.hello, "hello", 0, "interval of HELLOs (default: the protocol's own)")
	flags.StringVar(&f.Socket, "socket", "", "unix socket for state and notices (default: in --state-dir)")
	flags.IntVar(&f.SocketUID, "socket-uid", 0, "user that may read the socket, beside root")
	flags.StringVar(&f.stateDir, "state-dir", "", "what is to be put back (default: a folder in /run/fieldmesh)")
	flags.StringVar(&f.file, "config", "", "configuration that the privileged half writes; the kernel is set up "+
		"already then")
	flags.StringVar(&f.show, "show", "", "ask the daemon that runs: state, or follow for what happens")
	return c
}

func (f *routeFlags) run(c *cobra.Command) error {
	f.Log = logger()
	if f.file != "" {
		return f.runFile(c.Context())
	}
	if err := f.defaults(); err != nil {
		return err
	}
	if f.show != "" {
		return show(c.Context(), f.Socket, f.show, c.OutOrStdout())
	}
	if f.Protocol == "" {
		return fmt.Errorf("name a --protocol: %s", strings.Join(manetd.Names(), ", "))
	}
	if err := needRoot(c, nil); err != nil {
		return err
	}
	if _, err := net.InterfaceByName(f.Interface); err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // the rest names Go's own call
		}
		return fmt.Errorf("--interface %s: %w; `ip link` lists those that there are", f.Interface, err)
	}
	forward, err := manetd.Forwards(f.Protocol)
	if err != nil {
		return err
	}
	cfg := host.Config{StateDir: f.stateDir, Interfaces: []string{f.Interface}, Log: f.Log}
	return host.Hold(c.Context(), cfg, change.RouterSysctls(f.Interface, forward), func(ctx context.Context) error {
		return runDaemon(ctx, f.Config)
	})
}

// runFile runs as the privileged half's configuration says, which also has
// made the kernel a router, and undoes that.
func (f *routeFlags) runFile(ctx context.Context) error {
	text, err := os.ReadFile(f.file)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if err := json.Unmarshal(text, &f.Config); err != nil {
		return fmt.Errorf("read configuration %q: %w", f.file, err)
	}
	if f.Protocol == batman.Protocol { // the kernel routes; it is only read
		return batman.Run(ctx, f.Config)
	}
	return runDaemon(ctx, f.Config)
}

// runDaemon runs the daemon, where the kernel forwards on one processor: it
// wakes a few times a second then, and waking a second one each time to see
// whether there is more to do would be most of its cost.
func runDaemon(ctx context.Context, cfg control.Config) error {
	if forwards, err := manetd.Forwards(cfg.Protocol); err == nil && forwards {
		runtime.GOMAXPROCS(1)
	}
	return manetd.Run(ctx, cfg)
}

// defaults fills in what follows from the interface and its namespace.
func (f *routeFlags) defaults() error {
	if f.catch != "" {
		network, err := netip.ParsePrefix(f.catch)
		if err != nil {
			return fmt.Errorf("read --network: %w", err)
		}
		f.Catch = network
	}
	if f.hello != 0 {
		if f.hello < 10*time.Millisecond || f.hello > time.Minute {
			return fmt.Errorf("--hello %s is outside 10ms to 1m", f.hello)
		}
		f.Hello = &f.hello
	}
	if f.stateDir == "" {
		var st unix.Stat_t
		if err := unix.Stat("/proc/self/ns/net", &st); err != nil {
			return fmt.Errorf("find network namespace: %w", err)
		}
		// A folder of its own for each namespace: the same interface is another there.
		f.stateDir = filepath.Join("/run/fieldmesh", fmt.Sprintf("route-%d-%s", st.Ino, filepath.Base(f.Interface)))
	}
	if f.Socket == "" {
		f.Socket = filepath.Join(f.stateDir, "route.sock")
	}
	return nil
}

// show prints what a daemon says.
func show(ctx context.Context, socket, what string, w io.Writer) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("no routing daemon answers at %s; start one with `fieldmesh-agent route --protocol NAME "+
			"--interface NAME`", socket)
	}
	if err != nil {
		return fmt.Errorf("reach the routing daemon: %w; does one run on this interface?", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := fmt.Fprintln(conn, what); err != nil {
		return errors.Join(fmt.Errorf("ask the routing daemon: %w", err), conn.Close())
	}
	if _, err := io.Copy(w, conn); err != nil && ctx.Err() == nil {
		return errors.Join(fmt.Errorf("read the routing daemon's answer: %w", err), conn.Close())
	}
	return conn.Close()
}
