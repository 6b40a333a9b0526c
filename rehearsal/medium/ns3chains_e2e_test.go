//go:build e2e

package medium

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Chains of 1 to 8 hops in ns-3.44, as ns2chains_e2e_test.go has them in ns-2.
func TestE2ENS3sChainsCarryAsMuchHere(t *testing.T) {
	folder, err := filepath.Abs("../../.tools/ns3")
	if err != nil {
		t.Fatal(err)
	}
	libraries := filepath.Join(folder, "lib64")
	if _, err := os.Stat(libraries); err != nil {
		t.Skip("needs ns-3: scripts/setup all fetches it")
	}
	program := filepath.Join(t.TempDir(), "ns3chain")
	args := []string{"-std=c++20", "-O2", "-I", filepath.Join(folder, "include"), "testdata/ns3chain.cc", "-o", program,
		"-L", libraries, "-Wl,-rpath," + libraries, "-Wl,--allow-shlib-undefined"}
	for _, l := range []string{"applications", "internet", "wifi", "traffic-control", "propagation", "mobility",
		"network", "core"} {
		args = append(args, "-lns3.44-"+l)
	}
	if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
		t.Fatalf("g++: %v: %s", err, out)
	}
	keepChains(t, ns3Name, func(s chainScenario) (r chainResult) {
		seconds := 60
		switch {
		case s.kind == chainTCP:
			seconds = 20
		case s.n == pacedUs:
			seconds = 100
		}
		gaveUp := 0
		out, err := exec.Command(program, fmt.Sprint(s.hops), s.kind, fmt.Sprint(s.n), fmt.Sprint(s.pauseUs),
			fmt.Sprint(s.retries), fmt.Sprint(seconds)).CombinedOutput()
		if err == nil {
			_, err = fmt.Sscan(string(out), &r.kbitS, &r.delayUs, &gaveUp)
		}
		if err != nil || gaveUp > 0 && (s.kind == chainTCP || s.n == pacedUs || s.retries == withoutEnd) {
			t.Fatalf("%+v: %v, %d frames given up, in %q", s, err, gaveUp, out)
		}
		if s.n != pacedUs {
			r.delayUs = 0
		}
		return r
	})
	TestChainsCarryWhatOtherSimulatorsCarry(t)
}
