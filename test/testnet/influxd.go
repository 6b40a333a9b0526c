package testnet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The administrator of an Influxd; the quote in the password is there to be
// escaped.
const (
	InfluxAdmin         = "admin"
	InfluxAdminPassword = "admin's secret"
)

// Influxd is a real InfluxDB 1.x with authentication on, on loopback, in a
// folder of its own. It ends with the test.
type Influxd struct {
	URL          string
	PasswordFile string // of the administrator
	t            testing.TB
	run          []string // the program and its arguments
	dir          string
	cmd          *exec.Cmd
}

// NewInfluxd starts a server with an administrator.
func NewInfluxd(t testing.TB) *Influxd {
	t.Helper()
	if _, err := exec.LookPath("influxd"); err != nil {
		t.Skipf("needs influxd (scripts/setup test installs it): %v", err)
	}
	return NewInfluxdOf(t, "influxd", t.TempDir())
}

// Influxd18 is InfluxDB 1.8.3, built by its own module and kept in .tools. That
// takes a minute of both cores, so only the long suites build it; where it is,
// every test has it. root is the project's folder.
func Influxd18(t testing.TB, root string) (program string) {
	t.Helper()
	const module = "github.com/influxdata/influxdb/cmd/influxd@v1.8.3"
	folder, err := filepath.Abs(filepath.Join(root, ".tools", "influxd-1.8.3"))
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(folder, "influxd")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	if os.Getenv("FIELDMESH_SOAK") == "" {
		t.Skip("InfluxDB 1.8.3 is built by `make soak` (FIELDMESH_SOAK=1): it takes more than a minute")
	}
	build := exec.Command("go", "install", module)
	build.Dir = t.TempDir() // no module of ours has a say in its versions
	build.Env = append(os.Environ(), "GOBIN="+folder, "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go install %s: %v\n%s", module, err, out)
	}
	return program
}

// NewInfluxdOf starts a program that is an InfluxDB 1.x, with its data in dir.
func NewInfluxdOf(t testing.TB, program, dir string) *Influxd {
	t.Helper()
	return startInfluxd(t, dir, program, "run", "-config", filepath.Join(dir, "influxdb.conf"))
}

// startInfluxd writes a server's configuration and runs it.
func startInfluxd(t testing.TB, dir string, run ...string) *Influxd {
	t.Helper()
	api, backup := FreePort(t), FreePort(t)
	d := &Influxd{t: t, run: run, dir: dir, URL: fmt.Sprintf("http://127.0.0.1:%d", api),
		PasswordFile: filepath.Join(dir, "password")}
	conf := fmt.Sprintf("reporting-disabled = true\nbind-address = \"127.0.0.1:%d\"\n[meta]\ndir = %q\n[data]\ndir = "+
		"%q\nwal-dir = %q\nquery-log-enabled = false\n"+
		"[http]\nbind-address = \"127.0.0.1:%d\"\nauth-enabled = true\nlog-enabled = false\n[monitor]\nstore-enabled "+
		"= false\n",
		backup, dir+"/meta", dir+"/data", dir+"/wal", api)
	for path, text := range map[string]string{filepath.Join(dir, "influxdb.conf"): conf,
		d.PasswordFile: InfluxAdminPassword + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.Start()
	t.Cleanup(d.Kill)
	d.QueryAs("", "", "", fmt.Sprintf(`CREATE USER %s WITH PASSWORD '%s' WITH ALL PRIVILEGES`, InfluxAdmin,
		strings.ReplaceAll(InfluxAdminPassword, `'`, `\'`)))
	return d
}

// NewInfluxdOn starts a server whose data lie on a disk of so many megabytes,
// which no other process sees.
func NewInfluxdOn(t testing.TB, megabytes int) *Influxd {
	t.Helper()
	Need(t, "influxd", "unshare", "nsenter", "mount")
	dir := t.TempDir()
	return startInfluxd(t, dir, "unshare", "--mount", "sh", "-c",
		fmt.Sprintf(`mkdir -p "$0/data" "$0/wal"; mount -t tmpfs -o size=%dm tmpfs "$0/data"; mkdir -p "$0/data/wal" && mount --bind "$0/data/wal" "$0/wal"; exec influxd run -config "$0/influxdb.conf"`, megabytes), dir)
}

// NewInfluxd2 starts an InfluxDB 2.x with a bucket for fieldmesh, where the PATH
// has one; no package of a distribution or of Go, Python or npm brings it. Its
// token is the administrator's password, with which the old API takes any user.
func NewInfluxd2(t testing.TB) *Influxd {
	t.Helper()
	program := ""
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		found := filepath.Join(dir, "influxd")
		if said, err := exec.Command(found, "version").CombinedOutput(); err == nil && strings.Contains(string(said),
			"InfluxDB v2") {
			program = found
		}
	}
	if program == "" {
		t.Skip("needs an influxd 2.x on the PATH; no package registry that scripts/setup uses has one")
	}
	dir := t.TempDir()
	api := FreePort(t)
	d := &Influxd{t: t, dir: dir, URL: fmt.Sprintf("http://127.0.0.1:%d", api),
		PasswordFile: filepath.Join(dir, "password")}
	d.run = []string{program, "--reporting-disabled", "--http-bind-address", fmt.Sprintf("127.0.0.1:%d", api),
		"--bolt-path", filepath.Join(dir, "bolt"), "--sqlite-path", filepath.Join(dir, "sqlite"), "--engine-path",
		filepath.Join(dir, "engine")}
	if err := os.WriteFile(d.PasswordFile, []byte(InfluxAdminPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.Start()
	t.Cleanup(d.Kill)
	setup, err := json.Marshal(map[string]string{"username": InfluxAdmin, "password": InfluxAdminPassword,
		"token": InfluxAdminPassword, "org": "fieldmesh", "bucket": "fieldmesh"})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(d.URL+"/api/v2/setup", "application/json", bytes.NewReader(setup))
	if err != nil {
		t.Fatal(err)
	}
	if _ = resp.Body.Close(); resp.StatusCode/100 != 2 {
		t.Fatalf("setting up InfluxDB 2: %s", resp.Status)
	}
	return d
}

// Start starts the server again after Kill; it returns when the server answers.
func (d *Influxd) Start() {
	d.t.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	d.cmd = exec.Command(d.run[0], d.run[1:]...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	for range 600 {
		if resp, err := http.Get(d.URL + "/ping"); err == nil {
			_ = resp.Body.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	text, _ := os.ReadFile(log.Name())
	d.t.Fatalf("influxd does not answer within 30 s:\n%s", text)
}

// Kill ends the server as a loss of power would.
func (d *Influxd) Kill() {
	if d.cmd.ProcessState != nil {
		return
	}
	_ = d.cmd.Process.Kill() // it may have ended
	_ = d.cmd.Wait()
}

// PID is the server's process.
func (d *Influxd) PID() int { return d.cmd.Process.Pid }

// Pause stops the server's process; Resume lets it go on.
func (d *Influxd) Pause() error { return d.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (d *Influxd) Resume() error { return d.cmd.Process.Signal(syscall.SIGCONT) }

// Query asks as the administrator; see QueryAs.
func (d *Influxd) Query(database, q string) []map[string]any {
	d.t.Helper()
	return d.QueryAs(InfluxAdmin, InfluxAdminPassword, database, q)
}

// influxAnswer is the body of /query.
type influxAnswer struct {
	Error   string
	Results []struct {
		Error  string
		Series []struct {
			Name    string
			Tags    map[string]string
			Columns []string
			Values  [][]any
		}
	}
}

// QueryAs returns the rows of all series, each with its tags and, under
// "name", its measurement. Numbers are json.Number. An error ends the test.
func (d *Influxd) QueryAs(user, password, database, q string) []map[string]any {
	d.t.Helper()
	req, err := http.NewRequest(http.MethodPost, d.URL+"/query?"+url.Values{"db": {database}, "q": {q},
		"epoch": {"ns"}}.Encode(), nil)
	if err != nil {
		d.t.Fatal(err)
	}
	if user != "" {
		req.SetBasicAuth(user, password)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer influxAnswer
	dec := json.NewDecoder(resp.Body)
	dec.UseNumber()
	if err := dec.Decode(&answer); err != nil {
		d.t.Fatalf("query %q: %v", q, err)
	}
	rows, problem := answer.rows()
	if problem != "" {
		d.t.Fatalf("query %q: %s", q, problem)
	}
	return rows
}

func (a influxAnswer) rows() (rows []map[string]any, problem string) {
	problem = a.Error
	for _, r := range a.Results {
		problem += r.Error
		for _, s := range r.Series {
			for _, v := range s.Values {
				row := map[string]any{"name": s.Name}
				for k, t := range s.Tags {
					row[k] = t
				}
				for i, c := range s.Columns {
					row[c] = v[i]
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, problem
}
