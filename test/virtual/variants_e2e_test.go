//go:build e2e

package virtual

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	vkernel "fieldmesh.dev/fieldmesh/rehearsal/virtual"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// conforming are the tests of node-agent/tcp that hold each TCP variant and each
// knob to its definition.
var conforming = []string{
	"TestTahoeFallsToOneSegment", "TestRenoHalves", "TestRenoPaysForEachLossOfAWindow",
	"TestNewRenoRepairsEachHoleByPartialACK", "TestRenoWithSACKRepairsAWindowAtOnce",
	"TestEveryVariantHasTheStacksPacingRate", "TestWhoAcceptsHasAPacingRateAtOnce", "TestFackSendsByForwardMostSACK",
	"TestVegasMovesByItsRule", "TestVegasKeepsItsBacklogBetweenAlphaAndBeta",
	"TestVegas1995MovesByItsRule", "TestVegas1995DoesNotGrowBeyondABound", "TestVegas1995AfterATimeout",
	"TestVegasBeginsARoundAfterAnIdleTime",
	"TestWestwoodEstimatesByItsRule", "TestWestwoodSetsSsthreshFromItsBandwidthEstimate",
	"TestWestwood2001SetsSsthreshFromItsEstimate", "TestWestwood2001LeavesASmallerWindow",
	"TestWestwood2001AfterATimeout", "TestFackBeginsRecoveryWhenTheKernelDoes",
	"TestReferenceOnDuplicateACKs", "TestReferenceOnTimeout",
	"TestFixedRTOThroughAnOutage", "TestAHeldTimerGivesNoConnectionUp", "TestFixedRTOIsForItsOwnConnectionsOnly",
	"TestAWindowInPacketsIsNeverExceeded",
	"TestTracepointsTellWhatKernelAndWireCount", "TestAFailedRetransmissionIsTold",
	"TestOthersConnectionsAreNotTraced", "TestATraceEndsAtItsClose",
}

// Every variant and knob that a rehearsal in real time has by BPF passes the same
// tests in virtual time, where the same sources are compiled in.
func TestE2EVariantsConformInVirtualTime(t *testing.T) {
	d := newDesk(t, "[8.3]")
	d.compileTCPTests(t)
	out := d.inVirtualTime(t, "tcp.test", nil, "-test.v", "-test.run", "^("+strings.Join(conforming, "|")+")$")
	for _, name := range conforming {
		if !slices.ContainsFunc(out, func(line string) bool { return strings.HasPrefix(line, "--- PASS: "+name+" ") }) {
			t.Errorf("%s has not passed", name)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(out, "\n"))
	}
}

// sequences are how many are drawn; each is of some 40 ACKs.
const sequences = 10_000

// The programs that the kernel loads as BPF and those that are compiled into the
// kernel for virtual time have the same window, ssthresh and state after each
// ACK of each of many drawn sequences.
func TestE2EProgramsAreTheSameCompiledIn(t *testing.T) {
	d := newDesk(t, "[8.3]")
	d.compileTCPTests(t)
	seed := testnet.Seed(t, 20261126, "the sequences")
	environment := func(name string) []string {
		return []string{"FIELDMESH_TCP_SEQUENCES=" + d.path("runs/"+name),
			fmt.Sprintf("FIELDMESH_TCP_SEQUENCES_COUNT=%d", sequences), fmt.Sprintf("FIELDMESH_SEED=%d", seed)}
	}
	arguments := []string{"-test.v", "-test.run", "^TestE2ESequencesChild$"}
	const passed = "--- PASS: TestE2ESequencesChild "
	loaded := exec.Command(d.path("tcp.test"), arguments...)
	loaded.Env = append(os.Environ(), environment("loaded")...)
	if out, err := loaded.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(passed)) {
		t.Fatalf("sequences with BPF: %v\n%s", err, out)
	}
	compiled := d.inVirtualTime(t, "tcp.test", environment("compiled"), arguments...)
	if !slices.ContainsFunc(compiled, func(line string) bool { return strings.HasPrefix(line, passed) }) {
		t.Fatalf("sequences in virtual time:\n%s", strings.Join(compiled, "\n"))
	}
	sameLines(t, d.path("runs/loaded"), d.path("runs/compiled"))
}

// sameLines compares the traces, and shows where the first few differ.
func sameLines(t *testing.T, loaded, compiled string) {
	t.Helper()
	a, b := linesOf(t, loaded), linesOf(t, compiled)
	if len(a) != sequences || len(b) != sequences {
		t.Fatalf("%d and %d sequences, want %d", len(a), len(b), sequences)
	}
	points, recoveries := 0, 0
	for _, program := range tcpcc.Programs() {
		differ, of := 0, 0
		for i := range a {
			x, y := strings.Fields(a[i]), strings.Fields(b[i])
			if x[1] != program+":" {
				continue
			}
			of, points = of+1, points+len(x)-2
			if strings.Contains(a[i], "/3/") {
				recoveries++
			}
			if slices.Equal(x, y) {
				continue
			}
			if differ++; differ <= 3 {
				at := 0
				for at < min(len(x), len(y)) && x[at] == y[at] {
					at++
				}
				t.Errorf("sequence %d of %s differs from ACK %d on: loaded %v, compiled in %v", i, program, at-2,
					x[max(at-2, 0):min(at+3, len(x))], y[max(at-2, 0):min(at+3, len(y))])
			}
		}
		if differ > 0 {
			t.Errorf("%s: %d of %d sequences differ", program, differ, of)
		}
		t.Logf("%s: %d sequences", program, of)
	}
	t.Logf("%d ACKs; %d sequences with a recovery", points, recoveries)
	if recoveries < sequences/2 {
		t.Errorf("only %d of %d sequences have a recovery: they show little", recoveries, sequences)
	}
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// compileTCPTests puts the tests of node-agent/tcp on the desk.
func (d *desk) compileTCPTests(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("go", "test", "-c", "-tags", "e2e", "-o", d.path("tcp.test"),
		"fieldmesh.dev/fieldmesh/node-agent/tcp").CombinedOutput(); err != nil {
		t.Fatalf("compile the tests of TCP: %v\n%s", err, out)
	}
}

// virtualChild has TestE2EInVirtualTimeChild start a kernel for a desk.
const virtualChild = "FIELDMESH_VIRTUAL_DESK"

// virtualStart is the wall clock at the start of the kernel of inVirtualTime.
var virtualStart = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)

// inVirtualTime runs a program of the desk in virtual time, as an ordinary user,
// and gives the lines that it prints. The program "self" is this test.
func (d *desk) inVirtualTime(t *testing.T, program string, environment []string, args ...string) []string {
	t.Helper()
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	d.write(t, "self", self)
	command := slices.Concat([]string{"/usr/bin/env"}, environment, []string{d.path(program)}, args)
	child := exec.Command("setpriv", append([]string{"--reuid", fmt.Sprint(testnet.Nobody), "--regid",
		fmt.Sprint(testnet.Nobody), "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs",
		d.path("self"), "-test.run", "^TestE2EInVirtualTimeChild$"}, command...)...)
	child.Dir = d.path("runs")
	child.Env = []string{"PATH=/usr/bin:/bin", virtualChild + "=" + d.dir, "FIELDMESH_PROGRAMS=" + programs}
	out, err := child.CombinedOutput()
	if err != nil {
		console, _ := os.ReadFile(d.path("runs/console.log")) // it is shown as far as there is one
		t.Fatalf("run in virtual time: %v\n%s\n%s", err, out, console)
	}
	var lines []string
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}

// TestE2EInVirtualTimeChild is the other half of it: what it is called with runs
// in virtual time.
func TestE2EInVirtualTimeChild(t *testing.T) {
	dir, built := os.Getenv(virtualChild), os.Getenv("FIELDMESH_PROGRAMS")
	if dir == "" {
		t.Skip("is run by others here")
	}
	err := vkernel.Launch(context.Background(), vkernel.Options{
		Kernel: filepath.Join(dir, "linux"), Init: filepath.Join(built, "fieldmesh"),
		InitArgs: []string{"field", "boot"},
		Command:  os.Args[3:], Writable: filepath.Join(dir, "runs"), Readable: []string{dir, built},
		MemoryMB: 1024, Start: virtualStart, Seed: 1, CallNs: 200,
		Log: filepath.Join(dir, "runs/console.log"),
		Line: func(line []byte) error {
			_, err := os.Stdout.Write(line)
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}
