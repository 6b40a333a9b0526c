package wire

// Machine is how a node's machine is, as the kernel's classes power_supply and
// thermal tell. What the machine has not is absent.
type Machine struct {
	BatteryPercent *float64 `json:"battery_percent,omitempty"` // of all its batteries together
	BatteryState   string   `json:"battery_state,omitempty"`   // charging | discharging | full | not_charging | unknown
	BatteryLeftS   *float64 `json:"battery_left_s,omitempty"`  // until it is empty, at the present draw
	OnMains        *bool    `json:"on_mains,omitempty"`
	TemperatureC   *float64 `json:"temperature_c,omitempty"` // of the hottest zone
	HottestZone    string   `json:"hottest_zone,omitempty"`
	DiskFreeBytes  *int64   `json:"disk_free_bytes,omitempty"` // left for records; absent in a node's status, which tells the spool's
	SpoolBytes     *int64   `json:"spool_bytes,omitempty"`     // records on the node's disk, delivered ones among them until their room is needed
	Alarm          string   `json:"alarm,omitempty"`           // why no trial can go on so; absent while all is well
}

// WallClock is where a node's wall clock stands against its boot clock, by
// which all records are placed, and against others' time. Nothing is set by it.
type WallClock struct {
	OwnWallOffsetNs int64  `json:"own_wall_offset_ns"`   // wall clock − boot clock
	Unset           bool   `json:"unset"`                // it is before the program was built: nobody has set it
	SteppedNs       *int64 `json:"stepped_ns,omitempty"` // it was put forward by so much at this moment; absent: it was not
	// GPS time − own wall clock, within ± GPSUncertaintyNs. NMEA's time is that of
	// sentences that come some time after their moment.
	GPSOffsetNs      *int64 `json:"gps_offset_ns,omitempty"`
	GPSUncertaintyNs *int64 `json:"gps_uncertainty_ns,omitempty"`
	// What keeps the clock, where chrony runs. SyncOffsetNs is its estimate of true
	// time − own wall clock, within ± SyncUncertaintyNs.
	Sync              string   `json:"sync,omitempty"` // synchronised | unsynchronised; absent: nothing is known
	SyncSource        string   `json:"sync_source,omitempty"`
	SyncOffsetNs      *int64   `json:"sync_offset_ns,omitempty"`
	SyncUncertaintyNs *int64   `json:"sync_uncertainty_ns,omitempty"`
	SyncDriftPpm      *float64 `json:"sync_drift_ppm,omitempty"` // by which the clock would gain, were it left alone
}

// NMEATimeUncertaintyNs is how far the time of NMEA sentences without a pulse
// per second may be from GPS time, at the fastest of many.
const NMEATimeUncertaintyNs = 100_000_000

// The kinds.
func (*Machine) Kind() string   { return "machine" }
func (*WallClock) Kind() string { return "wall_clock" }
