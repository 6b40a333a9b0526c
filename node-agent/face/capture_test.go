package face

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/attachments"
	"fieldmesh.dev/fieldmesh/node-agent/capture"
	"fieldmesh.dev/fieldmesh/node-agent/capture/ring"
	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/node-agent/gps"
	"fieldmesh.dev/fieldmesh/node-agent/host"
	"fieldmesh.dev/fieldmesh/node-agent/provenance"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/node-agent/trial"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// still is a host process that has nothing to put back.
type still struct{ trial.Host }

func (still) Status(context.Context) (wire.HostStatus, error) {
	return wire.HostStatus{Reached: true}, nil
}

func (still) Restore(context.Context, string) (wire.RestoreReport, error) {
	return wire.RestoreReport{}, nil
}

// A run's captures stay as long as its records wait for their controller, whatever runs follow; they go with these, or
// when nobody collects them.
func TestCapturesStayAsLongAsTheirRunsRecords(t *testing.T) {
	sp, err := spool.Open(t.TempDir(), "car", spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sp.Close() })
	engine, err := trial.New(t.Context(), trial.Config{Node: "car", StateDir: t.TempDir()},
		trial.Deps{Clock: clock.System{}, Host: still{}, Spool: sp, GPS: gps.NewPushed(clock.System{}),
			Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	f := &Face{engine: engine, spool: sp, attachments: attachments.NewStore(t.TempDir()),
		stored: capture.NewStore(t.TempDir())}
	if _, err := engine.Lease(t.Context(), "desk", wire.Lease{Holder: "desk", TTLS: 60}); err != nil {
		t.Fatal(err)
	}
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	load := func(run string, want ...string) {
		t.Helper()
		plan := wire.RunPlan{Run: run, Key: make([]byte, 32), Nodes: []wire.PlanNode{{Name: "car"}}}
		if _, err := f.Load(t.Context(), api.Peer{Name: "desk"}, plan); err != nil {
			t.Fatal(err)
		}
		f.haveCaptures(t, "after "+run+" was loaded", k, want...)
	}
	for _, run := range []string{"monday", "tuesday"} {
		load(run, map[string][]string{"tuesday": {"monday"}}[run]...)
		if _, err := sp.Append(wire.Header{Run: run, Trial: 1, Attempt: 1}, &wire.Event{Level: "info"}); err != nil {
			t.Fatal(err)
		}
		if err := sp.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		path := f.stored.Path(run, k)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("packets"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := wire.Confirmation{Run: "monday", Epoch: sp.Position().Epoch, Seq: sp.Position().Seq}
	if err := sp.Confirm(all); err != nil { // its captures may still be fetched
		t.Fatal(err)
	}
	load("wednesday", "monday", "tuesday")
	confirm := func(run string) func() error {
		return func() error { return sp.Confirm(wire.Confirmation{Run: run, Epoch: sp.Position().Epoch, Over: true}) }
	}
	if err := f.Forget("monday", confirm("monday")); err != nil {
		t.Fatal(err)
	}
	f.haveCaptures(t, "after monday was forgotten", k, "tuesday")
	if err := confirm("tuesday")(); err != nil {
		t.Fatal(err)
	}
	load("thursday")
}

// haveCaptures checks of which runs there are captures.
func (f *Face) haveCaptures(t *testing.T, when string, k wire.TrialKey, want ...string) {
	t.Helper()
	has := map[string]bool{}
	for _, run := range []string{"monday", "tuesday"} {
		_, _, err := f.Capture(run, k, 0, 1)
		has[run] = err == nil
	}
	for _, run := range want {
		if !has[run] {
			t.Errorf("%s the captures of %s are lost", when, run)
		}
		delete(has, run)
	}
	for run, there := range has {
		if there {
			t.Errorf("%s the captures of %s are still there", when, run)
		}
	}
}

// quiet gives sockets that get no packet.
type quiet struct{ machine }

func (quiet) Packets(context.Context, host.Packets) (*ring.Reader, host.PacketFilter, error) {
	feed, read, err := ring.Pair()
	if err != nil {
		return nil, host.PacketFilter{}, err
	}
	frames, err := ring.NewReader(read)
	return frames, host.PacketFilter{Interface: "wlan0"}, errors.Join(err, feed.Close())
}

// A capture of a former run of that name, whose archive was deleted before anybody fetched it, does not keep the
// attempt from being captured.
func TestACaptureTakesThePlaceOfAFormerRuns(t *testing.T) {
	f := &Face{host: quiet{}, reader: &provenance.Reader{}, stored: capture.NewStore(t.TempDir())}
	k := wire.TrialKey{Trial: 1, Attempt: 1}
	path := f.stored.Path("monday", k)
	err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, make([]byte, 1<<20), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	trial := wire.Trial{Number: 1, Capture: &wire.CapturePlan{SnapBytes: 96}}
	c, err := f.capture(t.Context(), "monday", k, trial, nil)
	if err != nil {
		t.Fatal(err)
	}
	told := c.Stop()
	if st, err := os.Stat(path); err != nil || st.Size() != told.FileBytes || told.FileBytes == 0 {
		t.Errorf("%v of %+v: %v", st, told, err)
	}
}
