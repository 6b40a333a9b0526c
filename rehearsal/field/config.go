package field

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"fieldmesh.dev/fieldmesh/internal/earth"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/rehearsal/field/ledger"
	"fieldmesh.dev/fieldmesh/rehearsal/medium"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// Config is all that a field needs to be created. The client writes it to
// Dir/field.json and the owner process reads it there.
type Config struct {
	// Dir holds what the field writes: fleet.yaml, and per node a folder
	// nodes/NAME with agent.yaml, keys, state and logs. Absolute; every folder
	// above it must be open (o+x) to FaceUser. A second field in the same
	// folder takes up the nodes' keys and state of the first.
	Dir   string `json:"dir"`
	Nodes []Node `json:"nodes"`
	// Agent is the absolute path of fieldmesh-agent. AgentCommand stands in
	// for it in tests: run as it is, and not waited for.
	Agent        string   `json:"agent,omitempty"`
	AgentCommand []string `json:"agent_command,omitempty"`
	// Authorized are the peers that the nodes let in: the controller.
	Authorized []keys.Peer `json:"authorized"`
	// ControllerKeys is the folder of the controller's identity, named in
	// fleet.yaml; default Dir itself.
	ControllerKeys string `json:"controller_keys,omitempty"`
	FaceUser       string `json:"face_user,omitempty"` // default nobody
	Run            string `json:"run,omitempty"`       // name of the run, for the records
	Seed           uint64 `json:"seed"`
	QuotaBytes     int64  `json:"quota_bytes,omitempty"` // of a node's spool; default 1 GiB
	// MAC80211: the nodes' radios are the kernel's own (mac80211_hwsim) in the place of
	// interfaces of Ethernet, and their agents join by nl80211.
	MAC80211 bool `json:"mac80211,omitempty"`
	// VirtualTime: the clock stands still while anything runs, so that no processor's
	// sleep and no collection of garbage makes the radio late.
	VirtualTime bool     `json:"virtual_time,omitempty"`
	Field       Settings `json:"field"`
	RunDir      string   `json:"run_dir,omitempty"` // default DefaultRunDir
	// FilesDir is the folder that Field.Mobility's files are below: the
	// campaign file's.
	FilesDir string `json:"files_dir,omitempty"`
}

// Node is one node of the field.
type Node struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"` // which hardware carries it
	// Bare is a node that takes part in no trial: it has no agent, no GPS
	// receiver and no control link. The field gives it MeshAddress (with the
	// prefix length) and lets it forward.
	Bare        bool   `json:"bare,omitempty"`
	MeshAddress string `json:"mesh_address,omitempty"`
}

// Settings is a campaign's `field:` section: what a rehearsal assumes of
// the road. Every key is optional.
type Settings struct {
	// Radio is one of medium's radios by name, or empty.
	Radio string `json:"radio,omitempty"`
	// Propagation is two_ray_ground, log_distance, free_space or disc. The default,
	// two_ray_ground, has no exponent to choose: over flat open ground the
	// loss follows from the antennas' heights (Rappaport, Wireless
	// Communications, 2nd ed., section 4.6).
	Propagation string `json:"propagation,omitempty"`
	// PathLossExponent is for log_distance. Default 2.7, the lower end of
	// Rappaport's range for streets (table 4.2); between cars on open roads
	// 1.6 to 1.8 was measured (Karedal et al., "Path loss modeling for
	// vehicle-to-vehicle communications", IEEE Trans. Veh. Technol. 60(1), 2011).
	PathLossExponent float64 `json:"path_loss_exponent,omitempty"`
	ReferenceM       float64 `json:"reference_m,omitempty"` // of log_distance; default 1
	// RangeM and CarrierSenseM are disc's radii of reception and of carrier
	// sense and interference; the second defaults to 2.2 times the first.
	// phy.RadioNS2WaveLAN has the first, too: 250 m by default.
	RangeM        float64           `json:"range_m,omitempty"`
	CarrierSenseM float64           `json:"carrier_sense_m,omitempty"`
	Shadowing     *ShadowingConfig  `json:"shadowing,omitempty"`
	Fading        *FadingConfig     `json:"fading,omitempty"`
	ChannelError  *ChannelErrConfig `json:"channel_error,omitempty"`
	// AntennaHeightM is above the road; default 1.5, a car's roof or a table
	// (3GPP TR 36.885, A.1.4: vehicle antennas at 1.5 m).
	AntennaHeightM float64 `json:"antenna_height_m,omitempty"`
	AntennaGainDbi float64 `json:"antenna_gain_dbi,omitempty"` // default 0
	NoiseFigureDb  float64 `json:"noise_figure_db,omitempty"`
	// TxPowerDbm is for trials that do not say; it and NoiseFigureDb have the defaults of the
	// radio.
	TxPowerDbm *float64 `json:"tx_power_dbm,omitempty"`
	// UnitPowerOffsetDb makes hardware units differ: dB added to a unit's power.
	UnitPowerOffsetDb map[string]float64 `json:"unit_power_offset_db,omitempty"`
	// to its antenna's gain
	UnitGainOffsetDb map[string]float64 `json:"unit_gain_offset_db,omitempty"`
	// to its noise figure
	UnitNoiseOffsetDb map[string]float64 `json:"unit_noise_offset_db,omitempty"`
	// minstrel (default) or genie_snr
	RateControl string `json:"rate_control,omitempty"`
	// default 1 and 2 of 802.11b, 6, 12 and 24 of the others
	BasicRatesMbps []float64 `json:"basic_rates_mbps,omitempty"`
	// default -82
	CarrierSenseDbm *float64 `json:"carrier_sense_dbm,omitempty"`
	// default the standard's
	EnergyDetectDbm *float64 `json:"energy_detect_dbm,omitempty"`
	// default 7, with minstrel its retry chain's
	ShortRetryLimit int `json:"short_retry_limit,omitempty"`
	// default 4, with minstrel its retry chain's
	LongRetryLimit int  `json:"long_retry_limit,omitempty"`
	ShortPreamble  bool `json:"short_preamble,omitempty"`
	// default the network's
	LongSlot *bool `json:"long_slot,omitempty"`
	// default: no RTS
	RTSThresholdBytes int `json:"rts_threshold_bytes,omitempty"`
	// default 50, ns-2's
	QueueFrames int `json:"queue_frames,omitempty"`
	// FrameLost tells every lost frame on the nodes' feedback sockets too. It is
	// in the records anyway; a TCP that lives on it asks for it here.
	FrameLost bool    `json:"frame_lost,omitempty"`
	NMEAHz    float64 `json:"nmea_hz,omitempty"` // 1, 5 or 10; default 10
	// SpacingM is how far apart nodes stand that no course places: the k-th of
	// them k × SpacingM along the road from the roadside node. Default 20.
	SpacingM float64 `json:"spacing_m,omitempty"`
	// Site is where the roadside node is when the course does not say. The
	// default, 50° N 8° E, is nowhere in particular, but away from the equator
	// and the meridian, where a lost sign would not show.
	SiteLatDeg *float64 `json:"site_lat_deg,omitempty"`
	SiteLonDeg *float64 `json:"site_lon_deg,omitempty"`
	// Mobility places the nodes that no course does; absent: see SpacingM.
	Mobility *MobilityConfig `json:"mobility,omitempty"`
	// ChannelDraws is DrawsPerRepetition (default) or DrawsPerCampaign.
	ChannelDraws string `json:"channel_draws,omitempty"`
	// Channels are nodes' own, where they are not the trial's.
	Channels map[string]int `json:"channels,omitempty"`
}

// ShadowingConfig is log-normal shadowing, correlated over distance.
type ShadowingConfig struct {
	SigmaDb        float64 `json:"sigma_db"`
	DecorrelationM float64 `json:"decorrelation_m"`
	// of two links of one node
	NodeCorrelation float64 `json:"node_correlation,omitempty"`
}

// FadingConfig is small-scale fading: rayleigh, or rician with its K factor.
type FadingConfig struct {
	Model     string  `json:"model"`
	KFactorDb float64 `json:"k_factor_db,omitempty"`
	// of moving scatterers
	ScattererMps float64 `json:"scatterer_mps,omitempty"`
}

// ChannelErrConfig is the two-state channel error of a mean share of frames.
type ChannelErrConfig struct {
	Mean        float64 `json:"mean"`
	BurstFrames float64 `json:"burst_frames,omitempty"`
	BurstS      float64 `json:"burst_s,omitempty"`
}

// Which trials share one draw of shadowing, fading and back-off.
const (
	DrawsPerRepetition = "per_repetition"
	DrawsPerCampaign   = "per_campaign"
)

func or[T comparable](v, standard T) T {
	var zero T
	if v == zero {
		return standard
	}
	return v
}

// WithDefaults fills in what is absent and refuses what cannot be. What the
// medium checks itself is left to it.
func (c Settings) WithDefaults() (Settings, error) {
	noiseFigureDb, power := phy.RadioDefaults(c.Radio)
	switch c.Radio {
	case phy.RadioNS2WaveLAN:
		c.AntennaHeightM = or(c.AntennaHeightM, medium.NS2AntennaHeightM)
	case phy.RadioDisc:
	default:
		c.Propagation = or(c.Propagation, "two_ray_ground")
	}
	c.ChannelDraws = or(c.ChannelDraws, DrawsPerRepetition)
	if c.ChannelDraws != DrawsPerRepetition && c.ChannelDraws != DrawsPerCampaign {
		return c, fmt.Errorf("check field: channel_draws %q: %s and %s are known", c.ChannelDraws, DrawsPerRepetition,
			DrawsPerCampaign)
	}
	c.PathLossExponent = or(c.PathLossExponent, 2.7)
	c.ReferenceM = or(c.ReferenceM, 1)
	c.AntennaHeightM = or(c.AntennaHeightM, 1.5)
	c.NoiseFigureDb = or(c.NoiseFigureDb, noiseFigureDb)
	c.NMEAHz = or(c.NMEAHz, 10)
	c.SpacingM = or(c.SpacingM, 20)
	if c.TxPowerDbm == nil {
		c.TxPowerDbm = &power
	}
	if (c.SiteLatDeg == nil) != (c.SiteLonDeg == nil) {
		return c, errors.New("check field: site_lat_deg and site_lon_deg belong together")
	}
	if c.SiteLatDeg == nil {
		lat, lon := 50.0, 8.0
		c.SiteLatDeg, c.SiteLonDeg = &lat, &lon
	}
	if c.NMEAHz != 1 && c.NMEAHz != 5 && c.NMEAHz != 10 {
		return c, fmt.Errorf("check field: nmea_hz %g: 1, 5 and 10 are possible", c.NMEAHz)
	}
	if !(*c.SiteLatDeg >= -80 && *c.SiteLatDeg <= 80) || !(*c.SiteLonDeg >= -180 && *c.SiteLonDeg <= 180) {
		return c, fmt.Errorf("check field: site %g, %g: latitude is -80 to 80 here, longitude -180 to 180",
			*c.SiteLatDeg, *c.SiteLonDeg)
	}
	if !(c.SpacingM > 0) || !(c.AntennaHeightM > 0) {
		return c, fmt.Errorf("check field: spacing_m %g and antenna_height_m %g must be above 0", c.SpacingM,
			c.AntennaHeightM)
	}
	return c, nil
}

// Site is the field's place on Earth.
func (c Settings) Site() earth.Site {
	return earth.Site{LatDeg: *c.SiteLatDeg, LonDeg: *c.SiteLonDeg}
}

// controlNetwork holds every field's control addresses.
func controlNetwork() netip.Prefix { return netip.MustParsePrefix("10.213.0.0/16") }

// maxNodes is what fits into the last byte of the control addresses.
const maxNodes = 200

// withDefaults fills in what is absent and refuses what cannot be.
func (c Config) withDefaults() (Config, error) {
	var err error
	if c.Field, err = c.Field.WithDefaults(); err != nil {
		return c, err
	}
	c.FaceUser, c.RunDir = or(c.FaceUser, "nobody"), or(c.RunDir, ledger.DefaultRunDir)
	c.QuotaBytes = or(c.QuotaBytes, 1<<30)
	if !filepath.IsAbs(c.Dir) {
		return c, fmt.Errorf("check field: folder %q is not an absolute path", c.Dir)
	}
	if len(c.AgentCommand) == 0 && !filepath.IsAbs(c.Agent) {
		return c, fmt.Errorf("check field: agent %q is not an absolute path", c.Agent)
	}
	if len(c.Nodes) < 2 || len(c.Nodes) > maxNodes {
		return c, fmt.Errorf("check field: %d nodes: 2 to %d are possible", len(c.Nodes), maxNodes)
	}
	seen := map[string]bool{"ctl": true} // the control namespace's
	for _, n := range c.Nodes {
		if err := keys.CheckName(n.Name); err != nil {
			return c, fmt.Errorf("check field: %w", err)
		}
		if mesh, err := netip.ParsePrefix(n.MeshAddress); err != nil && n.Bare {
			return c, fmt.Errorf("check field: node %q without an agent: its mesh address: %w", n.Name, err)
		} else if err == nil && controlNetwork().Contains(mesh.Addr()) {
			return c, fmt.Errorf("check field: mesh address %s of node %q lies in %s, which a rehearsal keeps for its "+
				"control links; give the mesh another network", n.MeshAddress, n.Name, controlNetwork())
		}
		if seen[n.Name] {
			return c, fmt.Errorf("check field: node name %q is used twice, or kept for the field itself", n.Name)
		}
		seen[n.Name] = true
	}
	for name := range c.Field.Channels {
		if !seen[name] {
			return c, fmt.Errorf("check field: channel of %q, which is not a node", name)
		}
	}
	return c, nil
}

// ConfigFile is the name of the configuration in the field's folder.
const ConfigFile = "field.json"

// LoadConfig reads Dir/field.json.
func LoadConfig(dir string) (Config, error) {
	var c Config
	path := filepath.Join(dir, ConfigFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read field's configuration: %w", err)
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return c, fmt.Errorf("decode %q: %w", path, err)
	}
	return c, nil
}

// account is a user's number and main group.
func account(name string) (uid, gid int, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, fmt.Errorf("find user: %w", err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return uid, gid, errors.Join(err1, err2)
}

// reachable refuses a folder that other users cannot get into: the agent's
// unprivileged half and gpsd could not work there.
func reachable(dir string) error {
	for d := dir; ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil {
			return fmt.Errorf("check folder: %w", err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("check folder %q: %q is closed to other users, as whom the agents run; run: chmod o+x %s",
				dir, d, d)
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}
