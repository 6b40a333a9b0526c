package campaigns_test

import "fieldmesh.dev/fieldmesh/protocols/campaigns"

// bodies are samples of every body, with every field set: the names are those of the
// golden files.
func bodies() map[string]any {
	choice := campaigns.Choice{Campaign: "velocity-phones", Scale: "short", SpeedsMps: []float64{2.8, 5.6},
		Repetitions: 2}
	run := campaigns.Run{Name: "velocity-phones-1129-1412", Campaign: "velocity-phones", Place: "road",
		Phase: campaigns.Running, Trials: 8, Accepted: 3, GivenUp: 1, LeftS: new(1200.0),
		Sheet: &campaigns.Sheet{Speeds: []campaigns.SpeedMean{{SpeedMps: 2.8, MeanBps: 18.4e6, N: 2},
			{SpeedMps: 5.6, MeanBps: 16.1e6, N: 1}}}}
	failed := campaigns.Run{Name: "velocity-phones-1129-1305", Campaign: "velocity-phones", Place: "road",
		Phase: campaigns.Failed, Trials: 8, Said: "the fleet cannot run this campaign as it is: bravo is away"}
	return map[string]any{
		"campaigns": &campaigns.Campaigns{Campaigns: []campaigns.Campaign{
			{Name: "velocity-phones", Title: "Impact of node velocity on TCP throughput",
				Question:  "Does TCP throughput fall with speed?",
				Scales:    []campaigns.Scale{{Name: "short", Text: "Windows of half the length."}},
				SpeedsMps: []float64{2.8, 5.6, 8.3}, Repetitions: 4, Nodes: []string{"alpha", "bravo"},
				Missing: []string{"bravo"}, Refused: "a gate waits for a place, and the file does not say where the " +
					"roadside node stands"},
			{Name: "broken", Title: "broken", Scales: []campaigns.Scale{}, Nodes: []string{},
				Refused: "broken.yaml:1:1: the file is empty"},
			{Name: "range-test", Title: "Range test", Scales: []campaigns.Scale{}, Repetitions: 28,
				Nodes: []string{"alpha", "bravo"}, RangeTest: true}}},
		"choice": &choice,
		"planned": &campaigns.Planned{Trials: 8, TimeS: 1234.5, RoadM: new(410.0), SpeedsMps: []float64{2.8, 5.6},
			Repetitions: 2, Deviations: []string{"Chosen by the experimenter: the speeds are 2.8, 5.6 m/s instead of " +
				"2.8, 5.6, 8.3 m/s; the repetitions are 2 instead of 4."}},
		"preflight": &campaigns.Preflight{Needs: []campaigns.Need{
			{Node: "bravo", Need: "reach", Outcome: "unmet", Found: "no answer at 192.168.8.3:7443 within 3 s",
				Cure: "start the agent on bravo, and join its network"},
			{Need: "time", Outcome: "unknown", Found: "the campaign takes 21 min", Cure: "check that there is as much"},
			{Node: "alpha", Need: "gps", Outcome: "met", Found: "a 3-D fix"}}},
		"start": &campaigns.Start{Name: "velocity-phones-1129-1412", Choice: choice},
		"runs":  &campaigns.Runs{Version: 1796480000017, Runs: []campaigns.Run{run, failed}},
		"run":   &failed,
		"files": &campaigns.Files{Files: []campaigns.File{{Name: "report.html", Bytes: 123456},
			{Name: "results.csv", Bytes: 4321}, {Name: "tracks.gpx", Bytes: 65432}, {Name: "places.csv", Bytes: 7654},
			{Name: "places.gpx", Bytes: 8765}}},
		"places": &campaigns.Places{FarthestM: new(187.5),
			Stretches: []campaigns.Stretch{{FromM: 0, ToM: 20, Seconds: 4, SpeedMps: new(5.6), SignalDbm: new(-48.5),
				ThroughputBps: new(18.4e6), LostPercent: new(0.0)}, {FromM: 180, ToM: 200, Seconds: 2,
				WiFiSignalDbm: new(-71.5)}},
			Way: []campaigns.Spot{{LatDeg: 50.0001, LonDeg: 8.0002, ThroughputBps: new(18.4e6)},
				{LatDeg: 50.0003, LonDeg: 8.0004, AfterGap: true}},
			RoadsideLatDeg: new(50.0), RoadsideLonDeg: new(8.0)},
	}
}
