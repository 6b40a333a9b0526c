package archive_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/synthetic"
)

func edit(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, change(raw), 0o644))
}

//attack:archive a record, or a manifest, that names a path
//attack:archive links out of the archive, by which other files are read or written
//attack:archive pipes and devices, whose reader waits or never ends
//attack:archive an archive that is damaged, or edited without its checksums | SHA-256 manifests
func TestVerifyNamesEveryFault(t *testing.T) {
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	write := func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("x\n"), 0o644)) }
	cases := map[string]struct {
		damage func(t *testing.T, dir string)
		want   []string // findings, "problem path"
	}{
		"nothing": {func(*testing.T, string) {}, nil},
		"derived files, and a street map": {func(t *testing.T, d string) {
			write(t, d+"/report.html")
			write(t, d+"/map.pmtiles")
			write(t, d+"/metrics.csv")
			write(t, d+"/.influx-cursor")
			must(t, os.Mkdir(d+"/export", 0o755))
			write(t, d+"/export/timelines.csv")
		}, nil},
		"a changed record": {func(t *testing.T, d string) { edit(t, d+"/trials/0001-a1/records/car.ndjson", flip) },
			[]string{"changed trials/0001-a1/records/car.ndjson"}},
		"a cut record": {func(t *testing.T, d string) { edit(t, d+"/trials/0002-a1/records/roadside.ndjson", cut) },
			[]string{"truncated trials/0002-a1/records/roadside.ndjson"}},
		"a lost output": {func(t *testing.T, d string) {
			must(t, os.Remove(d+"/trials/0001-a1/verdict.json"))
		}, []string{"missing trials/0001-a1/verdict.json"}},
		"a lost trial": {func(t *testing.T, d string) {
			must(t, os.RemoveAll(d+"/trials/0002-a1"))
		}, []string{"missing trials/0002-a1/MANIFEST.sha256"}},
		"a stranger in a trial": {func(t *testing.T, d string) { write(t, d+"/trials/0001-a1/records/eve.ndjson") },
			[]string{"unexpected trials/0001-a1/records/eve.ndjson"}},
		"a stranger in the run": {func(t *testing.T, d string) {
			write(t, d+"/notes.txt")
		}, []string{"unexpected notes.txt"}},
		"a changed campaign": {func(t *testing.T, d string) {
			edit(t, d+"/campaign.yaml", flip)
		}, []string{"changed campaign.yaml"}},
		"a lost schedule": {func(t *testing.T, d string) {
			must(t, os.Remove(d+"/schedule.json"))
		}, []string{"missing schedule.json"}},
		"a link": {func(t *testing.T, d string) {
			must(t, os.Remove(d+"/trials/0001-a1/verdict.json"))
			must(t, os.Symlink("/etc/hostname", d+"/trials/0001-a1/verdict.json"))
		}, []string{"unexpected trials/0001-a1/verdict.json"}},
		"a name that a terminal would obey": {func(t *testing.T, d string) { write(t, d+"/a\033[2J\007") },
			[]string{"unexpected a\033[2J\007"}},
		"a forged manifest": {func(t *testing.T, d string) {
			must(t, os.Remove(d+"/trials/0001-a1/verdict.json"))
			edit(t, d+"/trials/0001-a1/MANIFEST.sha256", func([]byte) []byte { return []byte("# nothing\n") })
		}, []string{
			"truncated trials/0001-a1/MANIFEST.sha256", "unexpected trials/0001-a1/iperf3/car-bulk-client.json",
			"unexpected trials/0001-a1/iperf3/roadside-bulk-server.json", "unexpected trials/0001-a1/plan.json",
			"unexpected trials/0001-a1/provenance/car.json", "unexpected trials/0001-a1/provenance/roadside.json",
			"unexpected trials/0001-a1/records/car.ndjson", "unexpected trials/0001-a1/records/field.ndjson",
			"unexpected trials/0001-a1/records/roadside.ndjson",
		}},
		"a cut journal": {func(t *testing.T, d string) {
			edit(t, d+"/journal.ndjson", cut)
		}, []string{"truncated journal.ndjson"}},
		"two faults": {func(t *testing.T, d string) {
			edit(t, d+"/run.json", flip)
			must(t, os.Remove(d+"/trials/0001-a1/plan.json"))
		}, []string{"changed run.json", "missing trials/0001-a1/plan.json"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := synthetic.Run(t, options())
			c.damage(t, a.Dir())
			findings, err := archive.Verify(a.Dir())
			must(t, err)
			var got []string
			for _, f := range findings {
				problem := f.Problem
				if f.Path == "run.json" {
					problem = "changed" // a flipped bit may also make it unreadable
				}
				got = append(got, problem+" "+f.Path)
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func TestVerifyOfAnUnfinishedRun(t *testing.T) {
	a := create(t)
	must(t, a.Append("car", [][]byte{line("car", "e1", 1, 1, 1), line("car", "e1", 2, 1, 1)}))
	findings, err := archive.Verify(a.Dir())
	must(t, err)
	if len(findings) != 1 || findings[0].Problem != archive.Unfinished {
		t.Errorf("found %v, want only that it is unfinished", findings)
	}
	edit(t, a.Dir()+"/trials/0001-a1/records/car.ndjson", func(b []byte) []byte { return b[:len(b)-3] })
	findings, err = archive.Verify(a.Dir())
	must(t, err)
	if len(findings) != 2 || findings[0].Problem != archive.Truncated {
		t.Errorf("found %v, want the lost bytes too", findings)
	}
}

// What is read of an archive from elsewhere is its own, and bounded.
//
//attack:archive links out of the archive, by which other files are read or written | an archive with a link is not
//attack:and read
//attack:archive pipes and devices, whose reader waits or never ends | an archive with one is not read
//attack:archive a line or a file without an end | a line has 17 MiB at most, a file that is read whole 64 MiB
//attack:archive folders in each other, or files by the million | counted before anything is read
//attack:archive a journal or a schedule of millions | counted while it is read
//attack:archive JSON that grows a hundredfold when it is decoded | weighed before it is decoded
//attack:archive a number of shards by which nothing can be divided | it is checked when it is read
func TestHostileArchivesAreNotRead(t *testing.T) {
	cases := map[string]struct {
		damage func(t *testing.T, dir string)
		want   string
	}{
		"a link to another's file": {func(t *testing.T, d string) {
			must(t, os.Symlink("/etc/hostname", d+"/trials/0001-a1/captures"))
		}, "is a link or a device"},
		"an export that leads out": {func(t *testing.T, d string) {
			must(t, os.Symlink(t.TempDir(), d+"/export"))
		}, "is a link or a device"},
		"a line without an end": {func(t *testing.T, d string) {
			must(t, os.Truncate(d+"/journal.ndjson", 1<<30))
		}, "a line has more than 17 MiB"},
		"a plan without an end": {func(t *testing.T, d string) {
			must(t, os.Truncate(d+"/schedule.json", 1<<30))
		}, "it has 1073741824 bytes"},
		"a pipe, whose reader would wait": {func(t *testing.T, d string) {
			must(t, os.Remove(d+"/campaign.yaml"))
			must(t, unix.Mkfifo(d+"/campaign.yaml", 0o644))
		}, "is a link or a device"},
		"folders in folders": {func(t *testing.T, d string) {
			must(t, os.MkdirAll(d+"/trials"+strings.Repeat("/a", 40), 0o755))
		}, "folders lie deeper than 16 in each other"},
		"a journal of many": {func(t *testing.T, d string) {
			edit(t, d+"/journal.ndjson", func(b []byte) []byte { return bytes.Repeat([]byte("{}\n"), 200_001) })
		}, "more than 200000 entries"},
		"a journal that grows": {func(t *testing.T, d string) {
			edit(t, d+"/journal.ndjson", func(b []byte) []byte {
				return []byte(`{"verdict":{"trial":1,"attempt":1,"checks":[` + strings.Repeat("{},", 500_000) +
					"{}]}}\n")
			})
		}, "would take more than 96 MiB"},
		"a schedule of many": {func(t *testing.T, d string) {
			edit(t, d+"/schedule.json", func(b []byte) []byte {
				return []byte(`{"trials":[` + strings.Repeat("{},", wire.MaxTrials) + "{}]}")
			})
		}, fmt.Sprintf("it has %d trials, and may have %d", wire.MaxTrials+1, wire.MaxTrials)},
		"a schedule that grows": {func(t *testing.T, d string) {
			edit(t, d+"/schedule.json", func(b []byte) []byte {
				return []byte(`{"trials":[` + strings.Repeat("{},", 500_000) + "{}]}")
			})
		}, "would take more than 96 MiB"},
		"a shard of none": {func(t *testing.T, d string) {
			edit(t, d+"/run.json", func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"seed"`), []byte(`"shard": {"number": 1, "of": 0}, "seed"`), 1)
			})
		}, "there is no shard 1/0"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a := synthetic.Run(t, options())
			c.damage(t, a.Dir())
			if _, err := archive.Read(a.Dir()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("read with %v, want %q", err, c.want)
			}
		})
	}
	// The run's own folder may be reached by a link.
	a := synthetic.Run(t, options())
	link := filepath.Join(t.TempDir(), "run")
	must(t, os.Symlink(a.Dir(), link))
	if _, err := archive.Read(link); err != nil {
		t.Error(err)
	}
}

// The records of an attempt are held together, and no more than an attempt can have.
//
//attack:archive records of an attempt without an end | 512 MiB of an attempt are held together at most
func TestHostileRecordsAreNotHeld(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(path string) error
		want   string
	}{
		"without an end": {func(path string) error { return os.Truncate(path, 1<<30) }, "MiB, and may have 512"},
		"that grow": {func(path string) error {
			return os.WriteFile(path, []byte(`{"kind":"routing","x":[`+strings.Repeat("{},", 500_000)+"{}]}\n"), 0o644)
		}, "would take more than 96 MiB"},
	} {
		a := synthetic.Run(t, options())
		must(t, c.damage(a.Dir()+"/trials/0001-a1/records/car.ndjson"))
		if _, err := read(t, a.Dir()).All(1, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: read with %v, want %q", name, err, c.want)
		}
	}
}

// Of very many findings the first are listed, and that there are more counts as what
// may be an altered file.
//
//attack:archive findings by the million, among which the one that counts is lost | after a thousand it says that
//attack:and there is more, as of an altered file
func TestFindingsAreBounded(t *testing.T) {
	a := synthetic.Run(t, options())
	for i := range 1100 {
		must(t, os.WriteFile(fmt.Sprintf("%s/x%d", a.Dir(), i), nil, 0o644))
	}
	findings, err := archive.Verify(a.Dir())
	must(t, err)
	if n := len(findings); n != 1001 || !strings.Contains(findings[n-1].String(), "there is more") {
		t.Errorf("%d findings, the last %v", n, findings[n-1])
	}
	if altered := archive.Altered(findings); len(altered) != 1 {
		t.Errorf("altered: %v", altered)
	}
}

//attack:archive a file's name that a terminal would obey | it is escaped
func TestFindingsMoveNoTerminal(t *testing.T) {
	f := archive.Finding{Path: "a\033]0;OWNED\007é", Problem: archive.Unexpected}
	if got, want := f.String(), `unexpected a\x1b]0;OWNED\aé`; got != want {
		t.Errorf("said as %q, want %q", got, want)
	}
	n := archive.NodeSigned{Node: "car\033[2J"}
	if got, want := n.String(), `car\x1b[2J: 0 of 0 records are signed`; got != want {
		t.Errorf("said as %q, want %q", got, want)
	}
	n = archive.NodeSigned{Node: "car", Records: 9, Signed: 9, Pins: []string{"a", "b", "c", "d"}}
	if got := n.String(); !strings.HasSuffix(got, " by key a and key b and key c and key d") {
		t.Errorf("four keys: %s", got)
	}
	n.Pins = append(n.Pins, "e")
	if got := n.String(); !strings.Contains(got, " by 5 keys;") {
		t.Errorf("five keys: %s", got)
	}
}

func TestVerifyNeedsARun(t *testing.T) {
	if _, err := archive.Verify(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("verified a folder that is not there")
	}
}

// A person without this program can check a run with coreutils alone.
func TestManifestsAreThoseOfSha256sum(t *testing.T) {
	tool, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("needs sha256sum of coreutils: " + err.Error())
	}
	a := synthetic.Run(t, options())
	for _, dir := range []string{a.Dir(), filepath.Join(a.Dir(), "trials/0001-a1")} {
		cmd := exec.Command(tool, "--check", "--strict", "--quiet", "MANIFEST.sha256")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("sha256sum in %s: %v\n%s", dir, err, out)
		}
	}
}
