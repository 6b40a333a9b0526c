package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/jpeg"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/report"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

// noted adds a mark of the car's phone to a run, with a file that it may have.
func noted(t *testing.T, a *archive.Archive, seq uint64, text, mediaType string, file []byte, comes bool) string {
	t.Helper()
	n := &wire.Noted{ID: text, Note: "mark", Text: text, By: "phone", NotedBootNs: new(int64(seq) * 1e9)}
	if file != nil {
		sum := sha256.Sum256(file)
		n.Attachment = &wire.Attachment{MediaType: mediaType, Bytes: len(file), SHA256: hex.EncodeToString(sum[:])}
	}
	var lines [][]byte
	for i, b := range []wire.Body{&wire.WallClock{OwnWallOffsetNs: 1_800_000_000e9}, n} {
		line, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "notes", Seq: 2*seq + uint64(i),
			Run: a.Info().Run}, Body: b}.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	if err := a.Append("car", lines); err != nil {
		t.Fatal(err)
	}
	if !comes {
		return ""
	}
	if err := a.AppendFile(n.Attachment.Path(), file); err != nil {
		t.Fatal(err)
	}
	if err := a.CloseFile(n.Attachment.Path(), n.Attachment.SHA256); err != nil {
		t.Fatal(err)
	}
	return n.Attachment.Path()
}

func TestWhatWasNotedIsListed(t *testing.T) {
	a := synthetic.Run(t, synthetic.Options{Seed: 1, Speeds: []float64{5.6}, Repetitions: 1})
	var photo bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewGray(image.Rect(0, 0, 160, 120)), nil); err != nil {
		t.Fatal(err)
	}
	noted(t, a, 1, "<b>bus</b> passed", "", nil, false)
	noted(t, a, 2, "antenna", "", nil, false) // by an agent that knew no photos
	path := noted(t, a, 3, "antenna", "image/jpeg", photo.Bytes(), true)
	spoken := noted(t, a, 4, "spoken", "audio/mp4", []byte("ftyp"), true)
	noted(t, a, 5, "lost", "image/jpeg", []byte("none"), false)
	late, err := wire.Record{Header: wire.Header{Node: "car", Epoch: "notes", Seq: 20, Run: a.Info().Run},
		Body: &wire.Noted{ID: "late", Note: "mark", Text: "a month ago", By: "phone"}}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Append("car", [][]byte{late}); err != nil {
		t.Fatal(err)
	}
	html := of(t, a)
	has(t, html, "Noted on the way", "08:00:01", "&lt;b&gt;bus&lt;/b&gt; passed", "phone, car", "no attempt known",
		`<a href="`+path+`"><img src="`+path+`"`, `<audio controls preload="none" src="`+spoken+`">`,
		"Its photo is not in the archive",
		`<tr><td>–</td><td class="words">no attempt known</td><td class="words">a month ago`)
	hasNot(t, html, "<b>bus")
	if n := strings.Count(html, `<td class="words">antenna`); n != 1 {
		t.Errorf("a mark that came again with its photo is listed %d times", n)
	}
	var alone strings.Builder
	if _, err := report.WriteAlone(a, &alone); err != nil {
		t.Fatal(err)
	}
	has(t, alone.String(), "Its photo is in the run's folder on the controller", "Its recording is in the run's folder",
		"Its photo is not in the archive")
	hasNot(t, alone.String(), "<img", "<audio")
	hasNot(t, written(t, synthetic.Options{Seed: 1, Speeds: []float64{5.6}, Repetitions: 1}), "Noted on the way")
}
