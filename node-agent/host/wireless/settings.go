package wireless

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/node-agent/nl80211"
)

// Settings say how a radio's interface is to be set.
type Settings struct {
	Interface string `json:"interface"`
	Mode      string `json:"mode"`     // adhoc | mesh | ap | managed, which is a station
	Standard  string `json:"standard"` // 802.11a | 802.11b | 802.11g
	Channel   int    `json:"channel"`
	SSID      string `json:"ssid"`
	// adhoc; absent: the cell that is heard, or a new one
	BSSID             string   `json:"bssid,omitempty"`
	RateMbps          *float64 `json:"rate_mbps,omitempty"`           // fixed; absent: the driver's rate control
	TxPowerDbm        *float64 `json:"tx_power_dbm,omitempty"`        // absent: as the driver has it
	RTSThresholdBytes *int     `json:"rts_threshold_bytes,omitempty"` // absent: as the driver has it
	// of frames shorter than the RTS threshold, and of longer ones
	RetryLimit *int `json:"retry_limit,omitempty"`
	// Keep is where the interface's addresses stay. All others of IPv4 that it has belong
	// to a network that it leaves: they are taken off, lest they be sent from.
	Keep netip.Prefix `json:"keep"`
}

// rates are those of a standard, and those of them that every station of a
// cell must have (IEEE 802.11-2020, 17.2.3.3, 16.2.3.3 and 18.1.2).
var (
	ratesDSSS = []float64{1, 2, 5.5, 11}
	ratesOFDM = []float64{6, 9, 12, 18, 24, 36, 48, 54}
	rates     = map[string]struct{ all, basic []float64 }{
		"802.11a": {ratesOFDM, []float64{6, 12, 24}},
		"802.11b": {ratesDSSS, ratesDSSS},
		"802.11g": {slices.Concat(ratesDSSS, ratesOFDM), ratesDSSS},
	}
)

// Network is what is joined. A fixed rate is a basic one: a driver takes none
// that the cell's stations need not have.
func (r Settings) Network() nl80211.Network {
	n := nl80211.Network{Mode: r.Mode, SSID: r.SSID, BSSID: strings.ToLower(r.BSSID), MHz: nl80211.Frequency(r.Channel),
		Width: nl80211.WidthNoHT, BasicMbps: rates[r.Standard].basic}
	if r.RateMbps != nil {
		n.McastMbps = *r.RateMbps
		if !slices.Contains(n.BasicMbps, *r.RateMbps) {
			n.BasicMbps = append(slices.Clone(n.BasicMbps), *r.RateMbps)
		}
	}
	return n
}

// allowed are the rates that the driver may use.
func (r Settings) allowed() []float64 {
	if r.RateMbps != nil {
		return []float64{*r.RateMbps}
	}
	return rates[r.Standard].all
}

// Modes are those that an interface may be set to.
func Modes() []string { return []string{"adhoc", "mesh", ModeAP, ModeStation} }

// The strongest transmitter that 802.11 knows of in these bands is 1 W; more
// than that is a mistake in a plan.
const (
	txPowerMaxDbm  = 30
	rtsMaxBytes    = 2347 // dot11RTSThreshold (IEEE 802.11-2020, annex C)
	retryLimitsMax = 255
)

// Fault is what no radio can be set to; no reason: it is well.
func (r Settings) Fault() (reason, cure string) {
	standard, known := rates[r.Standard]
	switch {
	case !slices.Contains(Modes(), r.Mode):
		return fmt.Sprintf("mode %q is none of %s", r.Mode, strings.Join(Modes(), ", ")), ""
	case !known:
		return fmt.Sprintf("standard %q is none of 802.11a, 802.11b and 802.11g, to whose rates the agent sets radios",
			r.Standard), "plan one of these; 802.11n and 802.11ac are for rehearsals only"
	case len(r.SSID) < 1 || len(r.SSID) > 32:
		return fmt.Sprintf("an SSID of %d bytes; 1 to 32 are allowed", len(r.SSID)), ""
	case nl80211.Frequency(r.Channel) == 0 || (r.Channel > 14) != (r.Standard == "802.11a"):
		return fmt.Sprintf("channel %d is none of %s", r.Channel, r.Standard), ""
	case r.RateMbps != nil && !slices.Contains(standard.all, *r.RateMbps):
		return fmt.Sprintf("%g Mbit/s is not a rate of %s", *r.RateMbps, r.Standard), ""
	case r.TxPowerDbm != nil && !(*r.TxPowerDbm >= 0 && *r.TxPowerDbm <= txPowerMaxDbm):
		return fmt.Sprintf("transmit power %g dBm is outside 0 to %d dBm", *r.TxPowerDbm, txPowerMaxDbm), ""
	case r.RTSThresholdBytes != nil && (*r.RTSThresholdBytes < 0 || *r.RTSThresholdBytes > rtsMaxBytes):
		return fmt.Sprintf("RTS threshold %d is outside 0 to %d bytes", *r.RTSThresholdBytes, rtsMaxBytes), ""
	case r.RetryLimit != nil && (*r.RetryLimit < 1 || *r.RetryLimit > retryLimitsMax):
		return fmt.Sprintf("retry limit %d is outside 1 to %d", *r.RetryLimit, retryLimitsMax), ""
	}
	return checkBSSID(r)
}

// checkBSSID takes an individual address (IEEE 802.11-2020, 9.2.4.3.4).
func checkBSSID(r Settings) (reason, cure string) {
	if r.BSSID == "" {
		return "", ""
	}
	mac, err := net.ParseMAC(r.BSSID)
	switch {
	case r.Mode == "mesh":
		return "a mesh has no BSSID", "leave it out"
	case r.Mode == ModeAP:
		return "an access point's BSSID is its own address", "leave it out"
	case err != nil || len(mac) != 6:
		return fmt.Sprintf("%q is not a BSSID", r.BSSID), "write it as 02:11:22:33:44:55"
	case mac[0]&1 != 0:
		return fmt.Sprintf("BSSID %s is the address of a group", r.BSSID), "begin it with 02"
	}
	return "", ""
}

// Modes of a radio in an infrastructure, as the kernel names them.
const (
	ModeAP      = "ap"
	ModeStation = "managed"
)
