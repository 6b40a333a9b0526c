package trial

import (
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"

	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// realDriver is what a radio that the host process can set calls itself. Any
// other is set by whoever serves the radio-feedback socket.
const realDriver = "nl80211"

func setsRadio(caps *wire.Caps) bool { return caps != nil && caps.Driver == realDriver }

// withRadio adds the joining of the trial's network, and before everything else
// has those that manage the radio for the machine's user leave it alone. Joining takes seconds, so
// where all trials of a run have one radio it is joined once; else it belongs
// to the trial.
func withRadio(plan wire.RunPlan, t wire.Trial, node, iface string, run, trial []host.Change) (withRun, withTrial []host.Change) {
	r := t.Radio
	run = slices.Insert(run, 0, host.Change{Aside: &host.Aside{Interface: iface}})
	c := host.Change{Radio: &host.Radio{Interface: iface, Mode: r.ModeAt(node), Standard: r.Standard, Channel: r.Channel, SSID: r.SSID, BSSID: r.BSSID,
		RateMbps: r.RateMbps, TxPowerDbm: r.TxPowerDbm, RTSThresholdBytes: r.RTSThresholdBytes, RetryLimit: r.RetryLimit}}
	for _, made := range run {
		if made.Address != nil {
			c.Radio.Keep = made.Address.Prefix.Masked()
		}
	}
	for _, other := range plan.Trials {
		if !reflect.DeepEqual(other.Radio, r) {
			return run, slices.Insert(trial, 0, c)
		}
	}
	// After IPv6 is off, so that it says nothing in the new network.
	return slices.Insert(run, 2, c), trial
}

// findRadio gives the radio of a trial that needs one, set as the plan wants it
// or to be set so by the host process; nil for a trial that leaves the
// interface as it is.
func (e *Engine) findRadio(want wire.Radio) (*wire.Caps, error) {
	if want.Mode == "none" || want.Mode == "" {
		return nil, nil
	}
	caps, ok := e.deps.Radio()
	if _, err := net.InterfaceByName(e.cfg.Interface); !ok && err != nil {
		return nil, fmt.Errorf("radio: the plan wants %s mode, and %s is not there; plug it in, or load its driver", want.Mode, e.cfg.Interface)
	}
	if !ok {
		return nil, fmt.Errorf("radio: the plan wants %s mode, and %s is no radio; correct `interface` in the agent's configuration, or say `radio: {mode: none}` in the campaign", want.Mode, e.cfg.Interface)
	}
	if setsRadio(&caps) {
		return &caps, nil
	}
	return &caps, e.compareRadio(want, caps)
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
	// What nothing tells cannot be held against the plan; the records say what was told.
	for _, c := range []struct{ what, want, is string }{
		{"mode", want.ModeAt(e.cfg.Node), is.Mode}, {"standard", want.Standard, is.Standard}, {"channel", number(want.Channel), number(is.Channel)},
		{"SSID", want.SSID, is.SSID}, {"BSSID", want.BSSID, is.BSSID},
		{"RTS threshold", whole(want.RTSThresholdBytes), whole(is.RTSThresholdBytes)},
		{"short retry limit", whole(want.RetryLimit), whole(is.ShortRetryLimit)}, {"long retry limit", whole(want.RetryLimit), whole(is.LongRetryLimit)},
	} {
		if c.want != "" && c.is != "" && c.want != c.is {
			return fmt.Errorf("radio: the %s of %s is %s, the plan wants %s; join the network as the plan says", c.what, e.cfg.Interface, c.is, c.want)
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
