package wire

// Schedule is a run's plan without its secret, for people to look at.
type Schedule struct {
	Run         string     `json:"run"`
	Campaign    string     `json:"campaign"`
	AttemptsMax int        `json:"attempts_max"`
	Nodes       []PlanNode `json:"nodes"`
	Trials      []Trial    `json:"trials"`
}

// Schedule is the plan without the key that authenticates GO.
func (p RunPlan) Schedule() Schedule {
	return Schedule{Run: p.Run, Campaign: p.Campaign, AttemptsMax: p.AttemptsMax, Nodes: p.Nodes, Trials: p.Trials}
}

// Fix is what a phone's receiver said, pushed by the app. Without a position,
// mode is 1.
type Fix struct {
	// at the moment of sending, by the sender's monotonic clock
	AgeMs          float64  `json:"age_ms" min:"0" max:"maxFixAgeMs"`
	Mode           int      `json:"mode" min:"1" max:"3"`               // 1 no fix, 2 2-D, 3 3-D
	TimeUTC        string   `json:"time_utc,omitempty" form:"timeForm"` // the receiver's own time of the fix
	LatDeg         *float64 `json:"lat_deg,omitempty" min:"-90" max:"90"`
	LonDeg         *float64 `json:"lon_deg,omitempty" min:"-180" max:"180"`
	AltM           *float64 `json:"alt_m,omitempty" min:"-1000" max:"100e3"` // above the sea
	SpeedMps       *float64 `json:"speed_mps,omitempty" min:"0" max:"1000"`
	TrackDeg       *float64 `json:"track_deg,omitempty" min:"0" max:"360"`
	SpeedErrMps    *float64 `json:"speed_err_mps,omitempty" min:"0" max:"1e6"`
	HorizErrM      *float64 `json:"horiz_err_m,omitempty" min:"0" max:"1e6"`
	SatellitesUsed *int     `json:"satellites_used,omitempty" min:"0" max:"1000"`
}

// maxFixAgeMs is far above what a fix is good for; an older one is a mistake.
const maxFixAgeMs = 60e3

// WiFiReading is what Android says about a phone's Wi-Fi, pushed by the app that has started the agent, each time
// that it finds other values.
type WiFiReading struct {
	// at the moment of sending, by the sender's monotonic clock
	AgeMs float64 `json:"age_ms" min:"0" max:"maxFixAgeMs"`
	// how long before that the sender had found the values before
	RenewedWithinMs float64  `json:"renewed_within_ms" above:"0" max:"MaxWiFiRenewMs"`
	SignalDbm       *float64 `json:"signal_dbm,omitempty" min:"-126" max:"0"` // -127 is Android's word for unknown
	TxBitrateMbps   *float64 `json:"tx_bitrate_mbps,omitempty" above:"0" max:"100e3"`
	RxBitrateMbps   *float64 `json:"rx_bitrate_mbps,omitempty" above:"0" max:"100e3"`
	FrequencyMHz    *int     `json:"frequency_mhz,omitempty" min:"2400" max:"71000"`
}

// MaxWiFiRenewMs is the beat at which Android renews the values of a Wi-Fi (config_wifiPollRssiIntervalMilliseconds of
// its Wi-Fi service): whoever has not looked for longer does not know when they were renewed.
const MaxWiFiRenewMs = 3000

// Record is the reading as a record has it.
func (w WiFiReading) Record() *WiFi {
	return &WiFi{Source: SourceAndroid, RenewedWithinMs: w.RenewedWithinMs, SignalDbm: w.SignalDbm,
		TxBitrateMbps: w.TxBitrateMbps, RxBitrateMbps: w.RxBitrateMbps, FrequencyMHz: w.FrequencyMHz}
}

// Place is where a node was, for a person to look at; not a record.
type Place struct {
	Node   string  `json:"node" min:"1" max:"maxTextRunes"`
	LatDeg float64 `json:"lat_deg" min:"-90" max:"90"`
	LonDeg float64 `json:"lon_deg" min:"-180" max:"180"`
	AgeMs  float64 `json:"age_ms" min:"0" max:"MaxPlaceAgeMs"` // of the fix, at the moment of telling
}

// MaxPlaceAgeMs is the age from which on a place says nothing of where its node is.
const MaxPlaceAgeMs = 600_000

// Note is what a person saw, or decided about an attempt.
type Note struct {
	ID   string `json:"id" form:"noteForm"`        // chosen by the sender; the same again is no new note
	Note string `json:"note"`                      // mark | accept | repeat | skip
	Text string `json:"text" max:"maxReasonRunes"` // a person's own words, such as "bus passed"
	// how long ago it was noted, at the moment of sending; absent: not known
	AgeMs   *float64 `json:"age_ms,omitempty" min:"0" max:"maxNoteAgeMs"`
	Run     string   `json:"run,omitempty" form:"runForm"`            // that it is about; a decision names one
	Trial   int      `json:"trial,omitempty" min:"0" max:"MaxTrials"` // absent or 0: none
	Attempt int      `json:"attempt,omitempty" min:"0" max:"MaxAttempts"`
	LatDeg  *float64 `json:"lat_deg,omitempty" min:"-90" max:"90"`
	LonDeg  *float64 `json:"lon_deg,omitempty" min:"-180" max:"180"`
	// a photo or a recording, which follows; absent: none, as with every decision
	Attachment *Attachment `json:"attachment,omitempty"`
}

// IsMark tells what a person saw from what a person decided.
func (n Note) IsMark() bool { return n.Note == "mark" }

// maxNoteAgeMs is 31 days: notes wait on the phone while the node is out of reach.
const maxNoteAgeMs = 31 * 24 * 3600e3

// Word is what a person decided about an attempt, over the acceptance rules.
type Word struct {
	// accept | repeat | skip | retry, which reopens a trial that was given up
	Decision string `json:"decision"`
	By       string `json:"by"`                                  // by the name of the key that brought the word
	Text     string `json:"text,omitempty" max:"maxReasonRunes"` // the person's reason
	NoteID   string `json:"note_id,omitempty"`                   // of the note that it came by
	// the outcome before the word, by the rules: accepted | rejected | failed | interrupted
	Judged Outcome `json:"judged"`
}
