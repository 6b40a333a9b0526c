package archive_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// signature is a node's on its records of an attempt, as its spool makes it.
func signature(t *testing.T, by keys.Identity, node string, seq, after uint64, trial int, lines ...[]byte) []byte {
	t.Helper()
	h := wire.Header{Node: node, Epoch: "e1", Seq: seq, Run: "synthetic-4", Trial: trial, Attempt: min(trial, 1)}
	all := sha256.New()
	var s wire.Signature
	for i, l := range lines {
		var of wire.Header
		must(t, json.Unmarshal(l, &of))
		if i == 0 {
			s.FirstSeq = of.Seq
		}
		s.LastSeq = of.Seq
		sum := sha256.Sum256(l)
		all.Write(sum[:])
	}
	s.Records, s.AfterSeq, s.SHA256 = uint64(len(lines)), after, hex.EncodeToString(all.Sum(nil))
	signed, err := by.Sign(s.Message(h))
	must(t, err)
	s.Key, s.Signature = signed.Key, signed.Signature
	b, err := json.Marshal(wire.Record{Header: h, Body: &s})
	must(t, err)
	return b
}

// signedRun is a finished run whose plan and manifest a controller signed, and the
// records of its first two trials their node.
func signedRun(t *testing.T, controller, car keys.Identity) string {
	t.Helper()
	a := create(t)
	must(t, a.SignWith(controller))
	var lines [][]byte
	for seq := range uint64(9) {
		lines = append(lines, line("car", "e1", seq+1, 0, 0))
	}
	for trial, first := range map[int]uint64{1: 2, 2: 6} {
		for seq := first; seq < first+3; seq++ {
			lines[seq-1] = line("car", "e1", seq, trial, 1)
		}
	}
	lines[4] = signature(t, car, "car", 5, 0, 1, lines[1:4]...)
	lines[8] = signature(t, car, "car", 9, 5, 2, lines[5:8]...)
	must(t, a.Append("car", lines))
	for trial := 1; trial <= 2; trial++ {
		must(t, a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: trial, Attempt: 1}, Outcome: wire.Accepted,
			Final: true}))
	}
	must(t, a.Finish())
	return a.Dir()
}

// resum writes every manifest again, as whoever edits an archive would.
func resum(t *testing.T, dir string) {
	t.Helper()
	for _, in := range []string{"trials/0001-a1", "trials/0002-a1", "."} {
		path := filepath.Join(dir, in, "MANIFEST.sha256")
		old, err := os.ReadFile(path)
		must(t, err)
		var out bytes.Buffer
		for l := range strings.Lines(string(old)) {
			if _, name, ok := strings.Cut(strings.TrimSuffix(l, "\n"), "  "); ok {
				if raw, err := os.ReadFile(filepath.Join(dir, in, name)); err == nil {
					fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(raw), name)
				}
			}
		}
		must(t, os.WriteFile(path, out.Bytes(), 0o644))
	}
}

func all(t *testing.T, dir string) (out []string, nodes []archive.NodeSigned) {
	t.Helper()
	findings, err := archive.Verify(dir)
	must(t, err)
	nodes, more, err := archive.VerifyRecords(dir)
	must(t, err)
	for _, f := range append(findings, more...) {
		out = append(out, f.String())
	}
	return out, nodes
}

// sound is a run in which nothing is wrong, and what its nodes signed.
func sound(t *testing.T, dir string) (*archive.Archive, []archive.NodeSigned) {
	t.Helper()
	found, nodes := all(t, dir)
	if len(found) > 0 {
		t.Errorf("found %q", found)
	}
	return read(t, dir), nodes
}

func TestASignedRunSaysByWhom(t *testing.T) {
	controller, car := testnet.Identity(t, "controller"), testnet.Identity(t, "car")
	dir := signedRun(t, controller, car)
	a, nodes := sound(t, dir)
	run, err := a.Signed()
	must(t, err)
	plan, err := a.PlanSealed()
	must(t, err)
	if run.Pin != controller.Pin || plan.Pin != controller.Pin || len(plan.SHA256) != 64 {
		t.Errorf("signed by %+v, planned by %+v, want %s", run, plan, controller.Pin)
	}
	if len(nodes) != 1 || nodes[0].Records != 7 || nodes[0].Signed != 6 || len(nodes[0].Pins) != 1 ||
		nodes[0].Pins[0] != car.Pin {
		t.Errorf("%+v, want 6 of 7 records by %s", nodes, car.Pin)
	}
}

// Who edits a signed archive, and its checksums too, is found.
//
//attack:archive an archive that is edited, and its checksums too | the controller's signature; the nodes' of their
//attack:and records
//attack:controller a plan that is written after the fact | its checksums are signed before the first trial
func TestAnEditedAndResummedArchiveDoesNotVerify(t *testing.T) {
	const records = "trials/0001-a1/records/car.ndjson"
	without := func(part string) func([]byte) []byte {
		return func(b []byte) (out []byte) {
			for l := range bytes.Lines(b) {
				if !bytes.Contains(l, []byte(part)) {
					out = append(out, l...)
				}
			}
			return out
		}
	}
	signatures := []string{"MANIFEST.signature.json", "PLAN.signature.json", "PLAN.sha256"}
	strip := func(t *testing.T, dir string) { // as if the run were of a version that signs nothing
		for _, name := range signatures {
			must(t, os.Remove(filepath.Join(dir, name)))
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string
	}{
		"a record is edited": {replaced("/"+records, "record 3", "record 7"),
			"changed MANIFEST.sha256: check signature"},
		"the manifest's signature is taken off": {removed("/MANIFEST.signature.json"),
			"missing MANIFEST.signature.json"},
		"the plan's signature is taken off": {removed("/PLAN.signature.json"),
			"changed MANIFEST.sha256"},
		"the campaign is edited": {edited("/campaign.yaml", func(b []byte) []byte { return append(b, "# more\n"...) }),
			"changed campaign.yaml: it is not what was sealed before the first trial"},
		"the plan is sealed again": {edited("/PLAN.sha256", func(b []byte) []byte {
			return append([]byte("# sealed\n"), b...)
		}),
			"changed PLAN.sha256: check signature"},
		"a signature of another text": {func(t *testing.T, d string) {
			raw, err := os.ReadFile(d + "/PLAN.signature.json")
			must(t, err)
			must(t, os.WriteFile(d+"/MANIFEST.signature.json", raw, 0o644))
		}, "changed MANIFEST.sha256: check signature"},
		"a signature that is none": {func(t *testing.T, d string) {
			must(t, os.WriteFile(d+"/MANIFEST.signature.json", []byte(`{"key":"AAAA","signature":"AAAA"}`), 0o644))
		}, "changed MANIFEST.sha256: check signature"},
		"no controller's, and a record is edited": {func(t *testing.T, d string) {
			strip(t, d)
			replaced("/"+records, "record 3", "record 7")(t, d)
		}, "changed " + records + ": 3 of 3 records, 2 to 4, are there, and they are not as car signed them"},
		"no controller's, and a record is taken out": {func(t *testing.T, d string) {
			strip(t, d)
			edit(t, d+"/"+records, without("record 3"))
		}, "changed " + records + ": 2 of 3 records"},
		"no controller's, and a record is put in": {func(t *testing.T, d string) {
			strip(t, d)
			edit(t, d+"/"+records, func(b []byte) []byte {
				return append(append(line("car", "e1", 3, 1, 1), '\n'), b...)
			})
		}, "changed " + records + ": 4 of 3 records"},
		"no controller's, and two records change places": {func(t *testing.T, d string) {
			strip(t, d)
			edit(t, d+"/"+records, func(b []byte) []byte {
				l := bytes.SplitAfter(b, []byte("\n"))
				l[0], l[1] = l[1], l[0]
				return bytes.Join(l, nil)
			})
		}, "changed " + records + ": 3 of 3 records"},
		"no controller's, and an attempt's signature is taken out with a record": {func(t *testing.T, d string) {
			strip(t, d)
			edit(t, d+"/"+records, func(b []byte) []byte { return without("record 3")(without(`"signature"`)(b)) })
		}, "missing trials/0002-a1/records/car.ndjson: car's signature 5, which 9 follows"},
		"no controller's, and an attempt's records become another's": {func(t *testing.T, d string) {
			strip(t, d)
			raw, err := os.ReadFile(d + "/trials/0002-a1/records/car.ndjson")
			must(t, err)
			must(t, os.WriteFile(d+"/"+records, bytes.ReplaceAll(raw, []byte(`"trial":2`), []byte(`"trial":1`)), 0o644))
		}, "check signature: it is not of this key and text"},
		"no controller's, and one node's records become another's": {func(t *testing.T, d string) {
			strip(t, d)
			must(t, os.Rename(d+"/"+records, d+"/trials/0001-a1/records/roadside.ndjson"))
		}, `names node "car"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := signedRun(t, testnet.Identity(t, "controller"), testnet.Identity(t, "car"))
			c.change(t, dir)
			resum(t, dir)
			if found, _ := all(t, dir); !strings.Contains(strings.Join(found, "\n"), c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// However many keys sign and lives begin, what is held of them is bounded.
//
//attack:archive records signed by keys and lives without end, to fill the memory of who verifies | 64 keys of a node,
//attack:and 10,000 lives and a million signatures of a run
func TestSignaturesAreBounded(t *testing.T) {
	a := create(t)
	var lines [][]byte
	for i := range uint64(70) {
		record := line("car", "e1", 2*i+1, 1, 1)
		lines = append(lines, record, signature(t, testnet.Identity(t, "car"), "car", 2*i+2, 0, 1, record))
	}
	must(t, a.Append("car", lines))
	nodes, found, err := archive.VerifyRecords(a.Dir())
	must(t, err)
	if len(found) != 6 || !strings.Contains(found[0].String(), "signed by more than 64 keys") ||
		len(nodes[0].Pins) != 64 {
		t.Errorf("found %v, of %d keys", found, len(nodes[0].Pins))
	}
}

// A run of a version that signed nothing is read, and verifies as what it is.
func TestARunWithoutSignaturesIsNotSigned(t *testing.T) {
	dir := synthetic.Run(t, options()).Dir()
	a, nodes := sound(t, dir)
	for _, of := range []func() (archive.Signature, error){a.Signed, a.PlanSealed} {
		if s, err := of(); err != nil || s.Pin != "" {
			t.Errorf("signed by %+v, %v", s, err)
		}
	}
	for _, n := range nodes {
		if n.Signed != 0 || len(n.Pins) != 0 || n.Records == 0 {
			t.Errorf("%+v", n)
		}
	}
}

// A run that is resumed and finished again is signed again, and its plan stays
// sealed as it was.
func TestARunThatIsWrittenAgainIsSignedAgain(t *testing.T) {
	controller, car := testnet.Identity(t, "controller"), testnet.Identity(t, "car")
	dir := signedRun(t, controller, car)
	sealed, err := os.ReadFile(dir + "/PLAN.signature.json")
	must(t, err)
	// The lock of the first is the test's own: a copy stands for the folder after it.
	second := filepath.Join(t.TempDir(), "run")
	must(t, archive.Copy(dir, second))
	a, err := archive.Open(second)
	must(t, err)
	must(t, a.SignWith(controller))
	must(t, a.Note("once more"))
	if found, _ := all(t, second); len(found) != 1 || !strings.Contains(found[0], "unfinished") {
		t.Errorf("while it is written: %q", found)
	}
	must(t, a.Finish())
	must(t, a.Close())
	if found, _ := all(t, second); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	if again, err := os.ReadFile(second + "/PLAN.signature.json"); err != nil || !bytes.Equal(again, sealed) {
		t.Errorf("the plan is sealed by %s, was by %s: %v", again, sealed, err)
	}
}

// signedShards are the finished shards of a run of two trials, whose plan and
// manifest a controller signed.
func signedShards(t *testing.T, controller, car keys.Identity) (shards []string) {
	t.Helper()
	dir := t.TempDir()
	for n := 1; n <= 2; n++ {
		info := synthetic.Info(options())
		info.Shard = &archive.Shard{Number: n, Of: 2}
		a, err := archive.Create(filepath.Join(dir, fmt.Sprint("shard-", n)), info)
		must(t, err)
		must(t, a.SignWith(controller))
		first := uint64(10 * n)
		lines := [][]byte{line("car", "e1", first, n, 1), line("car", "e1", first+1, 0, 0)}
		lines = append(lines, signature(t, car, "car", first+2, 0, n, lines[0]))
		must(t, a.Append("car", lines))
		must(t, a.Decide(wire.Verdict{TrialKey: wire.TrialKey{Trial: n, Attempt: 1}, Outcome: wire.Accepted,
			Final: true}))
		must(t, errors.Join(a.Finish(), a.Close()))
		shards = append(shards, a.Dir())
	}
	return shards
}

// A merged run says who signed each shard, and who put them together.
//
//attack:archive a merged run of which a shard was left out, exchanged or edited | it keeps what every shard signed; the
//attack:and merge is signed over that
func TestAMergedRunIsWhatItsShardsSigned(t *testing.T) {
	controller, merger := testnet.Identity(t, "controller"), testnet.Identity(t, "controller")
	shards := signedShards(t, controller, testnet.Identity(t, "car"))
	others := signedShards(t, testnet.Identity(t, "controller"), testnet.Identity(t, "car"))
	merged := func(t *testing.T, by *keys.Identity) string {
		dir := filepath.Join(t.TempDir(), "whole")
		must(t, archive.Merge(dir, shards, by))
		return dir
	}
	dir := merged(t, &merger)
	a, _ := sound(t, dir)
	run, err := a.Signed()
	must(t, err)
	signed, err := a.Shards()
	must(t, err)
	if run.Pin != merger.Pin || len(signed) != 2 || signed[1].Run.Pin != controller.Pin ||
		signed[1].Plan.Pin != controller.Pin || signed[1].Shard != (archive.Shard{Number: 2, Of: 2}) {
		t.Errorf("merged by %+v of %+v", run, signed)
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string
	}{
		"a verdict is edited": {replaced("/trials/0001-a1/verdict.json", "accepted", "rejected"),
			"changed trials/0001-a1/MANIFEST.sha256: its SHA-256 is not that of the shard's manifest"},
		"a shard is left out": {removed("/shards/2"),
			"missing shards/2/MANIFEST.sha256: the run was merged of 2 shards"},
		"a shard stands for another": {func(t *testing.T, d string) {
			must(t, os.RemoveAll(d+"/shards/2"))
			must(t, os.CopyFS(d+"/shards/2", os.DirFS(d+"/shards/1")))
		}, "changed shards/2/run.json: it is not of shard 2/2"},
		"another's shard": {func(t *testing.T, d string) {
			for _, name := range []string{"run.json", "MANIFEST.sha256", "MANIFEST.signature.json", "PLAN.sha256",
				"PLAN.signature.json"} {
				raw, err := os.ReadFile(filepath.Join(others[1], name))
				must(t, err)
				must(t, os.WriteFile(d+"/shards/2/"+name, raw, 0o644))
			}
		}, "changed trials/0002-a1/MANIFEST.sha256: its SHA-256 is not that of the shard's manifest"},
		"a shard's manifest is edited": {edited("/shards/2/MANIFEST.sha256", func(b []byte) []byte {
			return b[bytes.IndexByte(b, '\n')+1:]
		}),
			"changed shards/2/MANIFEST.sha256: check signature"},
		"a shard's sheet is edited": {replaced("/shards/2/run.json", `"seed": 4`, `"seed": 5`),
			"changed shards/2/run.json: it is not what was sealed before the first trial"},
		"the schedule is edited": {edited("/schedule.json", func(b []byte) []byte { return append(b, '\n') }),
			"changed schedule.json: it is not what was sealed before the first trial"},
		"a shard has another schedule": {func(t *testing.T, d string) {
			edit(t, d+"/schedule.json", func(b []byte) []byte {
				must(t, os.WriteFile(d+"/shards/2/schedule.json", b, 0o644))
				return bytes.Replace(b, []byte(`"attempts_max": `), []byte(`"attempts_max": 1`), 1)
			})
		}, "changed shards/2/schedule.json: the shard's schedule is not that of the run"},
		"what lies between trials is edited": {replaced("/between/car.ndjson", "record 11", "record 17"),
			"changed MANIFEST.sha256: check signature"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := merged(t, &merger)
			c.change(t, dir)
			resum(t, dir)
			if found, _ := all(t, dir); !strings.Contains(strings.Join(found, "\n"), c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
	// Its shards' signatures stand without the merge's.
	a = read(t, merged(t, nil))
	run, err = a.Signed()
	must(t, err)
	if signed, err = a.Shards(); err != nil || run.Pin != "" || signed[0].Run.Pin != controller.Pin {
		t.Errorf("merged by %+v of %+v: %v", run, signed, err)
	}
}

// edited changes a file of a run, by its path from there; replaced puts one text for
// another there; removed takes the file, or the folder, away.
func edited(path string, change func([]byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) { edit(t, filepath.Join(dir, path), change) }
}

func replaced(path, old, by string) func(*testing.T, string) {
	return edited(path, func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(by), 1) })
}

func removed(path string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		must(t, func() error { _, err := os.Lstat(filepath.Join(dir, path)); return err }())
		must(t, os.RemoveAll(filepath.Join(dir, path)))
	}
}
