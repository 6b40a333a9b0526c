package face

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/attachments"
	"fieldmesh.dev/fieldmesh/node-agent/spool"
	"fieldmesh.dev/fieldmesh/node-agent/trial"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A run's photos go with its records, those of no run with the last run's, and none where the records stay.
func TestPhotosAreForgottenAfterTheRecords(t *testing.T) {
	sp, err := spool.Open(t.TempDir(), "car", spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sp.Close() })
	f := &Face{engine: &trial.Engine{}, spool: sp, attachments: attachments.NewStore(t.TempDir())}
	shas := map[string]string{} // of the photo of a run
	for _, run := range []string{"monday", "tuesday", ""} {
		sum := sha256.Sum256([]byte(run))
		shas[run] = hex.EncodeToString(sum[:])
		if err := f.attachments.Name(wire.Attachment{MediaType: "image/jpeg", Bytes: 9, SHA256: shas[run]},
			run); err != nil {
			t.Fatal(err)
		}
		if _, err := sp.Append(wire.Header{Run: run}, &wire.Event{Level: "info", Text: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := sp.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	forget := func(run string, want ...string) {
		t.Helper()
		err := f.Forget(run, func() error {
			if run == "" {
				return errors.New("the disk is full")
			}
			return sp.Confirm(wire.Confirmation{Run: run, Epoch: sp.Position().Epoch, Over: true})
		})
		if (err == nil) != (run != "") {
			t.Errorf("forget %q: %v", run, err)
		}
		left := 0
		for _, of := range want {
			if _, err := f.attachments.Held(shas[of]); err != nil {
				t.Errorf("after %q, that of %q: %v", run, of, err)
			}
		}
		for _, sha := range shas {
			if _, err := f.attachments.Held(sha); err == nil {
				left++
			}
		}
		if left != len(want) {
			t.Errorf("after %q, %d are left, want those of %q", run, left, want)
		}
	}
	forget("", "monday", "tuesday", "") // the records stay
	forget("monday", "tuesday", "")
	forget("monday", "tuesday", "") // again, with nothing of it
	forget("tuesday")
}
