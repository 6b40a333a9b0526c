package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/preflight"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// offeredNames are the shipped campaigns that the bench has: those that are read at once.
var offeredNames = []string{"range-test", "reference-tcp", "variants-grid", "velocity", "velocity-phones",
	"velocity-powered"}

// bench is a server with shipped campaigns and a fleet of the nodes alpha and bravo, an
// experimenter's phone and another. Nobody drives: what is begun is noted.
type bench struct {
	*Server
	dir       string
	at        string // host:port
	driver    *noted
	phone     *http.Client
	plain     *http.Client
	node      *http.Client
	restored  [][]string      // the nodes of each call
	wrong     []string        // what the next one says
	collected []string        // runs whose last records were
	collect   func() []string // what is done meanwhile, and went wrong; nil: nothing
	identity  keys.Identity
	end       func() // of the server
}

// noted is a Driver that notes what it is told.
type noted struct {
	mu      sync.Mutex
	begun   [][]string
	running map[string]Process // by the run
	foreign map[string]Process // that others began
	stopped []string           // runs
	slow    bool               // who is interrupted does not end
}

func (d *noted) Begin(args []string, output string) (Process, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.begun = append(d.begun, args)
	p := Process{PID: len(d.begun), Ticks: 1}
	d.running[filepath.Base(filepath.Dir(output))] = p
	return p, os.WriteFile(output, nil, 0o644)
}

func (d *noted) Alive(p Process) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(d.running)), p)
}

func (d *noted) Driven(dir string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, foreign := d.foreign[filepath.Base(dir)]
	return foreign, nil
}

func (d *noted) Holder(dir string) (Process, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, foreign := d.foreign[filepath.Base(dir)]; foreign {
		return p, nil
	}
	return Process{}, errors.New("nobody drives it")
}

func (d *noted) Interrupt(of Process) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, all := range []map[string]Process{d.running, d.foreign} {
		for name, p := range all {
			if p != of {
				continue
			}
			d.stopped = append(d.stopped, name)
			if !d.slow {
				delete(all, name)
			}
		}
	}
	return nil
}

// ends has the process of a run end by itself.
func (d *noted) ends(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.running, name)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), driver: &noted{running: map[string]Process{}, foreign: map[string]Process{}}}
	var err error
	if b.identity, err = fleet.Init(b.keys()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(b.dir, "campaigns"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range offeredNames {
		text, err := os.ReadFile(filepath.Join("../../campaigns", name+".yaml"))
		if err == nil {
			err = os.WriteFile(filepath.Join(b.dir, "campaigns", name+".yaml"), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b.phone = b.pair(t, "phone", true)
	b.plain = b.pair(t, "onlooker", false)
	node := testnet.Identity(t, "alpha")
	for _, entry := range []fleet.Node{{Name: "alpha", Address: "127.0.0.1:1", Pin: node.Pin},
		{Name: "bravo", Address: "127.0.0.1:2", Pin: testnet.Identity(t, "bravo").Pin}} {
		if _, err := fleet.AdmitNode(b.keys(), entry); err != nil {
			t.Fatal(err)
		}
	}
	b.node = b.client(t, node)
	b.Server = b.serve(t)
	return b
}

func (b *bench) keys() string { return filepath.Join(b.dir, "fleet") }

func (b *bench) runs() string { return filepath.Join(b.dir, "runs") }

// pair makes an app of the fleet.
func (b *bench) pair(t *testing.T, name string, experimenter bool) *http.Client {
	t.Helper()
	identity := testnet.Identity(t, name)
	_, err := fleet.AdmitApp(b.keys(), name, fleet.App{Pin: identity.Pin, Experimenter: experimenter})
	if err != nil {
		t.Fatal(err)
	}
	return b.client(t, identity)
}

func (b *bench) client(t *testing.T, identity keys.Identity) *http.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: keys.ClientTLS(identity, b.identity.Pin)}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// serve starts a server on the bench's folders.
func (b *bench) serve(t *testing.T) *Server {
	t.Helper()
	s, err := New(Config{Fleet: filepath.Join(b.keys(), fleet.FileName),
		Campaigns: filepath.Join(b.dir, "campaigns"), Runs: b.runs(), Place: archive.PlaceRoad, Driver: b.driver,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	s.preflight = func(_ context.Context, c *plan.Campaign, _ *fleet.Fleet) (preflight.Report, error) {
		r := preflight.Report{Campaign: c.Name}
		r.Add(preflight.Item{Node: "alpha", Need: "gps", State: preflight.Unmet, Found: "no fix", Cure: "go outside"},
			preflight.Item{Node: "alpha", Need: "capture", State: preflight.Unneeded})
		return r, nil
	}
	s.restore = func(_ context.Context, _ *fleet.Fleet, nodes []string) []string {
		b.restored = append(b.restored, nodes)
		return b.wrong
	}
	s.collect = func(_ context.Context, _ *fleet.Fleet, run string) []string {
		b.collected = append(b.collected, run)
		if b.collect == nil {
			return nil
		}
		return b.collect()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.at = l.Addr().String()
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	testnet.Background(t, func(testing context.Context) error {
		defer close(ended)
		defer context.AfterFunc(testing, cancel)()
		return s.Serve(ctx, l)
	})
	b.end = func() { cancel(); <-ended }
	return s
}

// do makes a request; body is JSON's text, "" for none.
func (b *bench) do(client *http.Client, method, path, body string) ([]byte, error) {
	request, err := http.NewRequest(method, "https://"+b.at+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode == http.StatusOK {
		return data, err
	}
	refused := &wire.Error{}
	if err := json.Unmarshal(data, refused); err != nil || wire.HTTPStatus(refused.Code) != response.StatusCode {
		return nil, fmt.Errorf("status %d: %s", response.StatusCode, data)
	}
	return nil, refused
}

// ask makes a request of the experimenter's phone that has to succeed.
func ask[T any](t *testing.T, b *bench, method, path string, body any) (out T) {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = wire.Encode(body); err != nil {
			t.Fatal(err)
		}
	}
	data, err := b.do(b.phone, method, path, string(text))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return out
}

// refused makes a request of the experimenter's phone that has to be refused with a code.
func (b *bench) refused(t *testing.T, method, path string, body any, code string) *wire.Error {
	t.Helper()
	text, isText := body.(string)
	if !isText && body != nil {
		data, err := wire.Encode(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(data)
	}
	_, err := b.do(b.phone, method, path, text)
	var e *wire.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%s %.80s: %v, want %s", method, path, err, code)
		return &wire.Error{}
	}
	return e
}

func (b *bench) steer(t *testing.T, run, what string) campaigns.Run {
	t.Helper()
	return ask[campaigns.Run](t, b, http.MethodPost, "/v1/runs/"+run+"/"+what, nil)
}

// archived makes the archive of a run that was begun, as the process would.
func (b *bench) archived(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(own(b.runs(), name), campaignFile))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := readRecord(b.runs(), name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := plan.ParseAt("campaign.yaml", text, rec.Scale)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.RunPlan(name, make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.Create(filepath.Join(b.runs(), name), archive.RunInfo{Run: name, Campaign: c.Name,
		CreatedWall: time.Now().UTC(), Place: archive.PlaceRoad, Scale: c.Scale, Seed: p.Seed, CampaignRaw: text,
		Plan: p})
	if err == nil {
		err = a.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
