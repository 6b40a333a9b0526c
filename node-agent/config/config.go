// Package config reads agent.yaml: what a node is called, where it listens,
// which interface it measures on, and what its privileged half may touch. It
// reads and checks; it changes nothing on the machine and looks nothing up.
package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// NoGPSD in the place of gpsd's address says that there is none: an app
// pushes its phone's fixes.
const NoGPSD = "none"

// NoPrivileges in the place of root says that the agent runs as whoever starts it, without a
// privileged half, on a network that stands already.
const NoPrivileges = wire.NoPrivileges

// DefaultPath is where the agent's commands look for their configuration.
const DefaultPath = "/etc/fieldmesh/agent.yaml"

// maxFileBytes bounds the file: a configuration is a page, not a megabyte.
const maxFileBytes = 1 << 20

// Config is agent.yaml. Each key is declared here: the comment says what it
// means, the tags what it may be (see checkKey), and defaults what it is when it
// is absent. A zero field that has a default never reaches the caller of Load, but for a switch that is off.
//
//go:generate go test -run TestSchemaIsCurrent -update .
type Config struct {
	// This node's name
	Node string `yaml:"node" kind:"name" missing:"give this node a name"`
	// Where the API listens
	Listen string `yaml:"listen" kind:"address"`
	// UDP port for GO
	GoPort int `yaml:"go_port" min:"1" max:"65535"`
	// Folder for all that the agent keeps; with the package's units only the default: mount another disk there
	StateDir string `yaml:"state_dir" kind:"path"`
	// The interface under test, the only one that the agent changes
	Interface string `yaml:"interface" kind:"interface" missing:"name the interface to measure on, such as wlan0"`
	// The machine's own interface, on whose radio the interface under test is made for a run; absent: that one is there
	PhyOf string `yaml:"phy_of" former:"beside" kind:"interface"`
	// The interface by which the controller reaches the node; absent: none of its own
	ControlInterface string `yaml:"control_interface" kind:"interface"`
	// Whether apps that know the node's key find it by multicast DNS when its address has changed
	Discovery bool `yaml:"discovery"`
	// Where gpsd listens; none: a phone's app pushes fixes
	GPSD string `yaml:"gpsd" kind:"gpsd"`
	// Socket on which somebody else serves what the radio tells; absent: none
	FeedbackSocket string `yaml:"feedback_socket" kind:"path"`
	// Whether a real radio's unacknowledged frames are served to the routing daemons,
	// which go by them instead of by HELLOs
	RadioFeedback bool `yaml:"radio_feedback"`
	// What the agent has: root, with a privileged part that changes the machine; or none: it runs as whoever starts
	// it, changes nothing, and takes part in the trials that need no change
	Privileges string `yaml:"privileges" kind:"privileges"`
	// The user, or uid:gid, as whom the part that faces the network runs; with `privileges: none` it has no meaning
	FaceUser string `yaml:"face_user" kind:"user"`
	// Folder of the node's key and of those that it lets in
	KeysDir string `yaml:"keys_dir" kind:"path"`
	// Key of the app that starts this agent, which is let in as an app besides those of the controller; absent: none
	AppKey string `yaml:"app_key" kind:"pin"`
	// What the privileged part may be asked to set
	Allow Allow `yaml:"allow"`
	// The most that records may take up on the disk
	QuotaBytes int64 `yaml:"quota_bytes" min:"1000000" unit:"bytes"`
	// Up to what size on the disk records stay that the controller has
	QuotaKeptBytes int64 `yaml:"quota_kept_bytes" min:"0" unit:"bytes"`
	// The least that stays free on the records' disk
	QuotaFreeBytes int64 `yaml:"quota_free_bytes" min:"0" unit:"bytes"`
	// How long after the last sign of life everything is put back
	DeadManS float64 `yaml:"dead_man_s" min:"10" max:"86400" unit:"seconds"`
	// Battery below which a trial ends and none begins
	BatteryMinPercent float64 `yaml:"battery_min_percent" min:"0" zero:"no limit" max:"100" unit:"%"`
	// Temperature of any part above which a trial ends and none begins
	TemperatureMaxC float64 `yaml:"temperature_max_c" min:"0" zero:"no limit" max:"150" unit:"°C"`
	// Where battery and temperatures are read
	SysfsDir string `yaml:"sysfs_dir" kind:"path"`
	// In rehearsals only: file that makes the node's clocks differ from the machine's (clock.Skew as JSON)
	ClockFile string `yaml:"clock_file" kind:"path"`
	// Tools with their absolute paths, where they are not where Debian has them
	Binaries map[string]string `yaml:"binaries" kind:"path"`
}

// Allow is what the privileged half may be asked to set.
type Allow struct {
	// Networks in which addresses and routes must lie
	Prefixes []netip.Prefix `yaml:"prefixes" kind:"prefix"`
}

// Tools are the programs that an agent starts, in the order of their names.
func Tools() []string { return []string{"babeld", "chronyc", "iperf3", "olsrd", "wpa_supplicant"} }

// DefaultBinaries is where Debian puts the tools.
func DefaultBinaries() map[string]string {
	return map[string]string{"babeld": "/usr/sbin/babeld", "chronyc": "/usr/bin/chronyc", "iperf3": "/usr/bin/iperf3",
		"olsrd":          "/usr/sbin/olsrd",
		"wpa_supplicant": "/usr/sbin/wpa_supplicant"}
}

func defaults() Config {
	return Config{
		Listen:         ":" + strconv.Itoa(wire.DefaultControlPort),
		GoPort:         wire.DefaultGoPort,
		StateDir:       "/var/lib/fieldmesh",
		Discovery:      true,
		GPSD:           "127.0.0.1:2947", // gpsd's registered port
		Privileges:     "root",
		FaceUser:       "fieldmesh",
		KeysDir:        "/etc/fieldmesh/keys",
		Allow:          Allow{Prefixes: []netip.Prefix{netip.MustParsePrefix(wire.DefaultMeshNetwork)}},
		QuotaBytes:     2e9,
		QuotaKeptBytes: 1e9,
		QuotaFreeBytes: 256e6,
		DeadManS:       1800,

		BatteryMinPercent: 5,
		TemperatureMaxC:   95, // processors of laptops put themselves out at 100 to 105
		SysfsDir:          "/sys",
	}
}

// Load reads and checks a configuration. An error about the file's contents is
// an *Error with the place in the file.
func Load(path string) (Config, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	if info.Size() > maxFileBytes {
		return Config{}, fmt.Errorf("read configuration %q: %d bytes, more than the %d allowed", path, info.Size(),
			maxFileBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data)
}

// StateDirOf is the state_dir of a file that has a fault elsewhere; empty where that cannot be
// told.
func StateDirOf(path string) string {
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxFileBytes {
		return ""
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := regexp.MustCompile(`(?m)^state_dir[ \t]*:[ \t]*(.*?)[ \t]*(#.*)?$`).FindAllSubmatch(data, 2)
	switch dir := defaults().StateDir; {
	case len(lines) == 0:
		return dir
	case len(lines) == 1:
		if dir = strings.Trim(string(lines[0][1]), `"'`); kinds()["path"].takes(dir) {
			return dir
		}
	}
	return ""
}

// DeadMan is how long the privileged half waits for a sign of life before it
// puts everything back.
func (c Config) DeadMan() time.Duration { return time.Duration(c.DeadManS * float64(time.Second)) }

// Unprivileged reports whether the agent runs without root, and changes nothing.
func (c Config) Unprivileged() bool { return c.Privileges == NoPrivileges }

// HostDir belongs to root: the privileged half's journal, socket and daemons.
func (c Config) HostDir() string { return filepath.Join(c.StateDir, "host") }

// JournalDir is where the privileged half keeps its journal.
func (c Config) JournalDir() string { return c.HostDir() }

// HostSocket is where the privileged half listens.
func (c Config) HostSocket() string { return filepath.Join(c.HostDir(), "host.sock") }

// FaceDir belongs to the face's user.
func (c Config) FaceDir() string { return filepath.Join(c.StateDir, "face") }

// RadioSocket is where the privileged half serves a real radio's feedback,
// empty when it is not to.
func (c Config) RadioSocket() string {
	if !c.RadioFeedback {
		return ""
	}
	return filepath.Join(c.HostDir(), "radio.sock")
}

// SpoolDir is where the network face keeps its records.
func (c Config) SpoolDir() string { return filepath.Join(c.FaceDir(), "spool") }

// Binary is the absolute path of a tool, empty for one that is not configured.
func (c Config) Binary(tool string) string { return c.Binaries[tool] }

// ControlPort is the TCP port on which the node's controller calls.
func (c Config) ControlPort() int {
	_, port, _ := splitAddress(c.Listen)
	return port
}

// HostInterfaces are the interfaces that the privileged half may change: the
// one under test and no other, least of all the control link's.
func (c Config) HostInterfaces() []string { return []string{c.Interface} }

// HostSettings are the keys that the privileged half goes by, each with its value. What the two halves began with
// differs where the file was edited between their starts.
func (c Config) HostSettings() []string {
	return []string{"interface: " + c.Interface, "phy_of: " + c.PhyOf,
		fmt.Sprintf("allow.prefixes: %v", c.Allow.Prefixes), fmt.Sprintf("binaries: %v", c.Daemons()),
		fmt.Sprintf("port of listen: %d", c.ControlPort()), "feedback_socket: " + c.FeedbackSocket,
		fmt.Sprintf("radio_feedback: %t", c.RadioFeedback), fmt.Sprintf("dead_man_s: %g", c.DeadManS)}
}

// Daemons are the binaries that the privileged half may start: routing daemons,
// and what makes a radio an access point.
func (c Config) Daemons() map[string]string {
	out := map[string]string{}
	for name, path := range c.Binaries {
		if slices.Contains([]string{"babeld", "olsrd", "wpa_supplicant"}, name) {
			out[name] = path
		}
	}
	return out
}
