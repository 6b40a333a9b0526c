//go:build e2e

package journeys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// phone is an app of the fleet that talks to `fieldmesh serve`.
type phone struct {
	name   string
	at     string // host:port of the server
	client *http.Client
}

// pairPhone makes an app's key and puts it into the fleet file, as pairing does.
func (d *desk) pairPhone(t *testing.T, name, at string, experimenter bool) *phone {
	t.Helper()
	certPEM, keyPEM, pin, err := keys.New(name)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := keys.ParseIdentity(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	fl, err := fleet.AdmitApp(filepath.Dir(d.fleetFile()), name, fleet.App{Pin: pin, Experimenter: experimenter})
	if err != nil {
		t.Fatal(err)
	}
	controller, err := fl.Identity()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: keys.ClientTLS(identity, controller.Pin)}
	t.Cleanup(transport.CloseIdleConnections)
	return &phone{name: name, at: at, client: &http.Client{Transport: transport, Timeout: 3 * time.Minute}}
}

// try asks the server, and returns its answer's text or what it refused with.
func (p *phone) try(method, path string, body any) ([]byte, error) {
	var text io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		text = bytes.NewReader(data)
	}
	request, err := http.NewRequest(method, "https://"+p.at+path, text)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode == http.StatusOK {
		return data, err
	}
	refused := &wire.Error{}
	if err := json.Unmarshal(data, refused); err != nil {
		return nil, fmt.Errorf("status %d: %s", response.StatusCode, data)
	}
	return nil, refused
}

// ask is try of a call that has to succeed.
func ask[T any](t *testing.T, p *phone, method, path string, body any) (out T) {
	t.Helper()
	data, err := p.try(method, path, body)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return out
}

// refusedWith fails the test unless an error is the server's, with a code.
func refusedWith(t *testing.T, what string, err error, code string) {
	t.Helper()
	var refused *wire.Error
	if !errors.As(err, &refused) || refused.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

func (p *phone) steer(t *testing.T, run, what string) campaigns.Run {
	t.Helper()
	r := ask[campaigns.Run](t, p, http.MethodPost, "/v1/runs/"+run+"/"+what, nil)
	t.Logf("%s: %+v", what, r)
	return r
}

// run is a run as the long poll tells it.
func (p *phone) run(t *testing.T, name string) campaigns.Run {
	t.Helper()
	all := ask[campaigns.Runs](t, p, http.MethodGet, "/v1/runs", nil)
	i := slices.IndexFunc(all.Runs, func(r campaigns.Run) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("run %s is not among %+v", name, all.Runs)
	}
	return all.Runs[i]
}

// serveAt is where a test's server may listen, beside those of others.
func serveAt(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", testnet.FreePort(t))
}

// serve starts the server with one campaign, and waits until it answers.
func (d *desk) serve(t *testing.T, folder string, p *phone) *testnet.Running {
	t.Helper()
	server := begin(t, "serve", "--fleet", d.fleetFile(), "--campaigns", folder, "--runs", filepath.Join(d.dir, "runs"),
		"--place", "bench", "--listen", p.at)
	testnet.Await(t, 30*time.Second, "fieldmesh serve answers", func() bool {
		_, err := p.try(http.MethodGet, "/v1/campaigns", nil)
		return err == nil
	})
	return server
}

// driveServed drives the car as the trials of a served run want, until over says so.
func (d *desk) driveServed(t *testing.T, name string, over func(step string, k wire.TrialKey) bool) {
	t.Helper()
	follow := &follower{client: d.client(t, "alpha"), run: name}
	for until := time.Now().Add(3 * time.Minute); ; {
		if time.Now().After(until) {
			t.Fatal("the run does not come so far")
		}
		step, k, changed := follow.next(t.Context())
		if changed {
			switch step {
			case "armed":
				a, err := archive.Read(filepath.Join(d.dir, "runs", name))
				if err != nil {
					t.Fatal(err)
				}
				trial, _ := a.Trial(k.Trial)
				d.receiver.drive(*trial.SpeedMps)
			case "kept", "restoring":
				d.receiver.drive(0)
			}
		} else {
			step = ""
		}
		if over(step, k) {
			return
		}
	}
}

// A campaign is planned, checked, begun, paused in the middle of an attempt, resumed after the
// server was killed, finished and shared by a phone that has nothing but its key.
//
//attack:phone an app without the experimenter's role, or one that was revoked, has campaigns driven | the server asks
//attack:and the fleet file at each request whether the pinned key is an experimenter's
func TestACampaignIsDrivenFromThePhone(t *testing.T) {
	d := newDesk(t, "")
	at := serveAt(t)
	p := d.pairPhone(t, "phone", at, true)
	plain := d.pairPhone(t, "onlooker", at, false)
	file := stationary(t, "served", "[5.6, 11.1, 16.7]")
	const name = "served-1"
	t.Cleanup(func() { d.killDrivers(t, name) }) // they outlive the server, and a test that fails
	server := d.serve(t, filepath.Dir(file), p)

	for _, path := range []string{"/v1/campaigns", "/v1/runs"} {
		_, err := plain.try(http.MethodGet, path, nil)
		refusedWith(t, "an app without the role, "+path, err, wire.CodeForbidden)
	}
	offered := ask[campaigns.Campaigns](t, p, http.MethodGet, "/v1/campaigns", nil).Campaigns
	if len(offered) != 1 || offered[0].Name != "served" || len(offered[0].SpeedsMps) != 3 ||
		len(offered[0].Missing) > 0 || offered[0].Refused != "" {
		t.Fatalf("campaigns: %+v", offered)
	}
	choice := campaigns.Choice{Campaign: "served", SpeedsMps: []float64{5.6, 11.1}}
	planned := ask[campaigns.Planned](t, p, http.MethodPost, "/v1/plan", choice)
	t.Logf("planned: %+v", planned)
	if planned.Trials != 4 || planned.Repetitions != 1 || !slices.Equal(planned.SpeedsMps, choice.SpeedsMps) ||
		planned.RoadM != nil || len(planned.Deviations) != 1 {
		t.Errorf("planned: %+v", planned)
	}

	// A need that is not met is told with its cure.
	d.controlLink(t, false, "bravo")
	checked := ask[campaigns.Preflight](t, p, http.MethodPost, "/v1/preflight", choice)
	i := slices.IndexFunc(checked.Needs, func(n campaigns.Need) bool { // a busy alpha may lack something, too
		return n.Outcome == "unmet" && n.Node == "bravo"
	})
	if checked.Ready || i < 0 || checked.Needs[i].Cure == "" {
		t.Errorf("with bravo out of reach: %+v", checked)
	}
	d.controlLink(t, true, "bravo")
	testnet.Await(t, 2*time.Minute, "the fleet is ready", func() bool {
		checked = ask[campaigns.Preflight](t, p, http.MethodPost, "/v1/preflight", choice)
		return checked.Ready
	})

	begun := ask[campaigns.Run](t, p, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: choice})
	again := ask[campaigns.Run](t, p, http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: choice})
	if begun.Phase != campaigns.Running || again.Phase != campaigns.Running || begun.Trials != 4 {
		t.Errorf("begun: %+v, again: %+v", begun, again)
	}
	whole := campaigns.Choice{Campaign: "served"}
	_, err := p.try(http.MethodPost, "/v1/runs", campaigns.Start{Name: name, Choice: whole})
	refusedWith(t, "another choice by the name", err, wire.CodeConflict)
	_, err = p.try(http.MethodPost, "/v1/runs", campaigns.Start{Name: "served-2", Choice: choice})
	refusedWith(t, "a second run", err, wire.CodeConflict)
	d.plannedAs(t, name, planned)
	if got := d.drivers(t, name); len(got) != 1 {
		t.Errorf("%d processes drive the run: %v", len(got), got)
	}

	// Paused while an attempt is under way: every node is put back.
	d.driveServed(t, name, func(step string, k wire.TrialKey) bool { return step == "measuring" && k.Trial == 2 })
	if r := p.steer(t, name, "pause"); r.Phase != campaigns.Paused || r.Said != "" || r.Accepted != 1 {
		t.Errorf("paused: %+v", r)
	}
	d.restored(t)
	d.receiver.drive(0)
	if got := d.drivers(t, name); len(got) > 0 {
		t.Errorf("paused, and driven by %v", got)
	}
	_, err = p.try(http.MethodGet, "/v1/runs/"+name+"/files/run.json", nil)
	refusedWith(t, "a file that is not shared", err, wire.CodeNotFound)

	// The server is killed while the run goes, and finds it again.
	if r := p.steer(t, name, "resume"); r.Phase != campaigns.Running {
		t.Errorf("resumed: %+v", r)
	}
	d.driveServed(t, name, func(step string, k wire.TrialKey) bool { return step == "measuring" })
	if err := server.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait(t, time.Minute)
	server = d.serve(t, filepath.Dir(file), p)
	if r := p.run(t, name); r.Phase != campaigns.Running {
		t.Errorf("after the server was killed: %+v", r)
	}
	if r := p.steer(t, name, "pause"); r.Phase != campaigns.Paused {
		t.Errorf("paused by another server than began it: %+v", r)
	}
	d.receiver.drive(0)
	if r := p.steer(t, name, "resume"); r.Phase != campaigns.Running {
		t.Errorf("resumed by another server: %+v", r)
	}
	// Then the run's process is killed too.
	d.driveServed(t, name, func(step string, k wire.TrialKey) bool { return step == "armed" })
	d.killDrivers(t, name)
	testnet.Await(t, time.Minute, "the run is told to be paused", func() bool {
		return p.run(t, name).Phase == campaigns.Paused
	})
	p.steer(t, name, "resume")
	known, phase := uint64(0), ""
	d.driveServed(t, name, func(string, wire.TrialKey) bool {
		all := ask[campaigns.Runs](t, p, http.MethodGet, fmt.Sprintf("/v1/runs?known=%d&wait_ms=50", known), nil)
		known, phase = all.Version, all.Runs[0].Phase
		return phase != campaigns.Running
	})
	done := p.run(t, name)
	t.Logf("done: %+v, %+v", done, done.Sheet)
	if done.Phase != campaigns.Complete || done.Accepted != 4 || done.LeftS != nil || done.Sheet == nil ||
		len(done.Sheet.Speeds) != 2 || done.Sheet.Speeds[1].N != 2 || done.Sheet.Speeds[1].SpeedMps != 11.1 {
		t.Errorf("done: %+v", done)
	}
	d.restored(t)
	k := openRun(t, filepath.Join(d.dir, "runs", name))
	k.everyTrialOnce(t)
	k.nothingLost(t, deskNodes...)
	d.shared(t, p, name)

	// Revoked, it is refused on the connection that it has.
	fieldmesh(t, "keys", "revoke", "phone", "--dir", filepath.Dir(d.fleetFile()))
	_, err = p.try(http.MethodGet, "/v1/runs", nil)
	refusedWith(t, "revoked", err, wire.CodeForbidden)
	p.client.CloseIdleConnections()
	if _, err := p.try(http.MethodGet, "/v1/runs", nil); err == nil || errors.As(err, new(*wire.Error)) {
		t.Errorf("revoked, on a new connection: %v", err)
	}
	if err := server.Stop(t, syscall.SIGTERM); err != nil {
		t.Logf("fieldmesh serve: %v", err)
	}
	d.stopAgents(t)
	d.restored(t)
}

// plannedAs holds what the phone was told to what the command line says of the campaign that is
// driven.
func (d *desk) plannedAs(t *testing.T, name string, told campaigns.Planned) {
	t.Helper()
	file := filepath.Join(d.dir, "runs", ".serve", name, "campaign.yaml")
	var shown struct {
		Trials   []wire.Trial
		Design   struct{ Repetitions int }
		Estimate struct {
			RoadTotalS float64 `json:"road_total_s"`
		}
	}
	text := fieldmesh(t, "plan", "show", file, "--scale", "chosen", "--json")
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Trials) != told.Trials || shown.Design.Repetitions != told.Repetitions ||
		shown.Estimate.RoadTotalS != told.TimeS {
		t.Errorf("the phone was told %+v, plan show says %d trials, %+v, %+v", told, len(shown.Trials), shown.Design,
			shown.Estimate)
	}
}

// drivers are the processes that drive a run of the desk's.
func (d *desk) drivers(t *testing.T, name string) (out []int) {
	t.Helper()
	text, err := exec.Command("pgrep", "-f",
		"fieldmesh run .* --name="+name+" .*--runs="+filepath.Join(d.dir, "runs")).Output()
	var none *exec.ExitError
	if err != nil && !errors.As(err, &none) {
		t.Fatal(err)
	}
	for _, line := range strings.Fields(string(text)) {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err != nil {
			t.Fatal(err)
		}
		out = append(out, pid)
	}
	return out
}

func (d *desk) killDrivers(t *testing.T, name string) {
	t.Helper()
	for _, pid := range d.drivers(t, name) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
}

// shared fetches what a run is shared as, and holds it to what the command line writes.
func (d *desk) shared(t *testing.T, p *phone, name string) {
	t.Helper()
	files := ask[campaigns.Files](t, p, http.MethodGet, "/v1/runs/"+name+"/files", nil).Files
	export := filepath.Join(d.dir, "exported")
	fieldmesh(t, "export", filepath.Join(d.dir, "runs", name), "--to", export)
	if len(files) != 5 {
		t.Fatalf("files: %+v", files)
	}
	for _, f := range files {
		data, err := p.try(http.MethodGet, "/v1/runs/"+name+"/files/"+f.Name, nil)
		if err != nil || int64(len(data)) != f.Bytes {
			t.Errorf("%s: %d bytes of %d, %v", f.Name, len(data), f.Bytes, err)
		}
		if f.Name == "report.html" {
			if !bytes.Contains(data, []byte("Chosen by the experimenter")) {
				t.Error("the report does not tell what was chosen")
			}
			continue
		}
		if strings.HasPrefix(f.Name, "places.") { // an export has none
			continue
		}
		want, err := os.ReadFile(filepath.Join(export, f.Name))
		if err != nil || !bytes.Equal(data, want) {
			t.Errorf("%s is not what `fieldmesh export` writes: %v", f.Name, err)
		}
	}
}
