//go:build e2e

package influx

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	line "fieldmesh.dev/fieldmesh/internal/influx"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// hostileTexts are all texts of up to three pieces that mean something to line protocol.
func hostileTexts() (all []string) {
	pieces := []string{"a", `\`, ",", " ", "=", `"`, "\n", ",node=b", "é"}
	all = append(all, pieces...)
	for begin := 0; len(all) < len(pieces)*(1+len(pieces)+len(pieces)*len(pieces)); {
		end := len(all)
		for _, text := range all[begin:end] {
			for _, p := range pieces {
				all = append(all, text+p)
			}
		}
		begin = end
	}
	return all
}

//attack:archive a name or a text that adds points, tags or fields to the database's by a backslash, which its server
//attack:and reads in another way than its description says | every text comes back from a real server as it was sent
func TestHostileTextsAreTextsToTheServer(t *testing.T) {
	d := newInfluxd(t)
	w := d.prepare()
	e := line.NewEncoder()
	var batch []byte
	texts := hostileTexts()
	for i, text := range texts {
		record := wire.Record{Header: wire.Header{Node: "n" + text, Epoch: "e", Seq: uint64(i + 1),
			TBootNs: int64(i+1) * 1e6, Run: "r" + text}, Body: &wire.Event{Level: "l" + text, Text: text}}
		raw, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		p, err := e.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if batch, err = e.Append(batch, p, 1_790_000_000e9); err != nil {
			t.Fatal(err)
		}
	}
	refused, err := w.Write(t.Context(), batch)
	if len(refused) > 0 {
		t.Fatalf("%d lines are refused, the first of them: %v", len(refused), refused[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	rows := d.admin(`SELECT * FROM "fm_event"`)
	if len(rows) != len(texts) {
		t.Fatalf("%d points are stored of %d texts", len(rows), len(texts))
	}
	for _, row := range rows {
		seq, _ := row["seq"].(json.Number)
		i, err := seq.Int64()
		if err != nil || i < 1 || int(i) > len(texts) {
			t.Fatalf("a point that nobody sent: %v", row)
		}
		text := texts[i-1]
		flat := strings.ReplaceAll(text, "\n", " ") // a tag has no line break
		tag := strings.TrimRight(flat, `\`)         // and no backslash at its end
		for name, want := range map[string]string{"node": "n" + tag, "run": "r" + tag, "level": "l" + tag} {
			if got := fmt.Sprint(row[name]); got != want {
				t.Errorf("%s of %q comes back as %q", name, text, got)
			}
		}
		if got := fmt.Sprint(row["text"]); got != text && got != flat {
			t.Errorf("text %q comes back as %q", text, got)
		}
	}
	for what, want := range map[string]int{"MEASUREMENTS": 1, `TAG KEYS FROM "fm_event"`: 3} {
		if got := d.admin("SHOW " + what); len(got) != want {
			t.Errorf("SHOW %s: %v", what, got)
		}
	}
}
