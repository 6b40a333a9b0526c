package nl80211

import (
	"net"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Station is another station as the radio knows it. What the driver does not
// tell is nil.
type Station struct {
	MAC           string
	SignalDbm     *float64 // of the last frame
	SignalAvgDbm  *float64
	TxBitrateMbps *float64
	RxBitrateMbps *float64
	TxRetries     *uint64
	TxFailed      *uint64
	InactiveMs    *float64 // since the last frame came or, by many drivers, was acknowledged
	RxBytes       *uint64  // that came: beacons' too with mac80211, but not with every driver
	RxBeacons     *uint64  // that came; of an access point only
	TxHT, RxHT    bool     // the rates are of 802.11n or later
}

// Stations lists the stations that an interface knows.
func (c *Conn) Stations(ifindex int) ([]Station, error) {
	return list(c, unix.NL80211_CMD_GET_STATION, about(ifindex), (*Station).take, "list stations", "read station")
}

func (s *Station) take(d *netlink.AttributeDecoder) {
	switch d.Type() {
	case unix.NL80211_ATTR_MAC:
		s.MAC = net.HardwareAddr(d.Bytes()).String()
	case unix.NL80211_ATTR_STA_INFO:
		nested(d, s.info)
	}
}

func (s *Station) info(d *netlink.AttributeDecoder) {
	switch d.Type() {
	case unix.NL80211_STA_INFO_SIGNAL:
		s.SignalDbm = heard(d)
	case unix.NL80211_STA_INFO_SIGNAL_AVG:
		s.SignalAvgDbm = heard(d)
	case unix.NL80211_STA_INFO_TX_RETRIES:
		s.TxRetries = new(uint64(d.Uint32()))
	case unix.NL80211_STA_INFO_TX_FAILED:
		s.TxFailed = new(uint64(d.Uint32()))
	case unix.NL80211_STA_INFO_INACTIVE_TIME:
		s.InactiveMs = new(float64(d.Uint32()))
	case unix.NL80211_STA_INFO_RX_BYTES64:
		s.RxBytes = new(d.Uint64())
	case unix.NL80211_STA_INFO_BEACON_RX:
		s.RxBeacons = new(d.Uint64())
	case unix.NL80211_STA_INFO_TX_BITRATE:
		s.TxBitrateMbps, s.TxHT = bitrate(d)
	case unix.NL80211_STA_INFO_RX_BITRATE:
		s.RxBitrateMbps, s.RxHT = bitrate(d)
	}
}

// heard reads a signal. The kernel keeps 0 for a station until it has a frame of it
// (net/mac80211/sta_info.c), and no receiver gets a whole milliwatt: 0 is absent.
func heard(d *netlink.AttributeDecoder) *float64 {
	if dbm := int8(d.Uint8()); dbm != 0 {
		return new(float64(dbm))
	}
	return nil
}

// bitrate reads a rate and whether it has an index of 802.11n or later. The
// 32-bit figure is there for rates that do not fit the older 16-bit one.
func bitrate(d *netlink.AttributeDecoder) (mbps *float64, ht bool) {
	nested(d, func(a *netlink.AttributeDecoder) {
		switch a.Type() {
		case unix.NL80211_RATE_INFO_BITRATE32:
			mbps = new(float64(a.Uint32()) / 10)
		case unix.NL80211_RATE_INFO_BITRATE:
			if mbps == nil {
				mbps = new(float64(a.Uint16()) / 10)
			}
		case unix.NL80211_RATE_INFO_MCS, unix.NL80211_RATE_INFO_VHT_MCS, unix.NL80211_RATE_INFO_HE_MCS,
			unix.NL80211_RATE_INFO_EHT_MCS:
			ht = true
		}
	})
	return mbps, ht
}

// Survey is what the radio knows of a channel. Times add up from some moment
// of the driver's own.
type Survey struct {
	MHz      int
	InUse    bool
	NoiseDbm *float64
	ActiveMs *float64
	BusyMs   *float64
}

// Surveys lists what an interface's radio knows of its channels.
func (c *Conn) Surveys(ifindex int) ([]Survey, error) {
	return list(c, unix.NL80211_CMD_GET_SURVEY, about(ifindex),
		within(unix.NL80211_ATTR_SURVEY_INFO, (*Survey).info), "survey channels", "read survey")
}

func (s *Survey) info(d *netlink.AttributeDecoder) {
	switch d.Type() {
	case unix.NL80211_SURVEY_INFO_FREQUENCY:
		s.MHz = int(d.Uint32())
	case unix.NL80211_SURVEY_INFO_IN_USE:
		s.InUse = true
	case unix.NL80211_SURVEY_INFO_NOISE:
		s.NoiseDbm = new(float64(int8(d.Uint8())))
	case unix.NL80211_SURVEY_INFO_TIME:
		s.ActiveMs = new(float64(d.Uint64()))
	case unix.NL80211_SURVEY_INFO_TIME_BUSY:
		s.BusyMs = new(float64(d.Uint64()))
	}
}
