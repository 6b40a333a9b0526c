package testnet

import (
	"encoding/json"
	"fmt"
	"net"
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
	dir          string
	cmd          *exec.Cmd
}

// NewInfluxd starts a server with an administrator.
func NewInfluxd(t testing.TB) *Influxd {
	t.Helper()
	if _, err := exec.LookPath("influxd"); err != nil {
		t.Skipf("needs influxd (scripts/setup test installs it): %v", err)
	}
	dir := t.TempDir()
	api, backup := FreePort(t), FreePort(t)
	d := &Influxd{t: t, dir: dir, URL: fmt.Sprintf("http://127.0.0.1:%d", api), PasswordFile: filepath.Join(dir, "password")}
	conf := fmt.Sprintf("reporting-disabled = true\nbind-address = \"127.0.0.1:%d\"\n[meta]\ndir = %q\n[data]\ndir = %q\nwal-dir = %q\nquery-log-enabled = false\n"+
		"[http]\nbind-address = \"127.0.0.1:%d\"\nauth-enabled = true\nlog-enabled = false\n[monitor]\nstore-enabled = false\n",
		backup, dir+"/meta", dir+"/data", dir+"/wal", api)
	for path, text := range map[string]string{d.conf(): conf, d.PasswordFile: InfluxAdminPassword + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.Start()
	t.Cleanup(d.Kill)
	d.QueryAs("", "", "", fmt.Sprintf(`CREATE USER %s WITH PASSWORD '%s' WITH ALL PRIVILEGES`, InfluxAdmin, strings.ReplaceAll(InfluxAdminPassword, `'`, `\'`)))
	return d
}

// FreePort is a TCP port of loopback that nothing listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func (d *Influxd) conf() string { return filepath.Join(d.dir, "influxdb.conf") }

// Start starts the server again after Kill; it returns when the server answers.
func (d *Influxd) Start() {
	d.t.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	d.cmd = exec.Command("influxd", "run", "-config", d.conf())
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
	req, err := http.NewRequest(http.MethodPost, d.URL+"/query?"+url.Values{"db": {database}, "q": {q}, "epoch": {"ns"}}.Encode(), nil)
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
