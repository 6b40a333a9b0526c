package dashboards

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"fieldmesh.dev/fieldmesh/internal/influx"
)

type service struct {
	Image       string
	Command     []string
	Profiles    []string
	Restart     string
	Ports       []string
	Environment map[string]string
	Secrets     []string
	Volumes     []string
	Healthcheck struct{ Test []string }
}

type composed struct {
	Services map[string]service
	Secrets  map[string]struct{ File string }
	Volumes  map[string]any
}

// No container engine is here: what can be reported about the file without one.
//
//attack:local another user who reads the database's password in a command line or a log
func TestComposeFile(t *testing.T) {
	raw, err := os.ReadFile("docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var c composed
	if err := yaml.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(c.Services)); !slices.Equal(got, []string{"grafana", "influxdb1", "influxdb2",
		"influxdb3"}) {
		t.Fatalf("services %v", got)
	}
	pinned := regexp.MustCompile(`:[0-9]+\.[0-9]+\.[0-9]+(-core)?$`)
	for name, s := range c.Services {
		if name != "grafana" && !slices.Equal(s.Profiles, []string{name}) {
			t.Errorf("%s is in the profiles %v", name, s.Profiles)
		}
		if !pinned.MatchString(s.Image) || s.Restart != "unless-stopped" || len(s.Healthcheck.Test) < 2 {
			t.Errorf("%s: image %q, restart %q, health check %q", name, s.Image, s.Restart, s.Healthcheck.Test)
		}
		line := strings.Join(append(s.Command, s.Healthcheck.Test...), " ")
		if strings.Contains(line, "${") || strings.Contains(line, "$$(") || strings.Contains(line, "-password") {
			t.Errorf("%s: everybody on the machine can read the secret in the command line %s", name, line)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s listens beyond this machine: %s", name, p)
			}
		}
		kept := false
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, declared := c.Volumes[from]; declared {
				kept = true
			} else if _, err := os.Stat(from); err != nil {
				t.Errorf("%s: volume %s is neither declared nor a folder here", name, from)
			}
		}
		if !kept {
			t.Errorf("%s keeps nothing beyond its container: %v", name, s.Volumes)
		}
		for variable, value := range s.Environment {
			if secret := strings.Contains(variable, "PASSWORD") || strings.Contains(variable, "TOKEN"); secret &&
				!strings.HasPrefix(value, "${") {
				t.Errorf("%s: %s has the default %q", name, variable, value)
			}
		}
		for _, secret := range s.Secrets {
			if _, declared := c.Secrets[secret]; !declared {
				t.Errorf("%s: no secret %s", name, secret)
			}
		}
	}
}

// The script gives every variable that the file insists on, to its owner only,
// new ones each time, and leaves those that are there. What it tells to type, as README does, names the database's user
// and a file with its password alone.
func TestSecrets(t *testing.T) {
	raw, err := os.ReadFile("docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	const publish = "    fieldmesh publish RUN --influx http://127.0.0.1:8086 --user fieldmesh --password-file " +
		"dashboards/.influx-password\n"
	page, err := os.ReadFile("README.md")
	if err != nil || !strings.Contains(string(page), publish) ||
		!strings.Contains(string(raw), "INFLUXDB_ADMIN_USER: fieldmesh\n") {
		t.Errorf("README.md does not tell to type%s%v", publish, err)
	}
	wanted := map[string]bool{}
	for _, m := range regexp.MustCompile(`[^$]\$\{([A-Z_]+)`).FindAllStringSubmatch(string(raw), -1) {
		wanted[m[1]] = true
	}
	script, err := os.ReadFile("secrets")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, generation := range []string{"influxdb1", "influxdb2", "influxdb3"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "secrets")
		if err := os.WriteFile(path, script, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("bash", path, generation).CombinedOutput(); err != nil ||
			!strings.Contains(string(out), publish) {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(filepath.Join(dir, ".env"))
		if err != nil {
			t.Fatal(err)
		}
		given := map[string]string{}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			given[name] = value
		}
		for name := range wanted {
			if len(given[name]) < 16 {
				t.Errorf("%s: %s is %q", generation, name, given[name])
			}
		}
		if password, err := influx.ReadPassword(filepath.Join(dir, ".influx-password")); err != nil ||
			password != given["INFLUX_SECRET"] {
			t.Errorf("%s: the password file has another secret than .env (%v)", generation, err)
		}
		if seen[given["INFLUX_SECRET"]] || seen[given["GRAFANA_PASSWORD"]] {
			t.Errorf("%s: a secret came twice", generation)
		}
		seen[given["INFLUX_SECRET"]], seen[given["GRAFANA_PASSWORD"]] = true, true
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if info, err := f.Info(); err != nil || f.Name() != "secrets" && info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s has mode %v (%v)", generation, f.Name(), info.Mode(), err)
			}
		}
		if out, err := exec.Command("bash", path, generation).CombinedOutput(); err == nil ||
			!strings.Contains(string(out), "is there already") {
			t.Errorf("%s: a second time: %v, %s", generation, err, out)
		}
		// An .env of a version that wrote no password file.
		file := filepath.Join(dir, ".influx-password")
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("bash", path, generation).CombinedOutput(); err != nil ||
			!strings.Contains(string(out), publish) {
			t.Errorf("%s: with an .env only: %v, %s", generation, err, out)
		}
		if password, err := influx.ReadPassword(file); err != nil || password != given["INFLUX_SECRET"] {
			t.Errorf("%s: the password file is not of the .env that was there (%v)", generation, err)
		}
		if now, err := os.ReadFile(filepath.Join(dir, ".env")); err != nil || string(now) != string(text) {
			t.Errorf("%s: .env did not stay (%v)", generation, err)
		}
	}
}
