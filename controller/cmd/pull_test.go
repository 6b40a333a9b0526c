package cmd

import (
	"errors"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// Pulling a complete rehearsal collects nothing and succeeds.
func TestPullOfAFinishedRehearsal(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1})
	if !a.Finished() || a.Info().Place != archive.PlaceRehearsal {
		t.Fatalf("the run is no finished rehearsal: %s", a.Info().Place)
	}
	var out strings.Builder
	c := PullCommand()
	c.SetOut(&out)
	err := (&session{archive: a, plan: a.Info().Plan}).pull(c, pullFlags{})
	if err != nil || !strings.Contains(out.String(), "was rehearsed, and is complete: nothing is left to collect") {
		t.Errorf("pull: %v\n%s", err, out.String())
	}
}

// A photo that a phone has lost is told for ever, and keeps nobody at the site.
func TestAPhotoThatNeverComesFailsNoVerification(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 2, Speeds: []float64{2.8}, Repetitions: 1})
	photo := wire.Attachment{MediaType: "image/jpeg", Bytes: 1, SHA256: strings.Repeat("a", 64)}
	line, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "notes", Seq: 1, Run: a.Info().Run},
		Body: &wire.Noted{ID: "1", Note: "mark", Text: "bus", By: "phone", Attachment: &photo}}.MarshalJSON()
	if err := errors.Join(err, a.Append("car", [][]byte{line}), a.Finish()); err != nil {
		t.Fatal(err)
	}
	const awaited = `the photo "bus" has not come from node car`
	var out strings.Builder
	err = pullFlags{copyTo: t.TempDir(), verify: true}.secondCopy(&out, a.Dir())
	if err != nil || strings.Count(out.String(), awaited) != 2 ||
		!strings.Contains(out.String(), "both copies verified") {
		t.Errorf("two copies: %v\n%s", err, out.String())
	}
	out.Reset()
	c := VerifyCommand()
	c.SetOut(&out)
	c.SetArgs([]string{a.Dir()})
	if err := c.Execute(); err != nil || !strings.Contains(out.String(), "awaited "+photo.Path()+": "+awaited) {
		t.Errorf("verify: %v\n%s", err, out.String())
	}
}
