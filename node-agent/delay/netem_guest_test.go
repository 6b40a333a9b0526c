//go:build guest

//guest:timed

package delay

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
	"fieldmesh.dev/fieldmesh/test/testnet/hwsim"
)

// way is what the kernel's netem does to one direction.
type way struct {
	delayMs float64
	lost    string // share, as tc has it; empty: none
}

// A kernel that delays and drops by what it is told is not ours. The round trips and the delays of each way are its
// delays and little more; what is lost in each direction is, to the datagram, what it says that it dropped; and
// arrivals are when tcpdump saw them.
func TestGuestDelayAndLossAreWhatNetemMakes(t *testing.T) {
	hwsim.NeedGuest(t)
	testnet.Need(t, "ip", "tc", "tcpdump", "tshark")
	hwsim.Modprobe(t, "veth")
	hwsim.Modprobe(t, "sch_netem")
	for name, c := range map[string]struct{ out, back way }{
		"lost on the way out":  {way{30, "20%"}, way{50, ""}},
		"lost on the way back": {way{10, ""}, way{40, "20%"}},
	} {
		t.Run(name, func(t *testing.T) { netem(t, c.out, c.back) })
	}
}

func netem(t *testing.T, out, back way) {
	a, b := testnet.NewNS(t, "a"), testnet.NewNS(t, "b")
	testnet.Veth(t, a, "wlan0", "10.77.0.1/24", b, "wlan0", "10.77.0.2/24")
	shape(t, a, "10.77.0.2", macOf(t, b), out)
	shape(t, b, "10.77.0.1", macOf(t, a), back)
	sent, came := &recorded{}, &recorded{}
	flow := wire.Flow{Name: "delay", Kind: wire.KindDelay, From: "a", To: "b", Streams: 1, DurationS: 4,
		IntervalMs: new(10.0), PayloadBytes: new(172)}
	key := Key(runKey, "netem", first, flow.Name)
	ports := [2]netip.AddrPort{netip.MustParseAddrPort("10.77.0.1:20000"), netip.MustParseAddrPort("10.77.0.2:5002")}
	atA, atB := dump(t, a, "a.pcap"), dump(t, b, "b.pcap")
	var r *Receiver
	var s *Sender
	var err error
	b.Do(t, func() error {
		r, err = Receive(t.Context(), End{flow, key, ports[1], ports[0], clock.System{}, came.emit, ""})
		return err
	})
	a.Do(t, func() error {
		s, err = NewSender(t.Context(), End{flow, key, ports[0], ports[1], clock.System{}, sent.emit, ""})
		return err
	})
	if err := s.Run(t.Context(), clock.System{}.BootNs()+100e6); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	delays, end := sent.split()
	arrivals, rEnd := came.split()
	answers := check(t, delays, out, back)
	if n := int(end.Sent) - len(arrivals); n != dropped(t, a) || (n == 0) != (out.lost == "") {
		t.Errorf("%d of %d did not arrive, and netem dropped %d", n, end.Sent, dropped(t, a))
	}
	if n := len(arrivals) - answers; n != dropped(t, b) || (n == 0) != (back.lost == "") {
		t.Errorf("%d of %d answers did not arrive, and netem dropped %d", n, len(arrivals), dropped(t, b))
	}
	if int(end.Received) != answers || int(rEnd.Received) != len(arrivals) || end.Foreign+rEnd.Foreign != 0 {
		t.Errorf("the ends tell %+v and %+v", end, rEnd)
	}
	t.Logf("%d sent, %d arrived, %d answered", len(delays), len(arrivals), answers)
	agree(t, "answers", delays, atA("udp.srcport == 5002"))
	agree(t, "requests", arrivals, atB("udp.dstport == 5002"))
}

// check compares each delay with what netem was told, and returns how many were answered. Nothing is ever faster; the
// fastest is no more than a few milliseconds slower, whatever else the machine does meanwhile.
func check(t *testing.T, delays []*wire.Delay, out, back way) (answers int) {
	t.Helper()
	least := [3]float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	for _, d := range delays {
		ns, ok := d.RoundTripNs()
		if !ok {
			continue
		}
		answers++
		for i, ms := range []float64{float64(ns) / 1e6, float64(*d.PeerReceivedBootNs-*d.HandedBootNs) / 1e6,
			float64(*d.ReceivedBootNs-*d.PeerHandedBootNs) / 1e6} {
			least[i] = min(least[i], ms)
		}
		if q := d.QueuedBootNs; q == nil || *q < *d.HandedBootNs-50_000 || *q > *d.PeerReceivedBootNs {
			t.Errorf("the kernel's stamp of its departure is not between: %+v", d)
		}
	}
	const little = 5 // ms
	for i, want := range []float64{out.delayMs + back.delayMs, out.delayMs, back.delayMs} {
		if least[i] < want-0.1 || least[i] > want+little {
			t.Errorf("%s: at least %.3f ms, and netem delays by %g ms", []string{"round trip", "out", "back"}[i],
				least[i], want)
		}
	}
	return answers
}

// agree compares arrivals with those in a capture, by the datagrams' numbers.
func agree(t *testing.T, what string, delays []*wire.Delay, captured map[uint32]float64) {
	t.Helper()
	wall, boot := time.Now().UnixNano(), clock.System{}.BootNs()
	n := 0
	for _, d := range delays {
		if d.ReceivedBootNs == nil {
			continue
		}
		n++
		at, ok := captured[d.Datagram]
		if off := float64(*d.ReceivedBootNs-boot)/1e9 - (at - float64(wall)/1e9); !ok || math.Abs(off) > 0.001 {
			t.Errorf("%s: number %d is stamped %.6f s after tcpdump saw it (seen: %v)", what, d.Datagram, off, ok)
		}
	}
	if n != len(captured) {
		t.Errorf("%s: %d are recorded, and tcpdump saw %d", what, n, len(captured))
	}
}

func macOf(t *testing.T, n *testnet.NS) string {
	return strings.TrimSpace(n.Run(t, "cat", "/sys/class/net/wlan0/address"))
}

// shape delays and drops what leaves a node. Its neighbour is known, so that no ARP packet is among what is dropped.
func shape(t *testing.T, n *testnet.NS, peer, mac string, w way) {
	n.Run(t, "ip", "neigh", "replace", peer, "lladdr", mac, "dev", "wlan0", "nud", "permanent")
	args := []string{"qdisc", "replace", "dev", "wlan0", "root", "netem", "limit", "10000", "delay",
		fmt.Sprintf("%gms", w.delayMs)}
	if w.lost != "" {
		args = append(args, "loss", w.lost)
	}
	n.Run(t, "tc", args...)
}

// dropped is what netem says that it dropped.
func dropped(t *testing.T, n *testnet.NS) int {
	t.Helper()
	var all []struct {
		Kind  string `json:"kind"`
		Drops int    `json:"drops"`
	}
	if err := json.Unmarshal([]byte(n.Run(t, "tc", "-s", "-j", "qdisc", "show", "dev", "wlan0")), &all); err != nil ||
		len(all) == 0 || all[0].Kind != "netem" {
		t.Fatalf("%+v, %v", all, err)
	}
	return all[0].Drops
}

// dump has tcpdump write what comes and goes, and returns what reads from it the times of arrivals, by datagram.
func dump(t *testing.T, n *testnet.NS, name string) func(filter string) map[uint32]float64 {
	t.Helper()
	file := filepath.Join(testnet.Folder(t), name)
	cmd := n.Command(t.Context(), "tcpdump", "-U", "-n", "-i", "wlan0", "-w", file, "udp")
	run := testnet.Start(t, cmd)
	run.Says(t, "listening on")
	return func(filter string) map[uint32]float64 {
		t.Helper()
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		<-run.Ended()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tshark := exec.CommandContext(ctx, "tshark", "-r", file, "-Y", filter, "-T", "fields",
			"-e", "frame.time_epoch", "-e", "udp.payload")
		tshark.Stderr = os.Stderr
		text, err := tshark.Output()
		if err != nil {
			t.Fatal(err)
		}
		out := map[uint32]float64{}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) != 2 {
				t.Fatalf("tshark says %q", line)
			}
			at, err := strconv.ParseFloat(f[0], 64)
			hex := strings.ReplaceAll(f[1], ":", "")
			number, nerr := strconv.ParseUint(hex[2*atNumber:2*atNumber+8], 16, 32)
			if err != nil || nerr != nil {
				t.Fatalf("tshark says %q", line)
			}
			out[uint32(number)] = at
		}
		return out
	}
}
