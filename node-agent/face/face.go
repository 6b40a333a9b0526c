// Package face is the node's unprivileged half: it joins the API, the trial
// engine, the samplers and the spool, and reaches the machine only through the
// privileged half's socket.
package face

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/attachments"
	"fieldmesh.dev/fieldmesh/node-agent/capture"
	"fieldmesh.dev/fieldmesh/node-agent/capture/ring"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/confine"
	"fieldmesh.dev/fieldmesh/node-agent/gps"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/link"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/node-agent/provenance"
	"fieldmesh.dev/fieldmesh/node-agent/radio"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/node-agent/traffic"
	"fieldmesh.dev/fieldmesh/node-agent/trial"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// connectTimeout is how long iperf3's client tries to connect at least; else as long as its flow lasts. A trial's
	// own end comes first in most plans; a client that never connects has sent 0 bytes.
	connectTimeout = 10 * time.Second
	// keepaliveEvery is how often the dead-man timer is re-armed at least.
	keepaliveEvery = 20 * time.Second
	// deadManParts is how many keepalives come in the dead man's time at least:
	// one may be late, another lost while the privileged half is started again.
	deadManParts = 4
	// newcomersEvery is how often the face looks for programs that have come.
	newcomersEvery = 5 * time.Second
)

// Face is a node's unprivileged half.
type Face struct {
	cfg    config.Config
	log    *slog.Logger
	clk    clock.Clock
	spool  *spool.Spool
	gps    *gps.Client
	radio  radioSource
	told   *radio.Told // by the app that started the agent
	host   machine
	reader *provenance.Reader
	engine *trial.Engine
	notes  notes
	stored capture.Store

	attachments *attachments.Store

	generator generator

	sources   []measure.Source // of what is sampled beside positions and sockets
	absent    []string         // what else would be
	sockets   string           // how TCP's are read
	bound     string           // the interface that trials' sockets keep to; empty: none
	unbound   wire.Problem     // why not, on a node without root
	transport func() (tcp.Machine, error)

	pin        string   // of the node's key
	keyFiles   keyFiles // as they were read
	authorized *keys.Authorized
	listed     sync.Mutex // while whom to let in is changed, here and on disk
	confined   confine.Confined

	machine *measure.Machine
	wall    *clock.Watch
	chrony  *clock.Chrony
}

// machine is what changes the machine, or says why it does not: the host process, or on a
// node without root what takes its place.
type machine interface {
	trial.Host
	Keepalive(ctx context.Context) error
	Scan(ctx context.Context, device string, channel int) error
	Packets(ctx context.Context, p host.Packets) (*ring.Reader, host.PacketFilter, error)
	TCPEvents(ctx context.Context) (*tcp.EventReader, error)
}

// radioSource reports the radio under test: a radio-feedback socket where one
// is configured, the kernel's nl80211 otherwise.
type radioSource interface {
	measure.Source
	Caps() (*wire.Caps, error)
}

// Run serves a node until ctx ends.
func Run(ctx context.Context, cfg config.Config, confined confine.Confined, log *slog.Logger) error {
	files := keyFilesIn(cfg.KeysDir)
	identity, err := keys.LoadIdentity(cfg.KeysDir)
	if errors.Is(err, keys.ErrNoIdentity) {
		sudo := "sudo "
		if cfg.Unprivileged() {
			sudo = ""
		}
		return fmt.Errorf("this node is not paired yet: there is no node.key in %q; run `%sfieldmesh-agent pair` with "+
			"the same --config", cfg.KeysDir, sudo)
	}
	if err != nil {
		return err
	}
	authorized, err := letIn(cfg, identity.Pin, log)
	if err != nil {
		return err
	}
	f, err := open(ctx, cfg, identity, log)
	if err != nil {
		return err
	}
	defer f.close()
	f.authorized, f.pin, f.keyFiles = authorized, identity.Pin, files
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen for the API on %s: %w; correct `listen` in the configuration, or stop what "+
			"listens there", cfg.Listen, err)
	}
	f.confined = confined
	f.reader.Confined(confined.Said)
	log.Info("confined", "by", strings.Join(confined.Said, "; "))
	log.Info("node is ready", "node", cfg.Node, "listen", listener.Addr().String(), "interface", cfg.Interface)
	return f.serve(ctx, api.New(identity, authorized, f, f.spool, log), listener)
}

// endsAttempt reports whether a record says that an attempt is kept.
func endsAttempt(b wire.Body) bool {
	t, ok := b.(*wire.TrialState)
	return ok && t.State == wire.StateKept
}

func open(ctx context.Context, cfg config.Config, identity keys.Identity, log *slog.Logger) (*Face, error) {
	keep, leave := cfg.QuotaKeptBytes, cfg.QuotaFreeBytes
	if keep == 0 {
		keep = -1 // none, and not the spool's default
	}
	if leave == 0 {
		leave = -1
	}
	clk, err := ownClock(cfg)
	if err != nil {
		return nil, err
	}
	boot, err := clock.BootID()
	if err != nil {
		return nil, err
	}
	sp, err := spool.Open(cfg.SpoolDir(), cfg.Node, spool.Options{QuotaBytes: cfg.QuotaBytes, KeptBytes: keep,
		MinFreeBytes: leave, Sign: identity.Sign, Last: endsAttempt, Boot: boot, Damaged: damaged(clk, log)})
	if err != nil {
		return nil, err
	}
	if cut := sp.Recovered().Cut(); cut != "" {
		log.Warn("the spool was cut", "torn", cut)
	}
	f := &Face{cfg: cfg, log: log, spool: sp, clk: clk, host: host.Dial(cfg.HostSocket()),
		stored:      capture.NewStore(filepath.Join(cfg.FaceDir(), "captures")),
		attachments: attachments.NewStore(filepath.Join(cfg.FaceDir(), "attachments"))}
	f.gps = receiver(cfg.GPSD, f.clk)
	f.machine = measure.NewMachine(cfg.SysfsDir, measure.MachineLimits{BatteryMinPercent: cfg.BatteryMinPercent,
		TemperatureMaxC: cfg.TemperatureMaxC}, sp.Status)
	f.chrony = clock.NewChrony(cfg.Binary("chronyc"))
	f.wall = clock.NewWatch(f.clk, version.Built(), f.gps.BehindBoot, f.chrony.Tracking)
	f.radio = radio.NewKernelBeside(cfg.Interface, cfg.PhyOf)
	if cfg.FeedbackSocket != "" {
		f.radio = radio.New(cfg.FeedbackSocket)
	}
	f.told = radio.NewTold(f.clk)
	f.generator.Generator = traffic.Generator{Bin: cfg.Binary("iperf3"), Folder: filepath.Join(cfg.FaceDir(),
		"traffic"), Clock: clk, Version: func() string { return f.reader.Tools()["iperf3"] }}
	if err := f.generator.Sweep(); err != nil {
		log.Warn("traffic", "error", err) // whether iperf3 can write there is looked at before every trial
	}
	f.reader = provenance.New(ctx, cfg.Interface, cfg.Binaries, nil)
	f.withoutRoot()
	if err := f.awaitHost(ctx); err != nil {
		return nil, errors.Join(err, sp.Close())
	}
	f.engine, err = trial.New(ctx, trial.Config{Node: cfg.Node, Interface: cfg.Interface, Beside: cfg.PhyOf,
		StateDir: cfg.FaceDir(), GoPort: cfg.GoPort, ControlPort: cfg.ControlPort(), Bound: f.bound}, f.deps())
	if err != nil {
		return nil, errors.Join(err, sp.Close())
	}
	return f, nil
}

// ownClock is the machine's clock, or that of a rehearsal.
func ownClock(cfg config.Config) (clock.Clock, error) {
	if cfg.ClockFile == "" {
		return clock.System{}, nil
	}
	return clock.NewSkewed(cfg.ClockFile)
}

func receiver(gpsd string, clk clock.Clock) *gps.Client {
	if gpsd == config.NoGPSD {
		return gps.NewPushed(clk)
	}
	return gps.New(gpsd, clk)
}

// awaitHost waits for the privileged half, which starts at the same time.
func (f *Face) awaitHost(ctx context.Context) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := f.host.Status(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("reach the privileged half: %w; start it: fieldmesh-agent host, or both halves by "+
				"fieldmesh-agent up", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (f *Face) deps() trial.Deps {
	return trial.Deps{
		Clock: f.clk, Wall: f.wall.Now, Host: f.host, Spool: f.spool, GPS: f.gps, Flows: &f.generator,
		Sockets: func(node string, fl []wire.Flow, addresses map[string]netip.Addr,
			traced measure.Events) (trial.Sockets, error) {
			t := measure.NewTCP(node, fl, addresses)
			if f.sockets == measure.ByDescriptors {
				t.ReachBy(f.generator.programs)
			}
			if traced != nil {
				t.Trace(traced)
			}
			return t, nil
		},
		Events:     f.events,
		Sources:    f.sources,
		Fit:        f.machine.Fit,
		Capture:    f.capture,
		Routing:    f.routing,
		Radio:      f.radio.Caps,
		Transport:  f.transport,
		Way:        f.way,
		Link:       link.Look,
		Provenance: f.provenance,
		Log:        f.log,
	}
}

// serve runs everything that goes on in the background until ctx ends. The
// API ends first, the samplers after the engine has put the node back.
func (f *Face) serve(ctx context.Context, server *api.Server, listener net.Listener) error {
	background, stop := context.WithCancel(context.Background())
	var g errgroup.Group
	g.Go(func() error { return f.gps.Run(background) })
	g.Go(func() error { f.chrony.Run(background); return nil })
	if feedback, ok := f.radio.(*radio.Client); ok {
		g.Go(func() error { return feedback.Run(background) })
	}
	front, fctx := errgroup.WithContext(ctx)
	front.Go(func() error { return server.Serve(fctx, listener) })
	front.Go(func() error { return f.engine.Run(fctx) })
	front.Go(func() error { return f.keepalive(fctx) })
	front.Go(func() error { return f.newcomers(fctx) })
	front.Go(func() error {
		return f.watchKeys(fctx, keysEvery, func() bool { _, underWay := f.engine.Attempt(); return underWay })
	})
	front.Go(func() error { f.discovery(fctx, listener.Addr()); return nil })
	err := front.Wait()
	stop()
	berr := g.Wait()
	if ctx.Err() != nil { // asked to stop: whatever the loops returned, this is the cause
		return nil
	}
	return errors.Join(err, berr)
}

// keepalive holds off the privileged half's dead-man timer while there is
// something to do here.
func (f *Face) keepalive(ctx context.Context) error {
	for pause.For(ctx, min(keepaliveEvery, f.cfg.DeadMan()/deadManParts)) == nil {
		if !f.engine.Busy() {
			continue
		}
		if err := f.host.Keepalive(ctx); err != nil && ctx.Err() == nil {
			f.log.Warn("reach the privileged half", "error", err)
		}
	}
	return nil
}

// newcomers ends the face when a program has come that it may not start, and no run
// needs the node: whoever started the face starts it again, and it may. On a phone
// iperf3 comes when its owner has unlocked it.
func (f *Face) newcomers(ctx context.Context) error {
	for pause.For(ctx, newcomersEvery) == nil {
		if path := f.confined.Newcomer(f.cfg.Binaries); path != "" && !f.engine.Busy() {
			return fmt.Errorf("%s has come, or was replaced, and may be started only by a face that begins after it",
				path)
		}
	}
	return nil
}

func (f *Face) close() {
	if err := f.spool.Close(); err != nil {
		f.log.Error("close spool", "error", err)
	}
}
