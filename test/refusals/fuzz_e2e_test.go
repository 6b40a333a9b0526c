//go:build e2e

package refusals

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/node-agent/api/apifuzz"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// TestE2EARealAgentIsFuzzed: whatever is asked of it, an agent answers, lives,
// and leaves its machine as it was; and it can be driven afterwards.
//
//attack:network unknown fields, wrong types, absurd numbers
func TestE2EARealAgentIsFuzzed(t *testing.T) {
	d := newDesk(t)
	agent := d.up(t, "alpha", "quota_bytes: 50000000\n")
	address := d.forward(t, "alpha", "10.98.0.1:7443")
	halves := func() string {
		var out []string
		for _, pid := range testnet.Pids(d.spaces["alpha"].Name) {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err == nil && bytes.HasPrefix(line, []byte("fieldmesh-agent\x00")) {
				out = append(out, fmt.Sprintf("%d %s", pid, bytes.Split(line, []byte{0})[1]))
			}
		}
		return strings.Join(out, ", ")
	}
	before := halves()
	apifuzz.Run(t, apifuzz.Target{
		Address: address, CertPath: d.path("fleet", "controller.crt"), KeyPath: d.path("fleet", "controller.key"),
		Seed: 20261121, MaxExamples: 15, Limit: 4 * time.Minute,
		Run: "fuzzed", Bodies: map[string]any{"putRun": fuzzedPlan(), "arm": wire.TrialKey{Trial: 1, Attempt: 1}},
	})
	if after := halves(); after != before {
		t.Errorf("processes after the fuzzing: %s, before: %s", after, before)
	}
	log := agent.Said()
	for _, word := range []string{"panic", "goroutine ", "process ended", "status=5"} {
		if strings.Contains(log, word) {
			t.Errorf("the agent's log says %q", word)
		}
	}
	if !strings.Contains(log, "msg=undone scope=run") || !strings.Contains(log, "msg=undone scope=trial") {
		t.Error("the fuzzing never got as far as changing the machine")
	}
	d.restore(t, address)
	if after := testnet.Snapshot(t, d.spaces["alpha"].Name); after != d.before["alpha"] {
		t.Errorf("the machine is\n%s\nwas\n%s", after, d.before["alpha"])
	}
	d.behindTheDoor(t, address)
	if agent.Over() {
		t.Error("the agent has ended")
	}
	// The lease that the fuzzing took runs out by itself, after at most 120 s;
	// a new life of the agent knows of none.
	_ = agent.Stop(t, syscall.SIGTERM) // how it ends is looked at elsewhere
	d.up(t, "alpha", "quota_bytes: 50000000\n")
	d.up(t, "bravo", "")
	if o := d.run(t, patient); o.status != 0 {
		t.Errorf("a run after the fuzzing: status %d\n%s%s", o.status, o.stdout, o.stderr)
	}
}

// fuzzedPlan is one that alpha can begin, alone.
func fuzzedPlan() wire.RunPlan {
	after := 0.0
	return wire.RunPlan{Run: "fuzzed", Campaign: "fuzzed", CampaignSHA256: strings.Repeat("0", 64),
		Key: bytes.Repeat([]byte{7}, 32), AttemptsMax: 100,
		Nodes: []wire.PlanNode{{Name: "alpha", MeshPrefix: "10.77.0.1/24", GoPort: wire.DefaultGoPort},
			{Name: "bravo", MeshPrefix: "10.77.0.2/24", GoPort: wire.DefaultGoPort}},
		Trials: []wire.Trial{{Number: 1, Block: 1, Repetition: 1, Factors: map[string]string{}, Sender: "bravo",
			Receiver: "alpha", Initiator: "alpha",
			Course: wire.Course{Kind: "none"}, Gate: wire.Gate{AfterS: &after, TimeoutS: 1, LeadS: 0.3}, DurationS: 1,
			Radio: wire.Radio{Mode: "none"}, Routing: wire.Routing{Protocol: "none"}, TCP: wire.TCP{Variant: "reno"},
			Traffic: []wire.Flow{{Name: "bulk", Kind: "iperf3_tcp", From: "bravo", To: "alpha", Port: 5000, Streams: 2,
				DurationS: 1, ClientPort: 20000}}}}}
}

// restore ends what the fuzzing left under way.
func (d *desk) restore(t *testing.T, address string) {
	t.Helper()
	f, err := fleet.Load(d.path("fleet", "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	identity, err := f.Identity()
	if err != nil {
		t.Fatal(err)
	}
	node := f.Nodes["alpha"]
	node.Address = address
	client := fleet.NewClient(identity, node)
	defer client.Close()
	if report, err := client.Restore(t.Context()); err != nil || len(report.Failed) > 0 {
		t.Fatalf("restore: %v, %v", report.Failed, err)
	}
}

// behindTheDoor asks everything without a key, and with one that the agent
// does not know: neither gets a byte of HTTP.
func (d *desk) behindTheDoor(t *testing.T, address string) {
	certPEM, keyPEM, _, err := keys.New("mallory")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	for name, certificates := range map[string][]tls.Certificate{"no key": nil, "a key of its own": {foreign}} {
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true,
			// nolint:gosec // the agent has to shut the door, whoever it is
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}}
		for _, path := range []string{"/", "/v1/node", "/v1/clock", "/v1/records", "/v1/restore", "/openapi.yaml"} {
			response, err := client.Get("https://" + address + path)
			if err == nil {
				body, _ := io.ReadAll(response.Body)
				_ = response.Body.Close()
				t.Errorf("%s gets %s for %s: %.80q", name, response.Status, path, body)
			} else if !strings.Contains(err.Error(), "tls: ") {
				t.Errorf("%s is refused %s by %v, not by TLS", name, path, err)
			}
		}
	}
	response, err := (&http.Client{Timeout: time.Minute}).Get("http://" + address + "/v1/node")
	if err == nil { // crypto/tls answers plain HTTP with one line that says so
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusBadRequest || strings.Contains(string(body), "{") {
			t.Errorf("plain HTTP gets %s: %.80q", response.Status, body)
		}
	}
}
