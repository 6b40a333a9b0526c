//go:build e2e

package android

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A phone as it is sold may be in a Wi-Fi without internet while its mobile data is on, which is the default network of
// its Android then, whichever the version. Its node keeps to the Wi-Fi where the phone lets it; where not, it is
// refused before anything begins, with what to do.
func TestE2EAStockPhoneFindsItsWayIntoAWiFiWithoutInternet(t *testing.T) {
	alpha, _, _ := twoInALocalWiFi(t, testnet.Brief("local", 2, "acceptance: {attempts_max: 20}\n"))
	const (
		other = "packets to 10.77.0.2 leave by rmnet0 and not by wlan0, to which this system lets the agent bind no " +
			"socket: operation not permitted"
		cure = "switch mobile data off"
	)
	for _, isStrict := range []bool{false, true} {
		if isStrict {
			alpha.isStrict = true
			alpha.killApp(t)
		}
		for _, n := range netds {
			n.obey(t, alpha.ns(), tethered, wifi)
			said, err := alpha.preflight()
			switch {
			case !isStrict && err != nil:
				t.Errorf("Android %s: %v\n%s", n.android, err, said)
			case isStrict && (err == nil || !strings.Contains(said, other) || !strings.Contains(said, cure)):
				t.Errorf("a strict Android %s: %v, want %q\n%s", n.android, err, other, said)
			}
		}
	}
	alpha.ns().Run(t, "ip", "rule", "flush") // as without mobile data: there is one network
	alpha.ns().Run(t, "ip", "rule", "add", "pref", "31000", "lookup", "1002")
	if said, err := alpha.preflight(); err != nil {
		t.Errorf("a strict Android, with the mobile data off: %v\n%s", err, said)
	}
}

// localCampaign is one trial in which a phone sends and receives in every way that there is: as iperf3's client and as
// its server, in reverse too, by UDP, and by the agent's own datagrams. So many programs are late on a busy machine,
// by which an attempt is not accepted; what they carry is looked at all the same.
var localCampaign = strings.Replace(testnet.Brief("local", 3, "acceptance: {attempts_max: 3}\n"),
	"{bulk: {kind: iperf3_tcp, from: sender, to: receiver, streams: 1, window_bytes: 65536, port: 5000}}", `
    bulk: {kind: iperf3_tcp, from: sender, to: receiver, window_bytes: 16384, port: 5000}
    served: {kind: iperf3_tcp, start_s: 0.2, duration_s: 1, from: receiver, to: sender, window_bytes: 16384, port: 5001}
    reverse: {kind: iperf3_tcp, start_s: 0.4, duration_s: 1, from: receiver, to: sender, reverse: true, window_bytes: 16384, port: 5002}
    served_reverse: {kind: iperf3_tcp, start_s: 0.6, duration_s: 1, from: sender, to: receiver, reverse: true, window_bytes: 16384, port: 5003}
    udp: {kind: iperf3_udp, start_s: 0.8, duration_s: 1, from: sender, to: receiver, bitrate_bps: 500000, payload_bytes: 1000, port: 5004}
    served_udp: {kind: iperf3_udp, start_s: 1, duration_s: 1, from: receiver, to: sender, bitrate_bps: 500000, payload_bytes: 1000, port: 5005}
    delay: {kind: delay, from: sender, to: receiver, interval_ms: 20, payload_bytes: 172, port: 5006}
    served_delay: {kind: delay, from: receiver, to: sender, interval_ms: 20, payload_bytes: 172, port: 5007}`, 1)

// All that such a phone's node sends to the other leaves by the Wi-Fi, also where netd has no rule by which an app may
// choose it: the kernel takes an interface that a socket is bound to for the way where no table has another.
func TestE2EAStockPhoneMeasuresOverAWiFiWithoutInternet(t *testing.T) {
	alpha, bravo, lte := twoInALocalWiFi(t, localCampaign)
	newestNetd.obey(t, alpha.ns(), tethered, wifi)
	alpha.end(t, alpha.begin(t, "every"))
	everyFlowCarries(t, alpha.path("runs/every"))

	text := strings.NewReplacer("sender: alpha", "sender: bravo", "receiver: bravo", "receiver: alpha").Replace(
		testnet.Brief("local", 2, "acceptance: {attempts_max: 20}\n")) // who sends gives the GO
	if err := os.WriteFile(alpha.path("campaign.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, n := range netds {
		if n.guarded {
			n.obey(t, alpha.ns(), tethered, wifi)
			accepted(t, alpha.end(t, alpha.begin(t, "guarded")))
		}
	}
	if out := lte.Run(t, "iptables-legacy", "-w", "-t", "raw", "-L", "PREROUTING", "-v", "-n", "-x"); !strings.Contains(
		out, " 0        0 ") {
		t.Errorf("over mobile data went packets to the Wi-Fi's network:\n%s", out)
	}
	alpha.before = testnet.Snapshot(t, alpha.ns().Name)
	for _, p := range []*stock{alpha, bravo} {
		p.ends(t)
	}
}

// twoInALocalWiFi are two stock phones in one Wi-Fi, by which the controller reaches alpha, too. Alpha has mobile data;
// what reaches lte is counted where it is for the Wi-Fi's network.
func twoInALocalWiFi(t *testing.T, campaign string) (alpha, bravo *stock, lte *testnet.NS) {
	t.Helper()
	alpha, bravo = twoStockPhones(t, campaign)
	lte = haveMobileData(t, alpha.ns(), tethered, wifi)
	lte.Run(t, "iptables-legacy", "-w", "-t", "raw", "-A", "PREROUTING", "-d", "10.77.0.0/16")
	path := alpha.path("fleet/fleet.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	address, _, _ := strings.Cut(alpha.address, "/")
	out := strings.Replace(string(text), alpha.API("alpha"), address+":7443\n    netns: "+bravo.ns().Name, 1)
	if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
		t.Fatal(err)
	}
	return alpha, bravo, lte
}

// preflight checks the phones' campaign.
func (p *stock) preflight() (said string, err error) {
	check := p.controller("preflight", p.path("campaign.yaml"), "--fleet", p.path("fleet/fleet.yaml"))
	out, err := check.CombinedOutput()
	return string(out), err
}

// everyFlowCarries fails the test unless every flow carried data in an attempt, from sockets that were bound to the
// Wi-Fi.
func everyFlowCarries(t *testing.T, run string) {
	t.Helper()
	a, err := archive.Read(run)
	if err != nil {
		t.Fatal(err)
	}
	journal, err := a.Journal()
	if err != nil {
		t.Fatal(err)
	}
	carried := map[string]bool{}
	for _, e := range journal {
		if e.Verdict == nil {
			continue
		}
		records, err := a.All(e.Verdict.Trial, e.Verdict.Attempt)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			switch b := r.Body.(type) {
			case *wire.Provenance:
				if b.BoundTo != "wlan0" {
					t.Errorf("by its records the sockets of %s are bound to %q", r.Node, b.BoundTo)
				}
			case *wire.DelayEnd:
				carried[b.Flow+" "+b.Side] = carried[b.Flow+" "+b.Side] || b.Received > 0
			case *wire.Iperf3:
				carried[b.Flow+" "+b.Side] = carried[b.Flow+" "+b.Side] || bytesOf(b) > 0
			}
		}
	}
	for _, f := range []string{"bulk", "served", "reverse", "served_reverse", "udp", "served_udp", "delay",
		"served_delay"} {
		sides := []string{"client", "server"}
		if strings.HasSuffix(f, "delay") {
			sides = []string{"sender", "responder"}
		}
		for _, side := range sides {
			if !carried[f+" "+side] {
				t.Errorf("flow %s carried nothing at its %s", f, side)
			}
		}
	}
}

// bytesOf is what iperf3 says that its flow carried.
func bytesOf(r *wire.Iperf3) float64 {
	var out struct {
		End struct {
			SumReceived struct {
				Bytes float64 `json:"bytes"`
			} `json:"sum_received"`
			SumSent struct {
				Bytes float64 `json:"bytes"`
			} `json:"sum_sent"`
			Sum struct { // of UDP
				Bytes float64 `json:"bytes"`
			} `json:"sum"`
		} `json:"end"`
	}
	if json.Unmarshal(r.Output, &out) != nil { // of an attempt that was broken off
		return 0
	}
	return max(out.End.SumReceived.Bytes, out.End.SumSent.Bytes, out.End.Sum.Bytes)
}
