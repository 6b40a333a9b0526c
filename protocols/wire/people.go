package wire

import (
	"slices"
	"unicode/utf8"
)

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
	AgeMs          float64  `json:"age_ms"` // at the moment of sending, by the sender's monotonic clock
	Mode           int      `json:"mode"`   // 1 no fix, 2 2-D, 3 3-D
	TimeUTC        string   `json:"time_utc,omitempty"`
	LatDeg         *float64 `json:"lat_deg,omitempty"`
	LonDeg         *float64 `json:"lon_deg,omitempty"`
	AltM           *float64 `json:"alt_m,omitempty"` // above the sea
	SpeedMps       *float64 `json:"speed_mps,omitempty"`
	TrackDeg       *float64 `json:"track_deg,omitempty"`
	SpeedErrMps    *float64 `json:"speed_err_mps,omitempty"`
	HorizErrM      *float64 `json:"horiz_err_m,omitempty"`
	SatellitesUsed *int     `json:"satellites_used,omitempty"`
}

// maxFixAgeMs is far above what a fix is good for; an older one is a mistake.
const maxFixAgeMs = 60e3

var timeForm = formOf(`^[0-9TZ:.+-]{0,40}$`)

// Validate refuses a fix whose numbers are damage and no measurement.
func (f Fix) Validate() error {
	if f.Mode < 1 || f.Mode > 3 {
		return Errorf(CodeBadRequest, "mode: %d is not within 1 to 3", f.Mode)
	}
	if !timeForm.MatchString(f.TimeUTC) {
		return Errorf(CodeBadRequest, "time_utc: %.80q is no time", f.TimeUTC)
	}
	var used *float64
	if f.SatellitesUsed != nil {
		n := float64(*f.SatellitesUsed)
		used = &n
	}
	return inBounds([]bound{
		{"age_ms", &f.AgeMs, 0, maxFixAgeMs}, {"lat_deg", f.LatDeg, -90, 90}, {"lon_deg", f.LonDeg, -180, 180},
		{"alt_m", f.AltM, -1000, 100e3}, {"speed_mps", f.SpeedMps, 0, 1000}, {"track_deg", f.TrackDeg, 0, 360},
		{"speed_err_mps", f.SpeedErrMps, 0, 1e6}, {"horiz_err_m", f.HorizErrM, 0, 1e6}, {"satellites_used", used, 0, 1000},
	})
}

// bound is a number that may be absent, and what it must lie within.
type bound struct {
	name      string
	value     *float64
	low, high float64
}

func inBounds(list []bound) error {
	for _, b := range list {
		if b.value != nil && !(*b.value >= b.low && *b.value <= b.high) {
			return Errorf(CodeBadRequest, "%s: %v is not within %v to %v", b.name, *b.value, b.low, b.high)
		}
	}
	return nil
}

// Place is where a node was, for a person to look at; not a record.
type Place struct {
	Node   string  `json:"node"`
	LatDeg float64 `json:"lat_deg"`
	LonDeg float64 `json:"lon_deg"`
	AgeMs  float64 `json:"age_ms"` // of the fix, at the moment of telling
}

// MaxPlaceAgeMs is the age from which on a place says nothing of where its node is.
const MaxPlaceAgeMs = 600_000

// Validate refuses a place that is none, or of too long ago.
func (p Place) Validate() error {
	if n := utf8.RuneCountInString(p.Node); n < 1 || n > maxTextRunes {
		return Errorf(CodeBadRequest, "node: %d characters long, want 1 to %d", n, maxTextRunes)
	}
	return inBounds([]bound{{"lat_deg", &p.LatDeg, -90, 90}, {"lon_deg", &p.LonDeg, -180, 180}, {"age_ms", &p.AgeMs, 0, MaxPlaceAgeMs}})
}

// Note is what a person saw, or decided about an attempt.
type Note struct {
	ID      string   `json:"id"`     // chosen by the sender; the same again is no new note
	Note    string   `json:"note"`   // mark | accept | repeat | skip
	Text    string   `json:"text"`   // a person's own words, such as "bus passed"
	AgeMs   float64  `json:"age_ms"` // at the moment of sending, by the sender's monotonic clock
	Trial   int      `json:"trial,omitempty"`
	Attempt int      `json:"attempt,omitempty"`
	LatDeg  *float64 `json:"lat_deg,omitempty"`
	LonDeg  *float64 `json:"lon_deg,omitempty"`
}

var (
	noteForm = formOf(`^[A-Za-z0-9_-]{1,64}$`)
	notes    = []string{"mark", "accept", "repeat", "skip"}
	words    = []string{"accept", "repeat", "skip", "retry"}
)

// maxNoteAgeMs is a day: notes wait on the phone while the node is out of reach.
const maxNoteAgeMs = 24 * 3600e3

// Validate refuses a note that says nothing or never ends.
func (n Note) Validate() error {
	if !noteForm.MatchString(n.ID) {
		return Errorf(CodeBadRequest, "id: %.80q is not 1 to 64 of A-Z, a-z, 0-9, _ and -", n.ID)
	}
	if !slices.Contains(notes, n.Note) {
		return Errorf(CodeBadRequest, "note: %.80q is not mark, accept, repeat or skip", n.Note)
	}
	if r := utf8.RuneCountInString(n.Text); r > maxReasonRunes {
		return Errorf(CodeBadRequest, "text: %d characters long, at most %d", r, maxReasonRunes)
	}
	if n.Trial < 0 || n.Trial > MaxTrials || n.Attempt < 0 || n.Attempt > MaxAttempts {
		return Errorf(CodeBadRequest, "trial %d, attempt %d: not within 0 to %d and %d", n.Trial, n.Attempt, MaxTrials, MaxAttempts)
	}
	return inBounds([]bound{{"age_ms", &n.AgeMs, 0, maxNoteAgeMs}, {"lat_deg", n.LatDeg, -90, 90}, {"lon_deg", n.LonDeg, -180, 180}})
}

// Word is what a person decided about an attempt, over the acceptance rules.
type Word struct {
	Decision string  `json:"decision"`       // accept | repeat | skip | retry, which reopens a trial that was given up
	By       string  `json:"by"`             // by the name of the key that brought the word
	Text     string  `json:"text,omitempty"` // the person's reason
	Judged   Outcome `json:"judged"`         // the outcome before the word: by the rules
}

// Validate refuses a word that decides nothing.
func (w Word) Validate() error {
	if !slices.Contains(words, w.Decision) {
		return Errorf(CodeBadRequest, "word: %.80q is not accept, repeat, skip or retry", w.Decision)
	}
	if !slices.Contains(outcomes, w.Judged) {
		return Errorf(CodeBadRequest, "word: judged %.80q is not accepted, rejected, failed or interrupted", w.Judged)
	}
	if n := utf8.RuneCountInString(w.Text); n > maxReasonRunes {
		return Errorf(CodeBadRequest, "word: %d characters long, at most %d", n, maxReasonRunes)
	}
	return nil
}
