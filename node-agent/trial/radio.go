package trial

import (
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// realDriver is what a radio that the host process can set calls itself. Any
// other is set by whoever serves the radio-feedback socket.
const realDriver = "nl80211"

func setsRadio(caps *wire.Caps) bool { return caps != nil && caps.Driver == realDriver }

// withRadio adds the joining of the trial's network, and before everything else
// makes whatever manages the radio for the machine's user leave it alone. Joining
// takes seconds, so where all trials of a run have one radio it is joined once;
// else it belongs to the trial. An interface beside the machine's own is made
// first, and so is removed last.
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

// findRadio returns the radio of a trial that needs one, set as the plan wants it
// or to be set so by the host process; nil for a trial that leaves the
// interface as it is.
func (e *Engine) findRadio(want wire.Radio) (*wire.Caps, error) {
	if !setByPlan(want) {
		return nil, e.leftAsItIs()
	}
	caps, ok := e.deps.Radio()
	key, name := "interface", e.cfg.Interface
	if e.cfg.Beside != "" {
		key, name = "phy_of", e.cfg.Beside
	}
	_, missing := net.InterfaceByName(name)
	switch {
	case !ok && missing != nil:
		return nil, fmt.Errorf("radio: the plan wants %s mode, and %s is not there; plug it in, or load its driver",
			want.Mode, name)
	case !ok:
		return nil, fmt.Errorf("radio: the plan wants %s mode, and %s is not a radio; correct `%s` in the agent's "+
			"configuration, or say `radio: {mode: none}` in the campaign", want.Mode, name, key)
	}
	if setsRadio(&caps) {
		return &caps, nil
	}
	return &caps, e.compareRadio(want, caps)
}

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
func (e *Engine) radioInForce(want wire.Radio) (*wire.Caps, error) {
	caps, err := e.findRadio(want)
	if err != nil || caps == nil {
		return nil, err
	}
	return caps, e.compareRadio(want, *caps)
}

func (e *Engine) compareRadio(want wire.Radio, is wire.Caps) error {
	// What is not reported cannot be held against the plan; the records say what was.
	for _, c := range []struct{ what, want, is string }{
		{"mode", want.ModeAt(e.cfg.Node), is.Mode}, {"standard", want.Standard, is.Standard},
		{"channel", number(want.Channel), number(is.Channel)},
		{"SSID", want.SSID, is.SSID}, {"BSSID", want.BSSID, is.BSSID},
		{"RTS threshold", whole(want.RTSThresholdBytes), whole(is.RTSThresholdBytes)},
		{"short retry limit", whole(want.RetryLimit), whole(is.ShortRetryLimit)},
		{"long retry limit", whole(want.RetryLimit), whole(is.LongRetryLimit)},
	} {
		if c.want != "" && c.is != "" && c.want != c.is {
			return fmt.Errorf("radio: the %s of %s is %s, the plan wants %s; join the network as the plan says", c.what,
				e.cfg.Interface, c.is, c.want)
		}
	}
	return nil
}

// whole is n as a word, empty where nothing is wanted or told.
func whole(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// number is n as a word, empty for 0, which stands for absent.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
