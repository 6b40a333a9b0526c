//go:build e2e

package virtual

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// piecesChild has TestE2EPiecesChild run, in virtual time.
const piecesChild = "FIELDMESH_VIRTUAL_PIECES"

// A program whose memory is in more pieces than the host maps ends the kernel, with
// the reason. It went on before with a system call that it had made already, or with
// one page fault for ever.
func TestE2EMemoryInTooManyPieces(t *testing.T) {
	d := newDesk(t, "[8.3]")
	environment := []string{piecesChild + "=1", "PATH=/usr/bin:/bin", "FIELDMESH_PROGRAMS=" + programs}
	out, err := d.tryInVirtualTime(t, "self", environment, "-test.v",
		"-test.run", "^TestE2EPiecesChild$")
	if err == nil || !strings.Contains(string(out), "in more pieces than vm.max_map_count of the host allows") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestE2EPiecesChild is the half of it that runs in virtual time. It touches pages in
// an order in which no two lie side by side both for it and in the kernel's memory.
func TestE2EPiecesChild(t *testing.T) {
	testnet.NeedSet(t, piecesChild, "is run in virtual time by another test")
	const pages, stride = 100_003, 48_271 // a prime, so that each is touched once
	memory, err := unix.Mmap(-1, 0, pages*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pages {
		memory[i*stride%pages*4096] = 1
	}
}
