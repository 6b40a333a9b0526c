// Package config reads agent.yaml: what a node is called, where it listens,
// which interface it measures on, and what its privileged half may touch. It
// reads and checks; it changes nothing on the machine and looks nothing up.
package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// NoGPSD in the place of gpsd's address says that there is none: an app
// pushes its phone's fixes.
const NoGPSD = "none"

// DefaultPath is where the agent's commands look for their configuration.
const DefaultPath = "/etc/fieldmesh/agent.yaml"

// maxFileBytes bounds the file: a configuration is a page, not a megabyte.
const maxFileBytes = 1 << 20

// Config is agent.yaml. Paths are absolute; a zero field that has a default
// never reaches the caller of Load.
type Config struct {
	Node             string  `yaml:"node"`              // this node's name, [a-z0-9-]{1,64}
	Listen           string  `yaml:"listen"`            // host:port of the API; default ":7443"
	GoPort           int     `yaml:"go_port"`           // UDP port for GO; default 7446
	StateDir         string  `yaml:"state_dir"`         // default /var/lib/fieldmesh
	Interface        string  `yaml:"interface"`         // the interface under test
	Beside           string  `yaml:"beside"`            // the machine's own interface, on whose radio Interface is made for a run; absent: Interface is there
	ControlInterface string  `yaml:"control_interface"` // absent: none of its own
	GPSD             string  `yaml:"gpsd"`              // host:port; default 127.0.0.1:2947; NoGPSD: a phone's app pushes fixes
	FeedbackSocket   string  `yaml:"feedback_socket"`   // radio feedback; absent: none
	RadioFeedback    bool    `yaml:"radio_feedback"`    // serve what a real radio tells to the routing daemons, which then go by its unacknowledged frames instead of HELLOs
	FaceUser         string  `yaml:"face_user"`         // user, or uid:gid, that the network face runs as; default fieldmesh
	KeysDir          string  `yaml:"keys_dir"`          // default /etc/fieldmesh/keys
	Allow            Allow   `yaml:"allow"`
	QuotaBytes       int64   `yaml:"quota_bytes"`      // of the spool; default 2 GB
	QuotaFreeBytes   int64   `yaml:"quota_free_bytes"` // least free space on the spool's disk; default 256 MB
	DeadManS         float64 `yaml:"dead_man_s"`       // default 1800
	// A trial ends, and none begins, while a battery that feeds the machine is
	// below BatteryMinPercent or a part of it hotter than TemperatureMaxC; 0: no limit.
	BatteryMinPercent float64 `yaml:"battery_min_percent"` // default 5
	TemperatureMaxC   float64 `yaml:"temperature_max_c"`   // default 95
	SysfsDir          string  `yaml:"sysfs_dir"`           // where they are read; default /sys
	// ClockFile makes this node's clocks differ from the machine's, in rehearsals
	// only (clock.Skew as JSON); absent: they do not.
	ClockFile string            `yaml:"clock_file"`
	Binaries  map[string]string `yaml:"binaries"` // tool → absolute path; see DefaultBinaries
}

// Allow is what the privileged half may be asked to set.
type Allow struct {
	Prefixes []netip.Prefix `yaml:"prefixes"` // addresses and routes lie in these; default 10.77.0.0/16
}

// Tools are the programs that an agent starts, in the order of their names.
func Tools() []string { return []string{"babeld", "chronyc", "iperf3", "olsrd", "wpa_supplicant"} }

// DefaultBinaries is where Debian puts the tools.
func DefaultBinaries() map[string]string {
	return map[string]string{"babeld": "/usr/sbin/babeld", "chronyc": "/usr/bin/chronyc", "iperf3": "/usr/bin/iperf3", "olsrd": "/usr/sbin/olsrd",
		"wpa_supplicant": "/usr/sbin/wpa_supplicant"}
}

func defaults() Config {
	return Config{
		Listen:         ":7443",
		GoPort:         7446,
		StateDir:       "/var/lib/fieldmesh",
		GPSD:           "127.0.0.1:2947", // gpsd's registered port
		FaceUser:       "fieldmesh",
		KeysDir:        "/etc/fieldmesh/keys",
		Allow:          Allow{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.77.0.0/16")}},
		QuotaBytes:     2e9,
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
		return Config{}, fmt.Errorf("read configuration %q: %d bytes, more than the %d allowed", path, info.Size(), maxFileBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	return Parse(path, data)
}

// DeadMan is how long the privileged half waits for a sign of life before it
// puts everything back.
func (c Config) DeadMan() time.Duration { return time.Duration(c.DeadManS * float64(time.Second)) }

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

// RunsDir is where the network face keeps the plans that were pushed to it.
func (c Config) RunsDir() string { return filepath.Join(c.FaceDir(), "runs") }

// Binary is the absolute path of a tool, empty for one that is not configured.
func (c Config) Binary(tool string) string { return c.Binaries[tool] }

// HostInterfaces are the interfaces that the privileged half may change: the
// one under test and no other, least of all the control link's.
func (c Config) HostInterfaces() []string { return []string{c.Interface} }

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
