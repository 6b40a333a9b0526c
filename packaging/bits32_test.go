package packaging

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// Packages with sums that an int of 32 bits has no room for compute the same on the 32-bit processors that
// packages are built for. An x86-64 processor runs such programs too.
func TestReckonedOn32Bits(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("it runs programs of 386 on linux/amd64; this is " + runtime.GOOS + "/" + runtime.GOARCH)
	}
	test := exec.Command("go", "test", "-vet=off", "fieldmesh.dev/fieldmesh/protocols/manet",
		"fieldmesh.dev/fieldmesh/controller/packets", "fieldmesh.dev/fieldmesh/rehearsal/medium/ratecontrol")
	test.Env = append(os.Environ(), "GOARCH=386", "CGO_ENABLED=0")
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
