package export

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/version"
)

// crateFile is the name that RO-Crate 1.1 prescribes
// (https://w3id.org/ro/crate/1.1, section "RO-Crate Metadata File").
const crateFile = "ro-crate-metadata.json"

// entity is one node of the crate's flat JSON-LD graph.
type entity map[string]any

// ref names another entity.
func ref(id string) entity { return entity{"@id": id} }

// writeCrate describes the export for machines: what the run was, with what it
// was made, and each file with size, checksum and format.
func writeCrate(w io.Writer, run archive.RunInfo, dir string, files []file) error {
	parts := make([]entity, 0, len(files))
	graph := make([]entity, 0, len(files)+4)
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
	const software, action = "#fieldmesh", "#run"
	head := []entity{
		{"@id": crateFile, "@type": "CreativeWork", "about": ref("./"),
			"conformsTo": ref("https://w3id.org/ro/crate/1.1")},
		{
			"@id": "./", "@type": "Dataset", "name": fmt.Sprintf("Fieldmesh run %s of campaign %s", run.Run,
				run.Campaign),
			"description": "Throughput of TCP over a moving ad hoc network: records, tables and tracks of one run (" +
				run.Place + ").",
			"datePublished": run.CreatedWall.UTC().Format(time.RFC3339), "identifier": run.Run, "hasPart": parts,
			"mentions": ref(action),
		},
		{"@id": software, "@type": "SoftwareApplication", "name": "Fieldmesh", "softwareVersion": version.String()},
		{
			"@id": action, "@type": "CreateAction", "name": "run " + run.Run,
			"startTime":  run.CreatedWall.UTC().Format(time.RFC3339),
			"instrument": ref(software), "result": ref("./"),
			"description": fmt.Sprintf("campaign %s, place %s, seed %d, driven by Fieldmesh %s", run.Campaign,
				run.Place, run.Seed, run.Version),
		},
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	if err := e.Encode(entity{"@context": "https://w3id.org/ro/crate/1.1/context",
		"@graph": append(head, graph...)}); err != nil {
		return fmt.Errorf("describe the run: %w", err)
	}
	return nil
}

// described lists the files that the description of a former export in a folder names.
func described(dir string) (names []string, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, crateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var crate struct {
		Graph []struct {
			ID   string `json:"@id"`
			Type string `json:"@type"`
		} `json:"@graph"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &crate)
	}
	if err != nil {
		return nil, fmt.Errorf("read what a former export wrote: %w", err)
	}
	for _, e := range crate.Graph {
		if name := filepath.FromSlash(e.ID); e.Type == "File" && filepath.IsLocal(name) {
			names = append(names, name)
		}
	}
	return names, nil
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
