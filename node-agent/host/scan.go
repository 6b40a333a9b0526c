package host

import (
	"context"
	"errors"
	"fmt"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// scan has a radio listen on a channel, and leaves it as it is otherwise. What
// was heard anybody may read from the kernel.
func scan(p policy, call scanCall) (err error) {
	refuse := func(reason, cure string) error {
		return &Refused{Change: fmt.Sprintf("scan of channel %d by %s", call.Channel, call.Interface), Reason: reason,
			Cure: cure}
	}
	// Before a run the machine's own interface listens for the one that is to be made beside it.
	if reason, cure := p.checkInterface(call.Interface); reason != "" &&
		(p.beside == "" || call.Interface != p.beside) {
		return refuse(reason, cure)
	}
	mhz := nl80211.Frequency(call.Channel)
	if mhz == 0 {
		return refuse(fmt.Sprintf("channel %d is none of 2.4 and 5 GHz", call.Channel), "")
	}
	d, err := openRadio(call.Interface)
	if errors.Is(err, nl80211.ErrNone) || errors.Is(err, errNoRadio) {
		return refuse(call.Interface+" is not a radio: "+err.Error(), "correct `interface` in agent.yaml, or load "+
			"the radio's driver")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.conn.Close()) }()
	if f := d.phy.At(mhz); f == nil || f.Disabled {
		return refuse(fmt.Sprintf("%s has no channel %d, or may not use it here", call.Interface, call.Channel),
			"choose another channel, or tell the radio in which country it is (iw reg set XX)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), scanTime)
	defer cancel()
	if err := nl80211.Scan(ctx, d.iface.Index, mhz); err != nil {
		return refuse(err.Error(), fmt.Sprintf("a radio listens only while it is up: ip link set %s up",
			call.Interface))
	}
	return nil
}
