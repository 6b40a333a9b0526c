// Command generate writes what follows from the bodies and record kinds that the package wire declares: the table of
// kinds, the checks of requests, InfluxDB's schema, the keys of a campaign's trial, the bodies in the API's description
// and the phone app's types.
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

// run writes the generated files, from the source in the folder of the package wire.
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
	c, err := read(wire)
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
	api, err := bodiesOf(byHand, c)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{"openapi.yaml": append(byHand, openAPI(api, c.records)...)}
	for path, write := range map[string]func() ([]byte, error){
		"kinds.go":                         func() ([]byte, error) { return kindTable(c.records) },
		"bounds.go":                        func() ([]byte, error) { return boundsCode(api.strict) },
		"../../internal/influx/records.go": func() ([]byte, error) { return influxSchema(c.records) },
		"../../controller/plan/keys.go":    func() ([]byte, error) { return campaignKeys(c.structs) },
		app + "Bodies.kt":                  func() ([]byte, error) { return kotlinRecords(c.records) },
		app + "Api.kt":                     func() ([]byte, error) { return kotlinAPI(c.structs) },
	} {
		text, err := write()
		if err != nil {
			return nil, err
		}
		if text != nil {
			out[path] = text
		}
	}
	return out, nil
}

// app is the folder of the phone app's types.
const app = "../../android-app/core/src/main/kotlin/dev/fieldmesh/core/wire/"
