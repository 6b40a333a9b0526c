package face

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/internal/version"
	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/provenance"
	"fieldmesh.dev/fieldmesh/node-agent/standing"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Status reports what the node is, can and has, with every problem's cure.
func (f *Face) Status(ctx context.Context) (wire.NodeStatus, error) {
	up, mac := provenance.Link(f.cfg.Interface)
	run, shard := f.engine.Held()
	st := wire.NodeStatus{Node: f.cfg.Node, AtStart: true, Version: version.String(), Kernel: provenance.Kernel(),
		Arch:      runtime.GOARCH,
		Interface: f.cfg.Interface, InterfaceUp: up, MAC: mac, Tools: f.reader.Tools(),
		Congestion: provenance.Congestion(),
		Spool:      f.spool.Status(), Run: run, Shard: shard, Clock: f.Clock(), GPSRateHz: f.gps.RateHz(),
		CaptureRuns:      f.stored.Runs(),
		ControlInterface: f.cfg.ControlInterface, Problems: []wire.Problem{}}
	fix, _ := f.gps.Last() // before the first fix it tells at least whether gpsd answers
	st.GPS = &fix
	host, err := f.host.Status(ctx)
	if err != nil {
		host = wire.HostStatus{Pending: []string{}}
	}
	st.Host = host
	st.MemoryBytes = residentBytes()
	var radioErr error
	st.Radio, radioErr = f.radio.Caps()
	if now, ok := f.machine.Now(); ok {
		st.Machine = &now
	}
	st.WallClock = new(f.wall.Now())
	for _, p := range f.cfg.Allow.Prefixes {
		st.AllowedPrefixes = append(st.AllowedPrefixes, p.String())
	}
	if f.cfg.Unprivileged() {
		st.Privileges, st.Absent, st.AllowedPrefixes = f.cfg.Privileges, f.absent, nil
		st.Congestion = standing.Offered()
		st.Host.Pending = []string{} // what was found in force is nobody's change
		if errors.Is(radioErr, fs.ErrPermission) {
			radioErr = nil // it is told as absent
		}
	}
	st.Problems = f.problems(st, err, radioErr)
	return st, nil
}

// Scan has the privileged half listen on a channel: leaving the trial's own for
// that would be a hole in what is measured.
func (f *Face) Scan(ctx context.Context, channel int) error {
	if key, busy := f.engine.Attempt(); busy {
		return wire.Errorf(wire.CodeConflict, "trial %d is under way; a scan would leave its channel", key.Trial)
	}
	listens := f.cfg.Interface
	if up, _ := provenance.Link(listens); up == nil && f.cfg.PhyOf != "" {
		listens = f.cfg.PhyOf // on the same radio
	}
	var refused *change.Refused
	err := f.host.Scan(ctx, listens, channel)
	if errors.As(err, &refused) {
		return &wire.Error{Code: wire.CodeConflict, Message: refused.Reason, Cure: refused.Cure}
	}
	return err
}

func (f *Face) problems(st wire.NodeStatus, hostErr, radioErr error) []wire.Problem {
	out := []wire.Problem{}
	add := func(need, found, cure string) { out = append(out, wire.Problem{Need: need, Found: found, Cure: cure}) }
	if hostErr != nil {
		add("host", hostErr.Error(), "start the privileged half: fieldmesh-agent up, as root")
	}
	if found := f.beganOtherwise(st.Host); found != "" {
		add("host", found, "start both halves again: sudo systemctl restart fieldmesh-host fieldmesh-face, or end "+
			"fieldmesh-agent up and start it")
	}
	for i, what := range st.Host.Failed {
		if i >= len(st.Host.Failed)-st.Host.Damaged {
			add(wire.NeedJournal, "a change may be in force that it cannot put back: "+what, "do that there; until "+
				"then no run begins, and one that has begun is resumed all the same: fieldmesh run --resume RUN")
			continue
		}
		add("host", "it could not put back "+what, "see to that, then run fieldmesh-agent restore there")
	}
	if found, cure := f.interfaceProblem(st); found != "" {
		add("radio", found, cure)
	}
	switch {
	case radioErr != nil && f.cfg.FeedbackSocket != "":
		add("radio", radioErr.Error(), "start what serves it, or remove `feedback_socket` from the configuration")
	case radioErr != nil:
		add("radio", radioErr.Error(), "look again; if it stays, take the radio out and put it in, or restart the node")
	}
	if st.Tools["iperf3"] == "" {
		add("iperf3", "no iperf3 at "+f.cfg.Binary("iperf3"), "install it (apt-get install iperf3), or correct "+
			"`binaries` in the configuration")
	}
	if bin := f.cfg.Binary("iperf3"); !f.confined.Startable(bin) {
		add("iperf3", bin+" has come, or was replaced, since the agent began, which lets nothing else be started than "+
			"what was there then", "end the run, if one is on; the agent then begins again by itself, within seconds")
	}
	if found := f.generator.found(); found != "" {
		add("generator", found, "see that iperf3 runs as the agent's user, that it can write in "+f.generator.Folder+
			", and that the loopback interface is up")
	}
	if found, cure := gpsProblem(f.cfg.GPSD, st.GPS); found != "" {
		add("gps", found, cure)
	}
	if st.Machine != nil && !st.Machine.Alarm.IsZero() {
		alarm := st.Machine.Alarm
		add(string(alarm.Code), alarm.Text,
			map[wire.ReasonCode]string{"battery": "charge it or change it, or connect the mains",
				"temperature": "let it cool down: shade, air, less to do"}[alarm.Code])
	}
	if st.WallClock.Unset {
		add("wall_clock", "it shows "+time.Unix(0, st.Clock.WallNs).UTC().Format(time.DateOnly)+", which is before "+
			"this program was built", "set the clock (chrony, or date), or the receiver's time by chrony")
	}
	if err := f.spool.CheckRoom(1); err != nil {
		add("disk", err.Error(), "collect and confirm the records, or free disk space")
	}
	return out
}

// beganOtherwise says in what the privileged half began with another configuration than this one, "" for nothing.
func (f *Face) beganOtherwise(host wire.HostStatus) string {
	own := f.cfg.HostSettings()
	if len(host.Settings) != len(own) { // it does not tell, or is of another version
		return ""
	}
	for i, set := range host.Settings {
		if set != own[i] {
			return fmt.Sprintf("of agent.yaml the privileged half began with %q, what faces the network with %q", set,
				own[i])
		}
	}
	return ""
}

// gpsProblem is what keeps the node from knowing where it is, "" for nothing.
func gpsProblem(gpsd string, g *wire.GPS) (found, cure string) {
	connected := g != nil && g.Connected
	const app = "start \"Use this phone's GPS\" on the app's Node screen"
	switch {
	case !connected && gpsd == config.NoGPSD:
		return "no app tells where the node is", app + " and give the phone a view of the sky, or name gpsd's " +
			"address as `gpsd` in the configuration"
	case !connected:
		return "gpsd does not answer at " + gpsd, "start gpsd, or correct `gpsd` in the configuration"
	case g.Mode >= 2 && g.FixAgeMs != nil && *g.FixAgeMs <= 3000:
		return "", ""
	case gpsd == config.NoGPSD:
		return fmt.Sprintf("no fix (mode %d) from the app", g.Mode), "give the phone a view of the sky and wait; if " +
			"it stays so, " + app + " again"
	}
	return fmt.Sprintf("no fix (mode %d)", g.Mode), "give the receiver a view of the sky and wait"
}

// InTheWay reports what will lead packets to peers elsewhere than to the interface
// under test, where the node's own address in the mesh is to be. In a trial that is
// what a routing daemon does.
func (f *Face) InTheWay(own netip.Prefix, peers []netip.Addr) []wire.Problem {
	if _, busy := f.engine.Attempt(); busy {
		return nil
	}
	if f.cfg.Unprivileged() {
		return f.notStanding(own, peers)
	}
	for _, peer := range peers {
		if found, cure := provenance.InTheWay(f.cfg.Interface, own, peer); found != "" {
			return []wire.Problem{{Need: "route", Found: found, Cure: cure}}
		}
	}
	return nil
}

// interfaceProblem says what is wrong with the interface under test. One that
// is made beside the machine's own is not there before a run, and must not be.
func (f *Face) interfaceProblem(st wire.NodeStatus) (found, cure string) {
	name, beside := f.cfg.Interface, f.cfg.PhyOf
	if beside == "" {
		if st.InterfaceUp == nil {
			return "there is no interface " + name, "correct `interface` in the agent's configuration, or plug the " +
				"radio in"
		}
		return "", ""
	}
	made := change.Virtual{Interface: name, Beside: beside}.String()
	besideUp, _ := provenance.Link(beside)
	switch {
	case besideUp == nil:
		return fmt.Sprintf("there is no interface %s, beside which %s is to be made", beside, name),
			"correct `phy_of` in the agent's configuration, or plug the radio in"
	case st.Radio == nil:
		return fmt.Sprintf("%s, beside which %s is to be made, is not a radio", beside, name),
			"correct `phy_of` in the agent's configuration, or load the radio's driver"
	case st.InterfaceUp != nil && st.Host.Reached && !slices.Contains(st.Host.Pending, made):
		return fmt.Sprintf("there is an interface %s already, which the agent did not make", name),
			fmt.Sprintf("take it away (iw dev %s del), or name another one as `interface` in the agent's configuration",
				name)
	}
	return "", ""
}

// residentBytes is this process's resident memory; 0 when the kernel does not tell.
func residentBytes() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}

// Clock reads the node's clocks.
func (f *Face) Clock() wire.ClockReply {
	return wire.ClockReply{BootNs: f.clk.BootNs(), WallNs: f.clk.Wall().UnixNano()}
}

// Lease passes a lease on under the name that the peer's key is pinned for.
func (f *Face) Lease(ctx context.Context, p api.Peer, l wire.Lease) (wire.Lease, error) {
	return f.engine.Lease(ctx, p.Name, l)
}

// View passes a question for the run's standing on.
func (f *Face) View(ctx context.Context, run string, known uint64) (wire.CampaignView, error) {
	return f.engine.View(ctx, run, known)
}

// Arm passes an order to arm on.
func (f *Face) Arm(ctx context.Context, p api.Peer, run string, k wire.TrialKey) (wire.CampaignView, error) {
	return f.engine.Arm(ctx, p.Name, run, k)
}

// Abort passes an order to abort on.
func (f *Face) Abort(ctx context.Context, run string, r wire.AbortRequest) (wire.CampaignView, error) {
	return f.engine.Abort(ctx, run, r)
}

// End passes the run's end on.
func (f *Face) End(ctx context.Context, p api.Peer, run string) (wire.RestoreReport, error) {
	return f.engine.End(ctx, p.Name, run)
}

// Forget passes on that nobody collects what was recorded of a run. Its captures, photos and recordings go too, and
// photos of no run when no run is left whose controller would collect them beside its own.
func (f *Face) Forget(run string, drop func() error) error {
	if err := f.engine.Forget(run, drop); err != nil {
		return err
	}
	err := errors.Join(f.stored.Forget(run), f.attachments.Forget(run))
	if !f.engine.Busy() && len(f.spool.Status().UnconfirmedRuns) == 0 {
		err = errors.Join(err, f.attachments.Forget(""))
	}
	return err
}

// Restore puts the machine back.
func (f *Face) Restore(ctx context.Context) (wire.RestoreReport, error) {
	return f.engine.Restore(ctx)
}
