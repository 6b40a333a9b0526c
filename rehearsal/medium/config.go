package medium

import (
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"fieldmesh.dev/fieldmesh/rehearsal/medium/ht"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/propagation"
)

const (
	// defaultQueueFrames is ns-2's customary interface queue, which the
	// studies of TCP over ad hoc networks use.
	defaultQueueFrames = 50
	// defaultCarrierSenseDbm is the level at which a receiver must report a
	// busy channel when it hears the start of an OFDM frame in 20 MHz (IEEE
	// 802.11-2020, 17.3.10.6).
	defaultCarrierSenseDbm = -82.0
)

// Config is a channel and the radios on it.
type Config struct {
	Seed     uint64
	Standard string // 802.11a | 802.11b | 802.11g | 802.11n | 802.11ac
	Channel  int
	// Radio is a radio by name, or empty: an ideal receiver with noise, differential for DSSS
	// and CCK and RadioOFDM2003's for OFDM. RadioNS2WaveLAN has its own propagation;
	// RadioDisc needs a range in Propagation, and no model there.
	Radio       string
	Propagation propagation.Config
	// Shadowing, Fading and ChannelError come on top of the path loss; their
	// zero values are off. The disc has neither shadowing nor fading.
	Shadowing    propagation.ShadowingConfig
	Fading       propagation.FadingConfig
	ChannelError propagation.ChannelErrorConfig

	// RateMbps fixes the rate of unicast data. 0 leaves it to RateControl.
	RateMbps float64
	// RateControl chooses the rate of unicast data when RateMbps is 0: "minstrel"
	// (or empty) is minstrel_ht of Linux, which samples and goes by transmission success
	// alone; later tries of a frame begin with RTS. "genie_snr" takes the last-heard
	// SNR of the peer, which no card knows.
	RateControl string
	// BasicRatesMbps are the rates that every station knows, at which control and
	// broadcast frames go. Empty: the radio's, or else 1 and 2 Mbit/s of 802.11b, 6, 12 and
	// 24 of the others.
	BasicRatesMbps []float64
	// ShortRetryLimit and LongRetryLimit count the transmissions of a frame,
	// the first included; 0 means the standard's 7 and 4. Both 0 with "minstrel", but for
	// 802.11n and 802.11ac: what its retry chain has, as mac80211's cards do it.
	ShortRetryLimit, LongRetryLimit int
	// RTSThresholdBytes is dot11RTSThreshold: an MPDU longer than this is
	// preceded by RTS and CTS. 0 turns them off.
	RTSThresholdBytes int
	// QueueFrames is the room of the drop-tail interface queue, without the
	// frame that the MAC is serving. 0 means 50, and 64 of 802.11n and 802.11ac: as many as one
	// A-MPDU has, so that one can wait while another is served.
	QueueFrames int
	// ShortPreamble uses the 96 µs HR/DSSS preamble (802.11b, not at 1 Mbit/s).
	ShortPreamble bool
	// LongSlot is the slot of 20 µs at 2.4 GHz, which the standard wants in an IBSS, not that of 9 µs.
	LongSlot bool
	// CarrierSenseDbm is the power from which on a frame whose preamble is noticed keeps the
	// channel busy to its end; nil means -82 dBm, and with 802.11n and 802.11ac the format's. One that is
	// being received does so besides.
	CarrierSenseDbm *float64
	// EnergyDetectDbm is the summed power of any kind at which the channel counts as busy, at
	// least CarrierSenseDbm; nil means the standard's (Core.energyMw).
	EnergyDetectDbm *float64

	// Promiscuous delivers data frames to all who receive them, whomever they are for.
	Promiscuous bool

	// MPDUs: the nodes hand over frames of IEEE 802.11 with their rates (Transmit), not
	// Ethernet's (Enqueue). A radio of 802.11g then has the rates of 802.11b too. RateMbps,
	// RateControl, the retry limits and RTSThresholdBytes have no effect, for these are the
	// nodes' own.
	MPDUs bool

	Nodes []NodeConfig

	// Trace is called for every event on the air and at its edges, in order;
	// nil turns it off.
	Trace func(Trace)
	// FrameLost is called for every lost data frame, in order, and must not
	// call the core. nil turns it off, and with it the reading of IP headers.
	FrameLost func(FrameLoss)
}

// NodeConfig is one radio. Units differ, so everything is per node.
type NodeConfig struct {
	Name           string
	MAC            string // of the interface behind it
	TxPowerDbm     float64
	AntennaGainDbi float64
	NoiseFigureDb  float64
	HeightM        float64 // of the antenna; used by the two-ray model
	// Channel is the radio's own when it is not Config.Channel; 0 is that one.
	// Radios on different channels neither hear nor disturb each other.
	Channel int
}

// Locate says where a node is at a model time. It must be a pure function of
// its arguments, or the same seed does not give the same events.
type Locate func(node int, at time.Duration) (xM, yM float64)

// phy is what the PHY depends on.
func (cfg Config) phy() phy.Config {
	return phy.Config{Standard: cfg.Standard, Radio: cfg.Radio, Channel: cfg.Channel,
		BasicRatesMbps: cfg.BasicRatesMbps, ShortPreamble: cfg.ShortPreamble, LongSlot: cfg.LongSlot, DSSS: cfg.MPDUs,
		Narrower: cfg.minstrel()}
}

// minstrel reports whether it chooses the rates.
func (cfg Config) minstrel() bool { return cfg.RateMbps == 0 && cfg.RateControl != rateControlSNR }

// validate fills defaults in and says what cannot be.
func (cfg Config) validate() (Config, error) {
	carrierSenseDbm := defaultCarrierSenseDbm
	r, err := phy.RadioNamed(cfg.Radio, cfg.Standard)
	if err != nil {
		return cfg, err
	}
	if r.Format != nil {
		carrierSenseDbm = r.Format.CarrierSenseDbm
	}
	if cfg.QueueFrames == 0 && r.Format != nil {
		cfg.QueueFrames = ht.Window
	}
	if cfg.QueueFrames == 0 {
		cfg.QueueFrames = defaultQueueFrames
	}
	if cfg.QueueFrames < 1 {
		return cfg, fmt.Errorf("check medium: queue of %d frames: it must hold at least 1", cfg.QueueFrames)
	}
	if cfg.RTSThresholdBytes < 0 {
		return cfg, fmt.Errorf("check medium: RTS threshold %d bytes is negative", cfg.RTSThresholdBytes)
	}
	if cfg.CarrierSenseDbm == nil {
		cfg.CarrierSenseDbm = &carrierSenseDbm
	}
	if e := cfg.EnergyDetectDbm; e != nil && !(*e >= *cfg.CarrierSenseDbm) {
		return cfg, fmt.Errorf("check medium: energy is detected from %g dBm on, below carrier sense at %g dBm", *e,
			*cfg.CarrierSenseDbm)
	}
	if len(cfg.Nodes) < 2 {
		return cfg, fmt.Errorf("check medium: %d nodes: a channel needs at least 2", len(cfg.Nodes))
	}
	if cfg.ShortRetryLimit < 0 || cfg.LongRetryLimit < 0 {
		return cfg, fmt.Errorf("check medium: retry limits %d and %d: neither can be negative", cfg.ShortRetryLimit,
			cfg.LongRetryLimit)
	}
	if cfg.ShortRetryLimit == 0 {
		cfg.ShortRetryLimit = shortRetryLimit
	}
	if cfg.LongRetryLimit == 0 {
		cfg.LongRetryLimit = longRetryLimit
	}
	if cfg.Radio == phy.RadioDisc {
		if model := cfg.Propagation.Model; model != "" {
			return cfg, fmt.Errorf("check medium: radio %s with propagation %s: it has its own", phy.RadioDisc, model)
		}
		cfg.Propagation.Model = "disc"
	}
	return cfg, errors.Join(cfg.validateChannel(), cfg.validateNodes())
}

// validateChannel checks what lies between the antennas, and who picks rates.
func (cfg Config) validateChannel() error {
	disc := cfg.Propagation.Model == "disc"
	switch cfg.RateControl {
	case "", rateControlSNR, rateControlMinstrel:
	default:
		return fmt.Errorf("check medium: rate control %q: %s and %s are known", cfg.RateControl, rateControlSNR,
			rateControlMinstrel)
	}
	if disc && (cfg.Shadowing.SigmaDb != 0 || cfg.Fading.Model != "") {
		return fmt.Errorf("check medium: a disc has neither shadowing nor fading")
	}
	if cfg.MPDUs && (cfg.Standard == phy.Standard80211n || cfg.Standard == phy.Standard80211ac) {
		return fmt.Errorf("check medium: %s with the nodes' own stacks: it has its own block acknowledgements",
			cfg.Standard)
	}
	if cfg.Radio == phy.RadioNS2WaveLAN {
		if cfg.MPDUs {
			return fmt.Errorf("check medium: radio %s with the nodes' own stacks: it has its own channel access",
				cfg.Radio)
		}
		own := propagation.Config{RangeM: cfg.Propagation.RangeM}
		if cfg.Propagation != own || cfg.Shadowing.SigmaDb != 0 || cfg.Fading.Model != "" {
			return fmt.Errorf("check medium: radio %s has its own propagation, without shadowing and fading", cfg.Radio)
		}
		if least := ns2LeastReceiveMw(own.RangeM); !(own.RangeM >= 0 && least >= ns2CarrierSenseMw) {
			return fmt.Errorf("check medium: radio %s receives to %g m: it senses to 550 m, and receives no farther",
				cfg.Radio, own.RangeM)
		}
	}
	return errors.Join(cfg.Shadowing.Validate(), cfg.Fading.Validate(), cfg.ChannelError.Validate())
}

func (cfg Config) validateNodes() error {
	names, macs := map[string]bool{}, map[MAC]bool{}
	for _, n := range cfg.Nodes {
		mac, err := ParseMAC(n.MAC)
		switch {
		case n.Name == "":
			return fmt.Errorf("check medium: a node has no name")
		case names[n.Name]:
			return fmt.Errorf("check medium: node name %q is used twice", n.Name)
		case err != nil:
			return fmt.Errorf("check node %q: %w", n.Name, err)
		case macs[mac]:
			return fmt.Errorf("check node %q: address %s is used twice", n.Name, n.MAC)
		case n.NoiseFigureDb < 0:
			return fmt.Errorf("check node %q: noise figure %g dB is negative", n.Name, n.NoiseFigureDb)
		case (cfg.Propagation.Model == "two_ray_ground" || cfg.Radio == phy.RadioNS2WaveLAN) && n.HeightM <= 0:
			return fmt.Errorf("check node %q: two_ray_ground needs an antenna height above 0 m, not %g", n.Name,
				n.HeightM)
		}
		for _, v := range []float64{n.TxPowerDbm, n.AntennaGainDbi, n.NoiseFigureDb, n.HeightM} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("check node %q: a power, gain, noise figure or height is not a number", n.Name)
			}
		}
		names[n.Name], macs[mac] = true, true
	}
	return nil
}

// MAC is an EUI-48 address.
type MAC [6]byte

// ParseMAC reads a unicast address such as 02:00:00:00:00:01.
func ParseMAC(text string) (MAC, error) {
	hw, err := net.ParseMAC(text)
	if err != nil || len(hw) != 6 {
		return MAC{}, fmt.Errorf("parse MAC address %q: six bytes such as 02:00:00:00:00:01 are needed", text)
	}
	m := MAC(hw)
	if m.group() {
		return MAC{}, fmt.Errorf("parse MAC address %q: a group address names no radio", text)
	}
	return m, nil
}

// String is the address as six hexadecimal pairs.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// group tells broadcast and multicast addresses.
func (m MAC) group() bool { return m[0]&1 != 0 }

// FrequencyMHz is the centre of a standard's channel.
func FrequencyMHz(standard string, channel int) (int, error) {
	hz, err := frequencyHz(standard, channel)
	return int(hz / 1e6), err
}

// frequencyHz is the centre of a channel (IEEE 802.11-2020, 15.4.4.3 and
// 17.3.8.4.2).
func frequencyHz(standard string, channel int) (float64, error) {
	if standard == phy.Standard80211a || standard == phy.Standard80211ac ||
		standard == phy.Standard80211n && channel > 14 {
		if channel >= 34 && channel <= 177 {
			return (5000 + 5*float64(channel)) * 1e6, nil
		}
		return 0, fmt.Errorf("check medium: channel %d: %s has 34 to 177 at 5 GHz", channel, standard)
	}
	switch {
	case channel >= 1 && channel <= 13:
		return (2407 + 5*float64(channel)) * 1e6, nil
	case channel == 14 && standard == phy.Standard80211b:
		return 2484e6, nil
	}
	return 0, fmt.Errorf("check medium: channel %d: %s has 1 to 13", channel, standard)
}
