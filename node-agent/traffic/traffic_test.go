package traffic

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

var self, peer = netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("10.77.0.2")

func tcpFlow() wire.Flow {
	return wire.Flow{Name: "main", Kind: "iperf3_tcp", From: "n1", To: "n2", Port: 5000, Streams: 6, DurationS: 9.2,
		ClientPort: 21000}
}

func ptr[T any](v T) *T { return &v }

func TestClientArguments(t *testing.T) {
	reverse := tcpFlow()
	reverse.Reverse, reverse.WindowBytes, reverse.PayloadBytes = true, ptr(65536), ptr(1400)
	long := reverse
	long.DurationS = 117
	udp := wire.Flow{Name: "cbr", Kind: "iperf3_udp", Port: 5001, Streams: 2, DurationS: 10, ClientPort: 22000,
		BitrateBps: ptr(1e6), PayloadBytes: ptr(1000)}
	for _, c := range []struct {
		flow       wire.Flow
		congestion string
		want       string
	}{
		{tcpFlow(), "reno", "-c 10.77.0.2 -J -4 -p 5000 -B 10.77.0.1 --cport 21000 -P 6 -t 10 -i 1 --connect-timeout " +
			"2000 -C reno"},
		{reverse, "", "-c 10.77.0.2 -J -4 -p 5000 -B 10.77.0.1 --cport 21000 -P 6 -t 10 -i 1 --connect-timeout 2000 " +
			"-R -w 65536 -M 1400"},
		{long, "", "-c 10.77.0.2 -J -4 -p 5000 -B 10.77.0.1 --cport 21000 -P 6 -t 117 -i 1 --connect-timeout 2000 " +
			"-R --rcv-timeout 237000 -w 65536 -M 1400"},
		// Of a program each machine's namespace has its own name, and the sender here is the server.
		{tcpFlow(), "newreno_5", "-c 10.77.0.2 -J -4 -p 5000 -B 10.77.0.1 --cport 21000 -P 6 -t 10 -i 1 " +
			"--connect-timeout 2000 -C newreno_5"},
		{reverse, "newreno_5", "-c 10.77.0.2 -J -4 -p 5000 -B 10.77.0.1 --cport 21000 -P 6 -t 10 -i 1 " +
			"--connect-timeout 2000 -R -w 65536 -M 1400"},
		{reverse, "reno", "-c 10.77.0.2 -J -4 -p 5000 -B 10.77.0.1 --cport 21000 -P 6 -t 10 -i 1 " +
			"--connect-timeout 2000 -R -w 65536 -M 1400 -C reno"},
		{udp, "reno", "-c 10.77.0.2 -J -4 -p 5001 -B 10.77.0.1 --cport 22000 -P 2 -t 10 -i 1 --connect-timeout 2000 " +
			"-u -b 500000 -l 1000"},
	} {
		got, err := Generator{}.clientArgs(c.flow, self, peer, c.congestion, 2*time.Second)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("got  %v (%v)\nwant %s", got, err, c.want)
		}
	}
	got, err := Generator{}.serverArgs(tcpFlow(), netip.MustParseAddr("fd00::1"))
	if want := "-s -1 -J -6 -p 5000 -B fd00::1"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %v (%v), want %s", got, err, want)
	}
	for durationS, want := range map[float64]string{116: "", 117: " --rcv-timeout 237000",
		86_300: " --rcv-timeout 86400000"} {
		for _, reverse := range []bool{false, true} {
			f := tcpFlow()
			f.DurationS, f.Reverse = durationS, reverse
			if reverse {
				want = "" // it sends
			}
			got, err := Generator{}.serverArgs(f, self)
			if want := "-s -1 -J -4 -p 5000 -B 10.77.0.1" + want; err != nil || strings.Join(got, " ") != want {
				t.Errorf("%g s, reverse %v: got %v (%v), want %s", durationS, reverse, got, err, want)
			}
		}
	}
	bound := Generator{Bound: "wlan0"}
	for name, args := range map[string]func() ([]string, error){
		"server": func() ([]string, error) { return bound.serverArgs(tcpFlow(), self) },
		"client": func() ([]string, error) { return bound.clientArgs(tcpFlow(), self, peer, "", time.Second) },
	} {
		if got, err := args(); err != nil || !strings.Contains(strings.Join(got, " "), " --bind-dev wlan0") {
			t.Errorf("a bound %s: got %v (%v)", name, got, err)
		}
	}
	for version, patient := range map[string]bool{"iperf 3.9 (cJSON 1.7.13)": false, "iperf 3.10.1": true, "": true} {
		f := tcpFlow()
		f.DurationS = 117
		got, err := Generator{Version: func() string { return version }}.serverArgs(f, self)
		if err != nil || slices.Contains(got, "--rcv-timeout") != patient {
			t.Errorf("version %q: got %v (%v)", version, got, err)
		}
	}
}

//attack:controller a plan whose names and numbers are options to iperf3 | each is checked before iperf3 is started
func TestArgumentsThatAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(f *wire.Flow, cc *string){
		"kind":       func(f *wire.Flow, _ *string) { f.Kind = "ping" },
		"port 0":     func(f *wire.Flow, _ *string) { f.Port = 0 },
		"streams":    func(f *wire.Flow, _ *string) { f.Streams = 129 },
		"ports":      func(f *wire.Flow, _ *string) { f.ClientPort = 65533 },
		"duration_s": func(f *wire.Flow, _ *string) { f.DurationS = 0 },
		"is for UDP": func(f *wire.Flow, _ *string) { f.BitrateBps = ptr(1.0) },
		"needs":      func(f *wire.Flow, _ *string) { f.Kind = "iperf3_udp" },
		"congestion": func(_ *wire.Flow, cc *string) { *cc = "-Rreno" },
	} {
		f, cc := tcpFlow(), "reno"
		spoil(&f, &cc)
		_, err := Generator{}.clientArgs(f, self, peer, cc, time.Second)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error on %q, got %v", want, err)
		}
	}
}

func TestMissingIperf3NamesItsCure(t *testing.T) {
	for _, bin := range []string{"iperf3", "/nonexistent/iperf3", t.TempDir()} {
		_, err := generator(t, bin).Client(t.Context(), tcpFlow(), self, peer, "", time.Second)
		if err == nil || !strings.Contains(err.Error(), "install") {
			t.Errorf("%s: %v", bin, err)
		}
	}
}

func generator(t *testing.T, bin string) Generator {
	return Generator{Bin: bin, Folder: t.TempDir(), Clock: clock.System{}}
}

// program makes a script that stands for an iperf3 that behaves in some way.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "iperf3")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t *testing.T, ctx context.Context, script string, within time.Duration) *Process {
	t.Helper()
	p, err := generator(t, program(t, script)).start(ctx, nil, wire.Flow{Name: "main"}, "client", within)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Which iperf3 there is may change after the agent has begun, and has bound its sockets.
func TestAnIperf3ThatCannotBindIsNotReady(t *testing.T) {
	for _, c := range []struct {
		bound, version string
		ready          bool
	}{{"wlan0", "iperf 3.9 (cJSON 1.7.13)", false}, {"", "iperf 3.9 (cJSON 1.7.13)", true},
		{"wlan0", "iperf 3.12", true}, {"wlan0", "", true}} {
		g := generator(t, program(t, "exit 0"))
		g.Bound, g.Version = c.bound, func() string { return c.version }
		err := g.Ready(tcpFlow())
		if (err == nil) != c.ready || err != nil && !strings.Contains(err.Error(), "restart the agent") {
			t.Errorf("%q bound to %q: %v", c.version, c.bound, err)
		}
	}
}

func TestWhatIperf3PrintsIsKept(t *testing.T) {
	out := run(t, t.Context(), `printf '{ "end":\n {"a": 1},\n "error": "unable to connect" }\n'; exit 1`,
		time.Minute).Wait()
	if string(out.Output) != `{"end":{"a":1},"error":"unable to connect"}` || out.Error != "unable to connect" ||
		*out.ExitCode != 1 || out.Killed != "" || out.RawText != "" {
		t.Errorf("JSON: %+v", out)
	}
	out = run(t, t.Context(), `printf '{ "end": -nan }'; echo why >&2`, time.Minute).Wait()
	if out.RawText != `{ "end": -nan }` || out.Output != nil || out.Error != "why" || *out.ExitCode != 0 {
		t.Errorf("no JSON: %+v", out)
	}
	if _, err := json.Marshal(&out); err != nil {
		t.Error(err)
	}
	out = run(t, t.Context(), `head -c 9000000 /dev/zero | tr '\0' x`, time.Minute).Wait()
	if len(out.RawText) != maxOutputBytes || !strings.Contains(out.Error, "cut") || *out.ExitCode != 0 {
		t.Errorf("long: %d bytes, error %q", len(out.RawText), out.Error)
	}
	out = run(t, t.Context(), `kill -9 $$`, time.Minute).Wait()
	if out.ExitCode != nil || !strings.Contains(out.Killed, "killed") {
		t.Errorf("killed by somebody: %+v", out)
	}
}

func TestItEndsInTimeWithWhatItHas(t *testing.T) {
	// The first prints when interrupted, as iperf3 does; the second does not
	// end for SIGINT, nor does its child. exec leaves no shell behind.
	polite := `trap 'echo "{\"partial\":1}"; exit 1' INT; while :; do sleep 0.05; done`
	out := run(t, t.Context(), polite, 200*time.Millisecond).Wait()
	if string(out.Output) != `{"partial":1}` || !strings.Contains(out.Killed, "time-out") || *out.ExitCode != 1 {
		t.Errorf("polite: %+v", out)
	}
	deaf := `trap '' INT; echo half; sleep 600 & wait; sleep 600`
	p := run(t, t.Context(), deaf, 100*time.Millisecond)
	out = p.Wait()
	if out.RawText != "half" || out.ExitCode != nil || !strings.Contains(out.Killed, "time-out") {
		t.Errorf("deaf: %+v", out)
	}
	if again := p.Wait(); again.RawText != "half" {
		t.Errorf("a second Wait: %+v", again)
	}
	p.Stop("too late")
	p.EndWithin(time.Second)
}

func TestStopContextAndANewDeadline(t *testing.T) {
	const sleeper = "exec sleep 600"
	p := run(t, t.Context(), sleeper, time.Hour)
	p.Stop("aborted by the controller")
	p.Stop("second")
	if out := p.Wait(); out.Killed != "aborted by the controller" {
		t.Errorf("Stop: %+v", out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p = run(t, ctx, sleeper, time.Hour)
	cancel()
	if out := p.Wait(); !strings.Contains(out.Killed, "canceled") {
		t.Errorf("context: %+v", out)
	}
	p = run(t, t.Context(), sleeper, 0) // as a server is, whose gate may take an hour
	select {
	case <-p.Done():
		t.Errorf("without a deadline: %+v", p.Wait())
	case <-time.After(100 * time.Millisecond):
	}
	p.EndWithin(50 * time.Millisecond)
	if out := p.Wait(); !strings.Contains(out.Killed, "time-out") {
		t.Errorf("EndWithin: %+v", out)
	}
	if _, err := generator(t, "/bin/true").start(ctx, nil, wire.Flow{Name: "f"}, "client", time.Second); err == nil {
		t.Error("started with an ended context")
	}
}

func TestListenersInProcNetTCP(t *testing.T) {
	table := "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 01004D0A:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 777 1 0 100 0 " +
		"0 10 0\n" +
		"   1: 01004D0A:1388 02004D0A:5208 01 00000000:00000000 00:00000000 00000000     0        0 778 1 0 100 0 " +
		"0 10 0\n" +
		"   2: 00000000:1388 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 779 1 0 100 0 " +
		"0 10 0\n" +
		"   3: short\n"
	at := netip.MustParseAddrPort("10.77.0.1:5000")
	if procAddress(at) != "01004D0A:1388" {
		t.Skip("the recorded table is of a little-endian machine")
	}
	if got := listeners([]byte(table), at); !slices.Equal(got, []string{"socket:[777]"}) {
		t.Errorf("listeners %v", got)
	}
	if got := procAddress(netip.MustParseAddrPort("[fd00::1]:5000")); got != "000000FD000000000000000001000000:1388" {
		t.Errorf("IPv6 address %s", got)
	}
}
