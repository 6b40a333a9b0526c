// Package apifuzz lets schemathesis fuzz an agent's API from its description,
// for tests. It does not start what it fuzzes.
package apifuzz

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/goccy/go-yaml"
)

// Target is what is fuzzed, and how hard.
type Target struct {
	Address     string        // host:port
	CertPath    string        // of a peer with the role controller
	KeyPath     string        // its private key
	Seed        int           // printed; the same one gives the same requests
	MaxExamples int           // generated per call, beside the fixed coverage cases
	Limit       time.Duration // for the whole of it
	// LongPolls lets wait_ms be used. Without it a target that really waits
	// would spend the time waiting, up to 30 s a request.
	LongPolls bool
	// Run and Bodies replace the golden files' run and bodies as examples, for a
	// target that can do something with them; by the call's operationId.
	Run    string
	Bodies map[string]any
}

// Test is what Run needs of a *testing.T. It is named here so that no program
// that links this package carries the test framework.
type Test interface {
	Helper()
	TempDir() string
	Logf(format string, args ...any)
	Skipf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Run fuzzes a target and fails the test at the first answer that is a server
// error or that openapi.yaml does not describe, and at a bad request that is
// let through. It skips, saying so, where schemathesis is not installed.
//
// One check is left out, positive_data_acceptance: a plan that fits the schema may
// still be no plan (a sender that is not a node), which no schema can say. And a
// body with too many items may be refused for its bytes before they are counted.
func Run(t Test, target Target) {
	t.Helper()
	root := repository(t)
	tool := filepath.Join(root, ".tools", "venv", "bin", "schemathesis")
	if _, err := os.Stat(tool); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("needs schemathesis at %s: run scripts/setup", tool)
	}
	dir := t.TempDir()
	spec := filepath.Join(dir, "openapi.json")
	if err := prepare(filepath.Join(root, "protocols", "wire"), spec, target); err != nil {
		t.Fatalf("%v", err)
	}
	config := filepath.Join(dir, "schemathesis.toml")
	if err := os.WriteFile(config, []byte("[checks.negative_data_rejection]\nexpected-statuses = [400, 401, 403, "+
		"404, 405, 409, 413, 415]\n"), 0o600); err != nil {
		t.Fatalf("%v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), target.Limit)
	defer cancel()
	command := exec.CommandContext(ctx, tool, "--config-file", config, "run", spec,
		"--url", "https://"+target.Address, "--tls-verify", "false", "--request-cert", target.CertPath,
		"--request-cert-key", target.KeyPath,
		"--checks", "all", "--exclude-checks", "positive_data_acceptance",
		"--phases", "examples,coverage,fuzzing", "--mode", "all", "--workers", "1", "--continue-on-failure",
		"--max-failures", "20",
		"--max-examples", strconv.Itoa(target.MaxExamples), "--seed", strconv.Itoa(target.Seed),
		"--generation-database", "none",
		// A plan of 24 MiB takes the tool and the node a second or two, and a machine that does much else ten: that it
		// is answered at all counts, and not how soon.
		"--suppress-health-check", "all", "--request-timeout", "40", "--max-response-time", "40",
		"--output-sanitize", "false", "--warnings", "off")
	command.Dir = dir // whatever it leaves behind, it leaves there
	command.Env = append(os.Environ(), "NO_COLOR=1", "SCHEMATHESIS_HOOKS=", "PYTHONWARNINGS=ignore")
	t.Logf("seed %d, %d examples a call", target.Seed, target.MaxExamples)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("schemathesis: %v\n%s", err, out)
		return
	}
	t.Logf("%s", tail(out, 1500))
}

func tail(text []byte, most int) []byte { return text[max(0, len(text)-most):] }

// repository finds the folder of go.mod above the test's.
func repository(t Test) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("%v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("no go.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}

// object is a part of the description as it is read, without types.
type object = map[string]any

// prepare writes the description with the golden files as examples, and with a
// run's name that is often the example's, so that calls about a run find one.
func prepare(wireDir, out string, target Target) error {
	data, err := os.ReadFile(filepath.Join(wireDir, "openapi.yaml"))
	if err != nil {
		return err
	}
	var doc object
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return fmt.Errorf("read openapi.yaml: %w", err)
	}
	components := doc["components"].(object)
	run := components["parameters"].(object)["Run"].(object)
	if target.Run != "" {
		run["example"] = target.Run
	}
	run["schema"] = object{"anyOf": []any{object{"const": run["example"]}, run["schema"]}}
	for _, item := range doc["paths"].(object) {
		for _, operation := range item.(object) {
			if err := addExample(wireDir, operation.(object), target.Bodies); err != nil {
				return err
			}
			if !target.LongPolls {
				dropWait(operation.(object))
			}
		}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("write openapi.json: %w", err)
	}
	return os.WriteFile(out, text, 0o600)
}

// goldenOf names the golden file of each call's body.
var goldenOf = map[string]string{
	"putLease": "lease", "putRun": "run_plan", "arm": "trial_key", "abort": "abort_request", "putVerdicts": "verdicts",
	"confirmRecords": "confirmation",
	"pushFix":        "fix", "pushWiFi": "wifi_reading", "putNote": "note", "putAttachment": "attachment_put",
	"archivedAttachment": "attachment_name", "putApps": "apps",
}

func addExample(wireDir string, operation object, bodies map[string]any) error {
	body, ok := operation["requestBody"].(object)
	if !ok {
		return nil
	}
	id := operation["operationId"].(string)
	media := body["content"].(object)["application/json"].(object)
	if own, ok := bodies[id]; ok {
		media["example"] = own
		return nil
	}
	name, ok := goldenOf[id]
	if !ok {
		return fmt.Errorf("no golden file is named for the body of %s", id)
	}
	data, err := os.ReadFile(filepath.Join(wireDir, "golden", "body_"+name+".json"))
	if err != nil {
		return err
	}
	media["example"] = json.RawMessage(data)
	return nil
}

func dropWait(operation object) {
	parameters, _ := operation["parameters"].([]any)
	kept := []any{}
	for _, p := range parameters {
		if p.(object)["$ref"] != "#/components/parameters/Wait" {
			kept = append(kept, p)
		}
	}
	operation["parameters"] = kept
}
