// Command generate writes what follows from the record kinds that the package wire declares: the table of kinds,
// InfluxDB's schema, the records' part of the API's description and the phone app's types.
// `go generate ./protocols/wire` runs it.
//
// It reads source text and imports nothing of ours, so that it runs when what it made no longer builds.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run writes the generated files anew, from the source in the folder of the package wire.
func run(wire string) error {
	files, err := generated(wire)
	if err != nil {
		return err
	}
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(wire, path), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generated returns the generated files by their paths from the folder of the package wire.
func generated(wire string) (map[string][]byte, error) {
	all, err := read(wire)
	if err != nil {
		return nil, err
	}
	kinds, err := kindTable(all)
	if err != nil {
		return nil, err
	}
	schema, err := influxSchema(all)
	if err != nil {
		return nil, err
	}
	bodies, err := kotlin(all)
	if err != nil {
		return nil, err
	}
	description, err := os.ReadFile(filepath.Join(wire, "openapi.yaml"))
	if err != nil {
		return nil, err
	}
	byHand, _, found := bytes.Cut(description, []byte(openAPIMark))
	if !found {
		return nil, fmt.Errorf("openapi.yaml: no line %q", openAPIMark)
	}
	return map[string][]byte{
		"../../android-app/core/src/main/kotlin/dev/fieldmesh/core/wire/Bodies.kt": bodies,
		"kinds.go":                         kinds,
		"../../internal/influx/records.go": schema,
		"openapi.yaml":                     append(byHand, openAPI(all)...),
	}, nil
}
