package export

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

//attack:archive whoever is given a redacted export looks at the photos | none is in it, nor the name of one
func TestPhotosAreExportedAndNeverRedacted(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 1, Speeds: []float64{5.6}, Repetitions: 1})
	photo := []byte("a photo")
	sum := sha256.Sum256(photo)
	at := wire.Attachment{MediaType: "image/jpeg", Bytes: len(photo), SHA256: hex.EncodeToString(sum[:])}
	line, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "notes", Seq: 1, Run: a.Info().Run},
		Body: &wire.Noted{ID: "1", Note: "mark", Text: "antenna", By: "anna", Attachment: &at}}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Append("car", [][]byte{line, line}); err != nil {
		t.Fatal(err)
	}
	if err := a.AppendFile(at.Path(), photo); err != nil {
		t.Fatal(err)
	}
	if err := a.CloseFile(at.Path(), at.SHA256); err != nil {
		t.Fatal(err)
	}
	whole, redacted := t.TempDir(), t.TempDir()
	if _, err := Run(a, whole, Options{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(whole, at.Path())); err != nil || string(got) != string(photo) {
		t.Errorf("exported: %q, %v", got, err)
	}
	paths, err := Run(a, redacted, Options{Redact: true})
	if err != nil {
		t.Fatal(err)
	}
	said := false
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(path, "attachments") || strings.Contains(string(text), at.SHA256) {
			t.Errorf("%s has the photo, or its name", path)
		}
		said = said || strings.Contains(string(text), "photos and recordings of notes are left out")
	}
	if !said {
		t.Error("nothing says that they are left out")
	}
}
