package needs

import (
	"fmt"
	"math"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// PowerNote says that the radio of an interface tells another transmit power than the plan's, "" for none.
// That is no reason to refuse: some drivers tell a power that they do not send with. One
// that knows none tells 0.
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
