package host

import (
	"errors"
	"fmt"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/node-agent/host/wireless"
	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// scan has a radio listen on a channel, and leaves it as it is otherwise. What
// was heard anybody may read from the kernel.
func scan(p change.Policy, call scanCall) (err error) {
	refuse := func(reason, cure string) error {
		return &change.Refused{Change: fmt.Sprintf("scan of channel %d by %s", call.Channel, call.Interface),
			Reason: reason, Cure: cure}
	}
	// Before a run the machine's own interface listens for the one that is to be made beside it.
	if reason, cure := p.CheckInterface(call.Interface); reason != "" &&
		(p.Beside == "" || call.Interface != p.Beside) {
		return refuse(reason, cure)
	}
	mhz := nl80211.Frequency(call.Channel)
	if mhz == 0 {
		return refuse(fmt.Sprintf("channel %d is none of 2.4 and 5 GHz", call.Channel), "")
	}
	d, err := wireless.Open(call.Interface)
	if wireless.NoRadio(err) {
		return refuse(call.Interface+" is not a radio: "+err.Error(), "correct `interface` in agent.yaml, or load "+
			"the radio's driver")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Conn.Close()) }()
	if f := d.Phy.At(mhz); f == nil || f.Disabled {
		return refuse(fmt.Sprintf("%s has no channel %d, or may not use it here", call.Interface, call.Channel),
			"choose another channel, or tell the radio in which country it is (iw reg set XX)")
	}
	if err := d.Scan(mhz); err != nil {
		return refuse(err.Error(), fmt.Sprintf("a radio listens only while it is up: ip link set %s up",
			call.Interface))
	}
	return nil
}
