package run

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

func TestCapturesComeIntoTheArchive(t *testing.T) {
	const file = "0123456789abcdef"
	for name, c := range map[string]struct {
		capture, told, held string
		asked               []int64 // absent: whatever
		event               string  // the event that reports a loss
	}{
		"piece by piece":                                  {capture: file, asked: []int64{0, 4, 5, 9, 13}},
		"from where a former controller was":              {capture: file, held: file[:10], asked: []int64{10, 14, 15}},
		"from the start, where what it left is another's": {capture: file, held: "another's"},
		"all there but for its name":                      {capture: file, held: file},
		"not there any more":                              {told: file, event: "there is no capture"},
		"shorter than it should be": {capture: file[:7], told: file,
			event: "the file ends at byte 7 of 16"},
		"another than it should be": {capture: "0123456789abcdeX", told: file, event: "SHA-256"},
	} {
		t.Run(name, func(t *testing.T) {
			lane, field := newLane(t, "only")
			road := field.nodes["road"]
			if c.capture != "" {
				road.capture = []byte(c.capture)
			}
			if c.told != "" {
				road.told = []byte(c.told)
			}
			r := newRunner(t, 1, 1, lane)
			k := wire.TrialKey{Trial: 1, Attempt: 1}
			if c.held != "" {
				field.armed = func() {
					if err := r.Archive.AppendCapture(k, "road", []byte(c.held)); err != nil {
						t.Error(err)
					}
				}
			}
			if err := r.Run(within(t)); err != nil {
				t.Fatal(err)
			}
			if v := r.Archive.Decisions(); len(v) != 1 || v[0].Outcome != "accepted" {
				t.Errorf("decided %+v", v)
			}
			if c.asked != nil && !slices.Equal(road.asked, c.asked) {
				t.Errorf("read from %v, want %v", road.asked, c.asked)
			}
			checkCapture(t, r.Archive, k, file, c.event)
			if err := r.Archive.Finish(); err != nil {
				t.Fatal(err)
			}
			if findings, err := archive.Verify(r.Archive.Dir()); err != nil || len(findings) != 0 {
				t.Errorf("findings %v, %v", findings, err)
			}
		})
	}
}

// checkCapture wants the whole capture in the archive, or an event that says
// why it is not.
func checkCapture(t *testing.T, a *archive.Archive, k wire.TrialKey, want, event string) {
	t.Helper()
	f, err := a.OpenCapture(k, "road")
	if event == "" {
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got, err := io.ReadAll(f); err != nil || string(got) != want {
			t.Errorf("%q in the archive, %v", got, err)
		}
		return
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a capture is in the archive: %v", err)
	}
	records, err := a.All(k.Trial, k.Attempt)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(records, func(r wire.Record) bool {
		e, ok := r.Body.(*wire.Event)
		return ok && strings.Contains(e.Text, "the capture of node road is lost") && strings.Contains(e.Text, event)
	}) {
		t.Errorf("no event says %q", event)
	}
}
