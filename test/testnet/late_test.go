package testnet

import (
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestLateKnowsWhatABusyMachineSpoils(t *testing.T) {
	for text, want := range map[string]bool{
		"stalled: car stood still for 300.6 ms within the window, limit 250":                                  true,
		"edge: alpha sampled its sockets at the window's close 9.36 ms late, limit 7":                         true,
		"edge: bravo sampled its sockets 14 ms before the window's open, and then 19.4 ms late, limit 7":      true,
		"edge: alpha started the client of flow bulk 49.74 ms late, limit 20":                                 true,
		"generator: on bravo: iperf3 of flow bulk read nothing of what had come for 301 ms within the window": true,
		"go_unanswered: no answer from bravo in time":                                                         false,
		"lateness: lateness_share_max is 0.03, limit 0.02":                                                    true,
		"clock: clock_error_ms_max is 31, limit 20":                                                           true,
		"clock: clock_error_ms_max not measured":                                                              false,
		"generator: on alpha: iperf3's client of flow bulk was stopped by a signal":                           false,
		"edge: alpha has not sampled its sockets at the window's close":                                       false,
		"gps: fix_age_ms_max on bravo is 1700, limit 1500":                                                    false,
		"misrouted: on alpha: packets to bravo leave by rmnet0, not by wlan0":                                 false,
		"": false,
	} {
		if got := Late(wire.ParseReason(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
