package trial

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/trial/needs"
	"fieldmesh.dev/fieldmesh/node-agent/trial/presence"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// realDriver is what a radio that the host process can set calls itself. Any
// other is set by whoever serves the radio-feedback socket.
const realDriver = "nl80211"

func setsRadio(caps *wire.Caps) bool { return caps != nil && caps.Driver == realDriver }

// isReal reports whether a radio is one of hardware, set by the host process or by
// Android: what is in force on it is recorded, and it may be taken away.
func isReal(caps *wire.Caps) bool {
	return setsRadio(caps) || caps != nil && caps.Driver == wire.AndroidDriver
}

// withRadio adds the joining of the trial's network, and before everything else makes whatever manages the radio for
// the machine's user leave it alone. Joining takes seconds, so where all trials of a run have one radio it is joined
// once; else it belongs to the trial. An interface beside the machine's own is made first, and so is removed last.
func withRadio(plan wire.RunPlan, t wire.Trial, cfg Config,
	run, trial []change.Change) (withRun, withTrial []change.Change) {
	r, node, iface := t.Radio, cfg.Node, cfg.Interface
	first := []change.Change{change.Aside{Interface: iface}}
	if cfg.Beside != "" {
		first = slices.Insert(first, 0, change.Change(virtual(plan, cfg)))
	}
	run = slices.Concat(first, run)
	c := change.Radio{Interface: iface, Mode: r.ModeAt(node), Standard: r.Standard, Channel: r.Channel, SSID: r.SSID,
		BSSID: r.BSSID, RateMbps: r.RateMbps, TxPowerDbm: r.TxPowerDbm, RTSThresholdBytes: r.RTSThresholdBytes,
		RetryLimit: r.RetryLimit}
	for _, made := range run {
		if own, is := made.(change.Address); is {
			c.Keep = own.Prefix.Masked()
		}
	}
	for _, other := range plan.Trials {
		if !reflect.DeepEqual(other.Radio, r) {
			return run, slices.Insert(trial, 0, change.Change(c))
		}
	}
	// After IPv6 is off, so that it says nothing in the new network.
	return slices.Insert(run, len(first)+1, change.Change(c)), trial
}

// withHotspot adds, before everything else, the hotspot that Android keeps or joins for
// the run. The interface is there, up and with IPv6 as Android has them: it brings
// them about itself, and would leave a network in which they are not.
func withHotspot(plan wire.RunPlan, t wire.Trial, cfg Config, run []change.Change) []change.Change {
	c := change.Hotspot{Interface: cfg.Interface, AccessPoint: cfg.Node == t.Radio.AccessPoint, SSID: t.Radio.SSID,
		Channel: t.Radio.Channel, Passphrase: passphrase(plan)}
	out := []change.Change{nil}
	for _, made := range run {
		switch made := made.(type) {
		case change.Sysctl, change.Link:
			continue
		case change.Address:
			c.Network = made.Prefix.Masked()
		}
		out = append(out, made)
	}
	out[0] = c
	return out
}

// passphrase is the hotspot's, which nobody has to type: every node makes it of the
// run's key, which is secret, and from which nothing else is made in this way.
func passphrase(plan wire.RunPlan) string {
	mac := hmac.New(sha256.New, plan.Key)
	_, _ = mac.Write([]byte("passphrase of the hotspot")) // it never fails
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// virtual makes the interface under test as the node's first network needs it.
// It is the run's, so all trials ask for the same.
func virtual(plan wire.RunPlan, cfg Config) change.Virtual {
	v := change.Virtual{Interface: cfg.Interface, Beside: cfg.Beside}
	for _, t := range plan.Trials {
		if setByPlan(t.Radio) && slices.Contains(t.Nodes(), cfg.Node) {
			v.Mode, v.Channel = t.Radio.ModeAt(cfg.Node), t.Radio.Channel
			break
		}
	}
	return v
}

// setByPlan is false for a plan that leaves the radio as it is.
func setByPlan(r wire.Radio) bool { return r.Mode != "none" && r.Mode != "" }

// findRadio returns the radio of a trial that needs one, set as the plan wants it or to be set so by the host process;
// nil for a trial that leaves the interface as it is.
func (e *Engine) findRadio(ctx context.Context, want wire.Radio) (*wire.Caps, error) {
	if !setByPlan(want) {
		return nil, e.leftAsItIs()
	}
	if want.Mode == wire.ModeHotspot { // what Android can do, the host process knows
		return nil, nil
	}
	caps, err := e.readRadio(ctx)
	key, name := "interface", e.cfg.Interface
	if e.cfg.Beside != "" {
		key, name = "phy_of", e.cfg.Beside
	}
	_, missing := net.InterfaceByName(name)
	switch {
	case caps == nil && missing != nil:
		return nil, fmt.Errorf("radio: the plan wants %s mode, and %s is not there; plug it in, or load its driver",
			want.Mode, name)
	case err != nil:
		return nil, fmt.Errorf("radio: the plan wants %s mode, and it cannot be seen what %s is set to: %w",
			want.Mode, name, err)
	case caps == nil:
		return nil, fmt.Errorf("radio: the plan wants %s mode, and %s is not a radio; correct `%s` in the agent's "+
			"configuration, or say `radio: {mode: none}` in the campaign", want.Mode, name, key)
	}
	if setsRadio(caps) {
		return caps, nil
	}
	return caps, e.compareRadio(want, *caps)
}

// readRadio asks again for a while where the radio could not be read: a kernel that is
// busy, or a socket that has just been lost, answers soon.
func (e *Engine) readRadio(ctx context.Context) (*wire.Caps, error) {
	end := time.Now().Add(radioAnswers)
	for {
		caps, err := e.deps.Radio()
		if err == nil || !time.Now().Before(end) {
			return caps, err
		}
		if ended := pause.For(ctx, radioAsked); ended != nil {
			return nil, errors.Join(err, ended)
		}
	}
}

// radioAnswers bounds how long a radio that cannot be read is asked again, each
// radioAsked: longer than a lost feedback socket takes to be found again.
const (
	radioAnswers = 5 * time.Second
	radioAsked   = 100 * time.Millisecond
)

// leftAsItIs refuses a trial that leaves the interface as it is where there is
// none: beside another it is made for a network that the plan names.
func (e *Engine) leftAsItIs() error {
	if e.cfg.Beside == "" {
		return nil
	}
	if _, err := net.InterfaceByName(e.cfg.Interface); err != nil {
		return fmt.Errorf("radio: the plan leaves %s as it is, and it is there only while a plan sets its radio; say "+
			"in the campaign which network it joins (`radio`), or name %s as `interface` in the agent's "+
			"configuration, without `phy_of`", e.cfg.Interface, e.cfg.Beside)
	}
	return nil
}

// radioInForce is the radio after the changes were made; it refuses a trial
// whose radio this node does not have in force.
func (e *Engine) radioInForce(ctx context.Context, want wire.Radio) (*wire.Caps, error) {
	caps, err := e.findRadio(ctx, want)
	if want.Mode == wire.ModeHotspot {
		caps, err = e.hotspotInForce(ctx, want)
	}
	if err != nil || caps == nil {
		return nil, err
	}
	return caps, e.compareRadio(want, *caps)
}

// hotspotInForce is the network as Android tells it, with what the kernel adds.
func (e *Engine) hotspotInForce(ctx context.Context, want wire.Radio) (*wire.Caps, error) {
	caps, err := e.deps.Host.WiFi(ctx, host.WiFi{Interface: e.cfg.Interface,
		AccessPoint: want.AccessPoint == e.cfg.Node})
	if err != nil {
		return nil, err
	}
	if err := e.compareRadio(want, caps); err != nil {
		return nil, err
	}
	if i, err := net.InterfaceByName(e.cfg.Interface); err == nil {
		caps.MAC = i.HardwareAddr.String()
	}
	if kernel, err := e.deps.Radio(); err == nil && setsRadio(kernel) {
		caps.TxPowerDbm, caps.PowerSave = kernel.TxPowerDbm, kernel.PowerSave
		caps.Width, caps.Country, caps.BasicRatesMbps = kernel.Width, kernel.Country, kernel.BasicRatesMbps
		caps.RTSThresholdBytes, caps.ShortRetryLimit, caps.LongRetryLimit = kernel.RTSThresholdBytes,
			kernel.ShortRetryLimit, kernel.LongRetryLimit
		if err := e.compareRadio(want, *kernel); err != nil {
			return nil, err
		}
	}
	return &caps, nil
}

// watchPresence watches a radio that the attempt has set, and one that somebody has put into a
// cell or a mesh: nothing but this machine takes it away, or out of there.
func (a *attempt) watchPresence(radio *wire.Caps) (err error) {
	e := a.engine
	if !isReal(radio) || !setByPlan(a.trial.Radio) &&
		(radio.Channel == 0 || radio.Mode != "adhoc" && radio.Mode != "mesh") {
		return nil
	}
	a.presence, err = presence.Find(e.cfg.Interface, func(err error) { a.cancel(fault{wire.ReasonRadioGone, err}) })
	if self, ok := e.planNode(e.cfg.Node); err == nil && ok && setsRadio(radio) && e.deps.Link != nil {
		own, _ := netip.ParsePrefix(self.MeshPrefix)
		a.presence.Hold(own.Addr(), e.deps.Link, radio, e.deps.Radio)
	}
	return err
}

// checkRadio looks at the radio for the last time once the window has closed.
func (a *attempt) checkRadio() error {
	if a.trial.Radio.Mode == wire.ModeHotspot {
		return a.checkHotspot()
	}
	if a.presence == nil {
		return nil
	}
	err := a.presence.Check(a.ctx)
	if cause := context.Cause(a.ctx); err == nil || cause != nil {
		return cause
	}
	return fault{wire.ReasonRadioGone, err}
}

// checkHotspot fails an attempt after whose window Android keeps the hotspot no more,
// or has its station in another network: what was measured then is Android's choice.
// A station in no network is out of reach, and what got through is the result.
func (a *attempt) checkHotspot() error {
	ctx, cancel := context.WithTimeout(a.ctx, hotspotTime)
	defer cancel()
	want, own := a.trial.Radio, a.engine.cfg.Node
	is, err := a.engine.deps.Host.WiFi(ctx, host.WiFi{Interface: a.engine.cfg.Interface,
		AccessPoint: want.AccessPoint == own})
	if cause := context.Cause(a.ctx); cause != nil {
		return cause // the question was broken off, and says nothing about the network
	}
	var none *change.Refused
	if errors.As(err, &none) && want.AccessPoint != own {
		return nil
	}
	if err == nil && is.SSID != want.SSID {
		err = fmt.Errorf("%s is in network %q now, not in %q; have Android forget that network, or not join it by "+
			"itself", a.engine.cfg.Interface, is.SSID, want.SSID)
	}
	if err == nil {
		err = a.engine.compareRadio(want, is)
	}
	if err != nil {
		return fault{wire.ReasonRadioGone, err}
	}
	return nil
}

// hotspotTime bounds a question about Android's Wi-Fi.
const hotspotTime = 15 * time.Second

func (e *Engine) compareRadio(want wire.Radio, is wire.Caps) error {
	return needs.CompareRadio(e.cfg.Interface, e.cfg.Node, want, is)
}
