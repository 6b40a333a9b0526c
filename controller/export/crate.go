package export

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// crateFile is the name that RO-Crate prescribes (https://w3id.org/ro/crate/1.2,
// section "RO-Crate Metadata Document").
const crateFile = "ro-crate-metadata.json"

// processRun is the profile of crates that say what was run: the run, and each of its
// attempts, are actions.
const processRun = "https://w3id.org/ro/wfrun/process/0.5"

// entity is one node of the crate's flat JSON-LD graph.
type entity map[string]any

// ref names another entity.
func ref(id string) entity { return entity{"@id": id} }

// dated is a time as the profile wants it, which does not take a Z.
func dated(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000-07:00") }

// crate describes an export for machines.
type crate struct {
	run     archive.RunInfo
	licence string // a URL; empty: none was given
	actions []entity
}

const (
	software = "#fieldmesh"
	campaign = "#campaign"
	action   = "#run"
)

// newCrate describes a run. Reasons are left out of a redacted one, but for their codes:
// people and programs wrote them.
func newCrate(a *archive.Archive, o Options) (crate, error) {
	c := crate{run: a.Info(), licence: o.License}
	judged, err := a.Judged()
	if err != nil {
		return c, fmt.Errorf("describe the run: %w", err)
	}
	last := c.run.CreatedWall
	for _, at := range judged {
		if at.After(last) {
			last = at
		}
	}
	c.actions = []entity{{
		"@id": action, "@type": "CreateAction", "name": "run " + c.run.Run, "startTime": dated(c.run.CreatedWall),
		"endTime": dated(last), "instrument": ref(software), "object": ref(campaign), "result": ref("./"),
		"description": fmt.Sprintf("campaign %s, place %s, seed %d, driven by Fieldmesh %s", c.run.Campaign,
			c.run.Place, c.run.Seed, c.run.Version),
	}}
	for _, v := range a.Decisions() {
		one := entity{
			"@id": fmt.Sprintf("#trial-%d-attempt-%d", v.Trial, v.Attempt), "@type": "CreateAction",
			"name": fmt.Sprintf("trial %d, attempt %d", v.Trial, v.Attempt), "description": string(v.Outcome),
			"instrument": ref(software), "object": ref(campaign), "result": ref("trials.csv"),
			"endTime": dated(judged[v.TrialKey]), "actionStatus": "http://schema.org/CompletedActionStatus",
		}
		if v.Outcome != wire.Accepted {
			one["actionStatus"] = "http://schema.org/FailedActionStatus"
			reason := v.Reason.String()
			if o.Redact {
				reason = codeOf(v.Reason)
			}
			if reason != "" {
				one["error"] = reason
			}
		}
		c.actions = append(c.actions, one)
	}
	return c, nil
}

// write writes the description of a folder's files: each with size, checksum and format.
func (c crate) write(w io.Writer, dir string, files []file) error {
	var parts, graph, mentions []entity
	for _, f := range files {
		size, sum, err := measure(filepath.Join(dir, f.name))
		if err != nil {
			return err
		}
		id := filepath.ToSlash(f.name)
		parts = append(parts, ref(id))
		graph = append(graph, entity{
			"@id": id, "@type": "File", "name": id, "description": f.about,
			"encodingFormat": f.format, "contentSize": fmt.Sprint(size), "sha256": sum,
		})
	}
	for _, a := range c.actions {
		mentions = append(mentions, ref(a["@id"].(string)))
	}
	licence := entity{"@id": "#licence", "@type": "CreativeWork", "name": "No licence given",
		"description": "Under which terms these data may be used was not said. Ask who made the run."}
	if c.licence != "" {
		licence = entity{"@id": c.licence, "@type": "CreativeWork", "name": c.licence,
			"description": "The terms under which these data may be used."}
	}
	head := []entity{
		{"@id": crateFile, "@type": "CreativeWork", "about": ref("./"), "conformsTo": []entity{
			ref("https://w3id.org/ro/crate/1.2"), ref("https://w3id.org/ro/crate/1.1")}}, // the profile is of 1.1
		{
			"@id": "./", "@type": "Dataset", "name": fmt.Sprintf("Fieldmesh run %s of campaign %s", c.run.Run,
				c.run.Campaign),
			"description": "Throughput of TCP over a moving ad hoc network: records, tables and tracks of one run (" +
				c.run.Place + ").",
			"datePublished": dated(c.run.CreatedWall), "identifier": c.run.Run, "hasPart": parts,
			"mentions": mentions, "license": ref(licence["@id"].(string)), "conformsTo": ref(processRun),
		},
		{"@id": processRun, "@type": []string{"CreativeWork", "Profile"}, "name": "Process Run Crate",
			"version": "0.5"},
		licence,
		{"@id": software, "@type": "SoftwareApplication", "name": "Fieldmesh", "version": c.run.Version,
			"url": "https://fieldmesh.dev"},
		{"@id": campaign, "@type": "CreativeWork", "name": "campaign " + c.run.Campaign,
			"description": "The plan of the run's trials, as its campaign file has it."},
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	if err := e.Encode(entity{"@context": "https://w3id.org/ro/crate/1.2/context",
		"@graph": slices.Concat(head, c.actions, graph)}); err != nil {
		return fmt.Errorf("describe the run: %w", err)
	}
	return nil
}

// exportable are the names that files of an export have. Whoever publishes one adds files of their own, and
// describes them beside ours.
var exportable = regexp.MustCompile(`^((metrics|trials|timelines|places|results)\.csv|results\.parquet|` +
	`records\.ndjson|places\.gpx|tracks\.(gpx|geojson)|data-dictionary\.md|run\.mcap|records/[a-z0-9_]+\.parquet|` +
	`perfetto/[0-9]+-a[0-9]+\.json|captures/[0-9]+-a[0-9]+-[^/]+\.pcapng|attachments/[0-9a-f]{64}\.(jpg|m4a))$`)

// described lists the files of a former export in a folder, as its description names them.
func described(dir string) (names []string, err error) {
	err = eachEntity(filepath.Join(dir, crateFile), func(id string, kind json.RawMessage) {
		if exportable.MatchString(id) && isFile(kind) {
			names = append(names, filepath.FromSlash(id))
		}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what a former export wrote: %w", err)
	}
	return names, nil
}

// isFile reports whether a file is among what an entity is.
func isFile(kind json.RawMessage) bool {
	var all []string
	return string(kind) == `"File"` || json.Unmarshal(kind, &all) == nil && slices.Contains(all, "File")
}

// describedMost bounds a description that is read. That of the most attempts that a run may have is half as long.
const describedMost = 128 << 20

// eachEntity reads a description, which may have come with an archive from elsewhere, one entity after the other.
func eachEntity(path string, each func(id string, kind json.RawMessage)) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err == nil && info.Size() > describedMost {
		err = fmt.Errorf("it has %d bytes, and may have %d", info.Size(), describedMost)
	}
	d := json.NewDecoder(f)
	if err == nil {
		err = within(d, '{', func() error { return graph(d, each) })
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// graph reads one member of a description, and tells the entities of its graph.
func graph(d *json.Decoder, each func(id string, kind json.RawMessage)) error {
	var e struct {
		ID   string          `json:"@id"`
		Type json.RawMessage `json:"@type"` // a name, or several
	}
	key, err := d.Token()
	if err != nil {
		return err
	}
	if key != "@graph" {
		return d.Decode(&e.Type) // which is passed over
	}
	return within(d, '[', func() error {
		e.ID, e.Type = "", nil
		if err := d.Decode(&e); err != nil {
			return err
		}
		each(e.ID, e.Type)
		return nil
	})
}

// within reads what lies between two brackets.
func within(d *json.Decoder, open json.Delim, each func() error) error {
	if begin, err := d.Token(); err != nil || begin != open {
		return cmp.Or(err, fmt.Errorf("%v is not there", open))
	}
	for d.More() {
		if err := each(); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

func measure(path string) (size int64, sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", fmt.Errorf("describe the run: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return 0, "", fmt.Errorf("describe the run: read %s: %w", path, err)
	}
	return size, hex.EncodeToString(h.Sum(nil)), nil
}
