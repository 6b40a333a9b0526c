// Package campaigns is what an experimenter's phone and the controller say to each
// other: which campaigns there are, what a choice of one takes, whether the fleet
// is ready for it, and the runs. `fieldmesh serve` answers; openapi.yaml describes
// the calls.
package campaigns

import (
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Port is where the controller answers unless it is told otherwise.
const Port = 7448

// Bounds of what is said.
const (
	BodyLimit  = 64 << 10 // bytes of a request's body
	MostSpeeds = 32       // of a choice
	MostRuns   = 50       // that are listed, the newest
	MostWaitMs = 30_000   // of a long poll
	MostSpots  = 1000     // of a run's way
)

// Campaigns are the campaigns that the controller offers.
type Campaigns struct {
	Campaigns []Campaign `json:"campaigns"`
}

// Campaign is one that the controller offers.
type Campaign struct {
	Name     string  `json:"name"` // of its file, without .yaml
	Title    string  `json:"title"`
	Question string  `json:"question"`
	Scales   []Scale `json:"scales"` // reductions that it declares, besides full
	// speeds that a choice may set, those of the full campaign; absent: it has none to set
	SpeedsMps   []float64 `json:"speeds_mps,omitempty"`
	Repetitions int       `json:"repetitions,omitempty"` // of the full campaign
	Nodes       []string  `json:"nodes"`
	Missing     []string  `json:"missing,omitempty"` // those of them that the fleet file does not name
	Refused     string    `json:"refused,omitempty"` // why no fleet can drive it; absent: one can
	// its file's name begins with range-test: the app checks and starts it by one button
	RangeTest bool `json:"range_test,omitempty"`
}

// Scale is a reduction that a campaign declares.
type Scale struct {
	Name string `json:"name"`
	Text string `json:"text"` // what it changes, and what that costs
}

// Choice is what is to be driven.
type Choice struct {
	Campaign string `json:"campaign"`
	Scale    string `json:"scale,omitempty"` // absent: full
	// any that the campaign's format takes; absent: the campaign's own
	SpeedsMps   []float64 `json:"speeds_mps,omitempty"`
	Repetitions int       `json:"repetitions,omitempty"` // absent or 0: the campaign's own
}

// Planned is what a choice takes.
type Planned struct {
	Trials      int       `json:"trials"`
	TimeS       float64   `json:"time_s"`               // with every trial accepted at once
	RoadM       *float64  `json:"road_m,omitempty"`     // length of the road that all trials need; absent: nobody moves
	SpeedsMps   []float64 `json:"speeds_mps,omitempty"` // absent: none is planned
	Repetitions int       `json:"repetitions"`
	Deviations  []string  `json:"deviations,omitempty"` // in what it is not the full campaign
}

// Preflight is the fleet held against what a choice needs.
type Preflight struct {
	Ready bool   `json:"ready"` // no need is unmet
	Needs []Need `json:"needs"`
}

// Need is one need, of a node or of the campaign as a whole.
type Need struct {
	Node    string `json:"node,omitempty"` // absent: of the campaign as a whole
	Need    string `json:"need"`
	Outcome string `json:"outcome"` // met | unmet | unknown
	Found   string `json:"found"`
	Cure    string `json:"cure,omitempty"`
}

// Start begins a run. The name is the phone's to choose; the same again is the
// same run.
type Start struct {
	Name   string `json:"name"` // 1 to 64 of a-z, 0-9 and -
	Choice Choice `json:"choice"`
}

// Phases of a run.
const (
	Running  = "running"
	Paused   = "paused"   // nobody drives it; it can be resumed
	Complete = "complete" // every trial is accepted or given up
	Ended    = "ended"    // by a person, for good
	Failed   = "failed"   // it could not go on: see Said; it can be resumed
)

// Runs are the newest runs, newest first.
type Runs struct {
	Version uint64 `json:"version"` // changes with them; not with LeftS alone
	Runs    []Run  `json:"runs"`
}

// Run is a run as far as it has come.
type Run struct {
	Name     string   `json:"name"`
	Campaign string   `json:"campaign"`
	Place    string   `json:"place"` // road | bench | rehearsal
	Phase    string   `json:"phase"` // running | paused | complete | ended | failed
	Trials   int      `json:"trials"`
	Accepted int      `json:"accepted"`
	GivenUp  int      `json:"given_up"`
	LeftS    *float64 `json:"left_s,omitempty"` // while it runs, where it can be estimated
	Said     string   `json:"said,omitempty"`   // what went wrong
	Sheet    *Sheet   `json:"sheet,omitempty"`  // absent: no speed has a result yet
}

// Sheet is the throughput by speed so far.
type Sheet struct {
	Speeds []SpeedMean `json:"speeds"` // slowest first
}

// SpeedMean is the mean throughput of the results at one speed.
type SpeedMean struct {
	SpeedMps float64 `json:"speed_mps"`
	MeanBps  float64 `json:"mean_bps"`
	N        int     `json:"n"` // results
}

// Places are what a run logged by place, of every attempt that opened a window, however it
// ended. Of one under way there is what had come when the one before it was over; all of it is
// there when it is over, or the run is.
type Places struct {
	// the greatest distance of the nodes at which anything came; absent: nothing did, or it is not known where
	FarthestM      *float64  `json:"farthest_m,omitempty"`
	Stretches      []Stretch `json:"stretches"` // by distance, nearest first; none: it is not known where both were
	Way            []Spot    `json:"way"`       // the car's
	RoadsideLatDeg *float64  `json:"roadside_lat_deg,omitempty"`
	RoadsideLonDeg *float64  `json:"roadside_lon_deg,omitempty"`
}

// Stretch is what was logged between two distances; means of the seconds in which a number was known.
type Stretch struct {
	FromM     float64  `json:"from_m"`
	ToM       float64  `json:"to_m"`
	Seconds   int      `json:"seconds"`
	SpeedMps  *float64 `json:"speed_mps,omitempty"`
	SignalDbm *float64 `json:"signal_dbm,omitempty"` // of the sender's frames, by the receiver's radio
	// of the access point's frames at the car, as Android tells an app about every 3 s
	WiFiSignalDbm *float64 `json:"wifi_signal_dbm,omitempty"`
	ThroughputBps *float64 `json:"throughput_bps,omitempty"`
	LostPercent   *float64 `json:"lost_percent,omitempty"` // of the datagrams of kind delay; absent: there was none
}

// Spot is a place of the car's way.
type Spot struct {
	LatDeg        float64  `json:"lat_deg"`
	LonDeg        float64  `json:"lon_deg"`
	ThroughputBps *float64 `json:"throughput_bps,omitempty"`
	AfterGap      bool     `json:"after_gap,omitempty"` // nothing was logged between it and the one before
}

// Files are what a run can be shared as; none before anything was measured.
type Files struct {
	Files []File `json:"files"`
}

// File is one of them.
type File struct {
	Name  string `json:"name"` // report.html | results.csv | tracks.gpx | places.csv | places.gpx
	Bytes int64  `json:"bytes"`
}

// Validate refuses a choice that cannot be one of any campaign. What the campaign's
// format takes is its reader's to say.
func (c Choice) Validate() error {
	switch {
	case c.Campaign == "":
		return wire.Errorf(wire.CodeBadRequest, "campaign: it is empty; GET /v1/campaigns lists them")
	case len(c.SpeedsMps) > MostSpeeds:
		return wire.Errorf(wire.CodeBadRequest, "speeds_mps: %d are too many; allowed: %d", len(c.SpeedsMps),
			MostSpeeds)
	case c.Repetitions < 0:
		return wire.Errorf(wire.CodeBadRequest, "repetitions: %d is below 1", c.Repetitions)
	}
	speeds := slices.Sorted(slices.Values(c.SpeedsMps))
	if len(slices.Compact(speeds)) < len(c.SpeedsMps) {
		return wire.Errorf(wire.CodeBadRequest, "speeds_mps: one is there twice")
	}
	return nil
}

// Validate refuses a run that cannot be begun.
func (s Start) Validate() error {
	if err := wire.CheckRunName(s.Name); err != nil {
		return err
	}
	return s.Choice.Validate()
}
