package serve

import (
	"net/http"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/campaigns"
)

// While a run is driven the server says nothing that nobody called for.
func TestSilentWhileARunIsDriven(t *testing.T) {
	b := newBench(t)
	if b.board.driving() {
		t.Error("it is silent, and no run was begun")
	}
	const name = "phones-1"
	ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: few})
	if !b.board.driving() {
		t.Error("a run is driven, and the server is not silent")
	}
	b.driver.ends(name)
	if b.board.driving() {
		t.Error("it is silent, and the run has ended")
	}
	b.driver.mu.Lock()
	b.driver.foreign[name] = Process{PID: 7, Ticks: 1}
	b.driver.mu.Unlock()
	if !b.board.driving() {
		t.Error("somebody else drives the run, and the server is not silent")
	}
}
