package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fieldmesh.dev/fieldmesh/controller/archive/sums"
	"fieldmesh.dev/fieldmesh/controller/plan/room"
	"fieldmesh.dev/fieldmesh/controller/terminal"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What Verify can find.
const (
	Missing    = "missing"
	Changed    = "changed"
	Truncated  = "truncated"
	Unexpected = "unexpected"
	Unfinished = "unfinished"
	Unreadable = "unreadable"
)

// Finding is one thing that Verify holds against an archive.
type Finding struct {
	Path    string // relative to the run's folder
	Problem string // one of the constants above
	Detail  string
}

// Altered returns those findings that are about files which are not as they were written.
func Altered(findings []Finding) (out []Finding) {
	for _, f := range findings {
		if f.Problem != Unfinished && f.Problem != Unexpected {
			out = append(out, f)
		}
	}
	return out
}

// String is for a terminal: what would move its cursor or change its title, as a
// file's name may hold, is escaped.
func (f Finding) String() string {
	text := f.Problem + " " + f.Path
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	return terminal.Text(text)
}

// check is one verification under way.
type check struct {
	disk     disk
	info     RunInfo
	covered  map[string]bool // paths that a manifest spoke about
	findings []Finding
}

// found says what is wrong. After many it says once that there is more, as a file
// that is not as it was written: what was not listed may be.
func (c *check) found(rel, problem, detail string) (listed bool) {
	switch n := len(c.findings); {
	case n > findingsMost:
		return false
	case n == findingsMost:
		rel, problem, detail = ".", Unreadable, fmt.Sprintf("there is more than these %d", n)
	}
	c.findings = append(c.findings, Finding{Path: filepath.ToSlash(rel), Problem: problem, Detail: detail})
	return true
}

// Verify compares a run's folder with its manifests, and what no manifest
// covers yet with what was made durable. An error means that the folder could
// not be looked at; what is wrong with it are findings.
func Verify(dir string) ([]Finding, error) { return verify(disk{root: dir}) }

func verify(d disk) ([]Finding, error) {
	dir := d.root
	if st, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	} else if !st.IsDir() {
		return nil, fmt.Errorf("verify %q: it is a file, and a run is a folder; unpack it if it is an archive", dir)
	}
	c := &check{disk: d, covered: map[string]bool{manifestFile: true}}
	found, err := c.disk.survey()
	if err != nil {
		return nil, fmt.Errorf("verify %q: %w", dir, err)
	}
	for _, rel := range found.foreign { // nothing is read then: it may lead anywhere
		c.found(rel, Unexpected, "a link or a device, which no run has")
	}
	if len(found.foreign) > 0 {
		return c.findings, nil
	}
	c.basics()
	c.signatures()
	c.shards()
	finished := c.disk.exists(manifestFile)
	if finished {
		c.manifest(".")
	}
	sealed, err := c.attempts(finished)
	if err != nil {
		return nil, fmt.Errorf("verify %q: %w", dir, err)
	}
	if !finished {
		c.openFiles(sealed)
	}
	if err := c.strangers(finished, sealed); err != nil {
		return nil, fmt.Errorf("verify %q: %w", dir, err)
	}
	if !finished {
		c.found(manifestFile, Unfinished, "the run was not finished: what is not in a sealed trial has no checksum yet")
	}
	return c.findings, nil
}

// basics checks whether the files without which nothing can be read, can be.
func (c *check) basics() {
	var info stored
	if err := c.disk.readJSON(runFile, &info); err != nil {
		c.foundUnreadable(runFile, err)
	} else if err := info.fits(); err != nil {
		c.foundUnreadable(runFile, err)
	} else {
		c.info = info.RunInfo
	}
	if _, err := c.disk.schedule(scheduleFile); err != nil {
		c.foundUnreadable(scheduleFile, err)
	}
	if !c.disk.exists(campaignFile) {
		c.foundUnreadable(campaignFile, fs.ErrNotExist)
	}
}

func (c *check) foundUnreadable(rel string, err error) {
	c.covered[rel] = true
	if errors.Is(err, fs.ErrNotExist) {
		c.found(rel, Missing, "")
		return
	}
	c.found(rel, Unreadable, err.Error())
}

// attempts checks every sealed attempt, found by its manifest or by the
// journal's word. The journal is read first: what is sealed meanwhile has a
// manifest before the journal says so.
func (c *check) attempts(finished bool) (map[wire.TrialKey]bool, error) {
	journalled := map[wire.TrialKey]bool{}
	_, err := c.disk.journal(func(e JournalEntry) error {
		if e.Trial != nil {
			journalled[*e.Trial] = true
		}
		return nil
	})
	if err != nil {
		c.found(JournalFile, Unreadable, err.Error())
	}
	sealed := map[wire.TrialKey]bool{}
	names, err := c.disk.names("trials")
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		k, ok := parseAttempt(n)
		if ok && c.disk.exists(filepath.Join(trialDir(k), manifestFile)) {
			sealed[k] = true
			rel := filepath.Join(trialDir(k), manifestFile)
			if finished && !c.covered[rel] {
				c.found(rel, Unexpected, "the run's manifest does not name this attempt")
			}
			c.covered[rel] = true
			c.manifest(trialDir(k))
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(journalled), inOrder) {
		if rel := filepath.Join(trialDir(k), manifestFile); !sealed[k] && !c.covered[rel] {
			c.found(rel, Missing, "the journal says that the trial was sealed")
		}
	}
	return sealed, nil
}

// manifest compares the files that a folder's manifest names.
func (c *check) manifest(dir string) {
	rel := filepath.Join(dir, manifestFile)
	raw, err := c.disk.read(rel)
	if err != nil {
		c.found(rel, Unreadable, err.Error())
		return
	}
	files, wrong := sums.Parse(raw)
	for _, line := range wrong {
		c.found(rel, Unreadable, fmt.Sprintf("not a line of a manifest: %.80q", line))
	}
	for _, f := range files {
		c.compare(filepath.Join(dir, filepath.FromSlash(f.Name)), f.SHA256, f.Size)
	}
	if len(raw) == 0 || raw[len(raw)-1] != '\n' {
		c.found(rel, Truncated, "its last line is not whole")
	}
}

// asFinished refuses a finished run that has a file other than its manifest says. Who writes to it makes another
// manifest, of what lies there then: the damage would be signed, and the copy, which may be whole, be replaced.
func (d disk) asFinished() error {
	if !d.exists(manifestFile) {
		return nil
	}
	c := &check{disk: d, covered: map[string]bool{}}
	c.signature(manifestFile, manifestSignature, signsRun)
	c.manifest(".")
	for _, f := range c.findings {
		if f.Path == manifestFile || ours(f.Path) { // what people put beside is theirs to change
			return fmt.Errorf("%w: %s", ErrDamaged, f)
		}
	}
	return nil
}

func (c *check) compare(rel, want string, size int64) {
	if c.covered[rel] && !strings.HasSuffix(rel, manifestFile) { // basics said so
		return
	}
	if !c.disk.exists(rel) {
		c.covered[rel] = c.found(rel, Missing, "")
		return
	}
	c.covered[rel] = true
	switch got := c.disk.size(rel); { // which needs no reading
	case got < size:
		c.found(rel, Truncated, fmt.Sprintf("%d of %d bytes are left", got, size))
		return
	case size >= 0 && got > size:
		c.found(rel, Changed, fmt.Sprintf("it has %d bytes, and the manifest says %d", got, size))
		return
	}
	switch sum, _, err := c.disk.sum(rel); {
	case err != nil:
		c.found(rel, Unreadable, err.Error())
	case sum != want:
		c.found(rel, Changed, "its SHA-256 is not the manifest's")
	}
}

// openFiles holds files without a checksum against the sizes that were made
// durable.
func (c *check) openFiles(sealed map[wire.TrialKey]bool) {
	durable := map[string]int64{}
	err := c.disk.lines(cursorFile, func(line []byte) error {
		var at cursorLine
		if err := json.Unmarshal(line, &at); err != nil {
			return err
		}
		for rel, size := range at.Bytes {
			durable[rel] = max(durable[rel], size)
		}
		if len(durable) > room.FilesMost {
			return fmt.Errorf("it names more than %d files, as no run has", room.FilesMost)
		}
		return nil
	})
	if err != nil {
		c.found(cursorFile, Unreadable, err.Error())
	}
	for _, rel := range slices.Sorted(maps.Keys(durable)) {
		want := durable[rel]
		if k, in := attemptOf(rel); in && sealed[k] {
			continue
		}
		switch got := c.disk.size(rel); {
		case !c.disk.exists(rel):
			c.found(rel, Missing, fmt.Sprintf("%d bytes were made durable", want))
		case got < want:
			c.found(rel, Truncated, fmt.Sprintf("%d of %d bytes are left", got, want))
		}
	}
}

// strangers names files that nobody vouches for.
func (c *check) strangers(finished bool, sealed map[wire.TrialKey]bool) error {
	files, err := c.disk.walk(".")
	if err != nil {
		return err
	}
	for _, rel := range files {
		if c.covered[rel] || Derived(rel) {
			continue
		}
		k, in := attemptOf(rel)
		if finished || (in && sealed[k]) || !ours(rel) {
			c.found(rel, Unexpected, "no manifest names it; what is not of the run belongs outside its folder")
		}
	}
	return nil
}

// ours reports whether a file of an unfinished run is one that the archive
// makes.
func ours(rel string) bool {
	parts := strings.Split(filepath.ToSlash(rel), "/")
	switch parts[0] {
	case runFile, campaignFile, scheduleFile, JournalFile, cursorFile, planSums, planSignature, manifestSignature:
		return len(parts) == 1
	case "between", movementDir, attachmentDir:
		return len(parts) == 2
	case "late", shardsDir:
		return len(parts) == 3
	case "trials":
		_, ok := attemptOf(rel)
		return ok
	}
	return false
}
