package needs

import (
	"fmt"
	"math"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// PowerNote says that the radio of an interface reports another transmit power than the plan's, "" if it does not.
// A trial is not refused for it: some drivers report a power that is not the one they send with. A driver that knows
// none reports 0.
func PowerNote(iface string, want wire.Radio, is *wire.Caps) string {
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
