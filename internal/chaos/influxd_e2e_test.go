//go:build e2e

package chaos

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const (
	influxUser     = "runner"
	influxPassword = "a runner's secret"
)

// influxd is a real server with authentication on, which can be killed,
// stopped and started again.
type influxd struct {
	dir, url string
	cmd      *exec.Cmd
}

func newInfluxd(t *testing.T) *influxd {
	t.Helper()
	dir := t.TempDir()
	api, backup := freePort(t), freePort(t)
	d := &influxd{dir: dir, url: fmt.Sprintf("http://127.0.0.1:%d", api)}
	conf := fmt.Sprintf("reporting-disabled = true\nbind-address = \"127.0.0.1:%d\"\n[meta]\ndir = %q\n[data]\ndir = %q\nwal-dir = %q\nquery-log-enabled = false\n"+
		"[http]\nbind-address = \"127.0.0.1:%d\"\nauth-enabled = true\nlog-enabled = false\n[monitor]\nstore-enabled = false\n",
		backup, dir+"/meta", dir+"/data", dir+"/wal", api)
	for name, text := range map[string]string{"influxdb.conf": conf, "password": influxPassword + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	d.query(t, fmt.Sprintf(`CREATE USER %s WITH PASSWORD '%s' WITH ALL PRIVILEGES`, influxUser, `a runner\'s secret`), "")
	return d
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// start returns when the server answers.
func (d *influxd) start() error {
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	d.cmd = exec.Command("influxd", "run", "-config", filepath.Join(d.dir, "influxdb.conf"))
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		return err
	}
	for range 600 {
		if resp, err := http.Get(d.url + "/ping"); err == nil {
			return resp.Body.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("influxd does not answer within 30 s; its log is %s", log.Name())
}

// kill is a loss of power.
func (d *influxd) kill() {
	_ = d.cmd.Process.Kill() // it may have ended
	_ = d.cmd.Wait()
}

func (d *influxd) signal(s os.Signal) error { return d.cmd.Process.Signal(s) }

func (d *influxd) pause() error { return d.signal(syscall.SIGSTOP) }

func (d *influxd) resume() error { return d.signal(syscall.SIGCONT) }

// flags are what a controller writes to a database of this server with.
func (d *influxd) flags(database string) []string {
	return []string{"--influx", d.url, "--database", database, "--user", influxUser, "--password-file", filepath.Join(d.dir, "password")}
}

// query returns the rows of all series; the first call, before there is a
// user, has to make one.
func (d *influxd) query(t *testing.T, q, database string) []map[string]any {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/query?"+url.Values{"db": {database}, "q": {q}, "epoch": {"ns"}}.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if database != "" {
		req.SetBasicAuth(influxUser, influxPassword)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Error   string
		Results []struct {
			Error  string
			Series []struct {
				Columns []string
				Values  [][]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatalf("query %q: %v", q, err)
	}
	var rows []map[string]any
	for _, r := range answer.Results {
		answer.Error += r.Error
		for _, s := range r.Series {
			for _, v := range s.Values {
				row := map[string]any{}
				for i, c := range s.Columns {
					row[c] = v[i]
				}
				rows = append(rows, row)
			}
		}
	}
	if answer.Error != "" {
		t.Fatalf("query %q: %s", q, answer.Error)
	}
	return rows
}

// count is how many points of a run a measurement has.
func (d *influxd) count(t *testing.T, database, measurement, run string) int {
	t.Helper()
	rows := d.query(t, fmt.Sprintf(`SELECT count(seq) FROM %q WHERE run = '%s'`, measurement, run), database)
	if len(rows) == 0 {
		return 0
	}
	n, _ := rows[0]["count"].(float64)
	return int(n)
}
