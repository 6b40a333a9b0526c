package needs

import (
	"fmt"
	"math"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// RadioNotes say in what a radio is not as a trial should have it, and yet no reason to refuse the trial.
func RadioNotes(iface string, want wire.Radio, is wire.Caps) (notes []string) {
	for _, note := range []string{powerNote(iface, want, &is), sleepNote(iface, is.PowerSave)} {
		if note != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

// sleepNote says that an interface is a station that may sleep, "" if it may not, or nobody tells. A trial is not
// refused for it: where a driver does not take the setting, the kernel may tell what the radio never does.
func sleepNote(iface string, may *bool) string {
	if may == nil || !*may {
		return ""
	}
	return fmt.Sprintf("%s is a station whose power save is on: what it receives may wait for its access point's "+
		"beacons, which is then a part of every delay and rate; turn it off (iw dev %s set power_save off), or where "+
		"the driver does not take that, use another radio", iface, iface)
}

// powerNote says that the radio of an interface reports another transmit power than the plan's, "" if it does not.
// A trial is not refused for it: some drivers report a power that is not the one they send with. A driver that knows
// none reports 0.
func powerNote(iface string, want wire.Radio, is *wire.Caps) string {
	if want.TxPowerDbm == nil || is == nil || is.TxPowerDbm == nil {
		return ""
	}
	told := is.TxPowerDbm
	if *told == 0 || math.Abs(*told-*want.TxPowerDbm) <= powerToleranceDb {
		return ""
	}
	return fmt.Sprintf("%s tells a transmit power of %g dBm, and the plan wants %g dBm, so this is no measurement at "+
		"the plan's power; plan what the radio tells, or leave tx_power_dbm out", iface, *told, *want.TxPowerDbm)
}

// powerToleranceDb is what drivers round a power by.
const powerToleranceDb = 1
