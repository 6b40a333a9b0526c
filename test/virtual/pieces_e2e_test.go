//go:build e2e

package virtual

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// piecesChild is how many pages TestE2EPiecesChild touches, in virtual time.
const piecesChild = "FIELDMESH_VIRTUAL_PIECES"

// A program whose memory is in more pieces than the host maps at once keeps all of
// it. It went on before with a system call that it had made already, or with one page
// fault for ever.
func TestE2EMemoryInTooManyPieces(t *testing.T) {
	const mostPages = 200_000 // 800 MB
	data, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		t.Fatal(err)
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	pages := limit * 3 / 2
	if pages > mostPages {
		t.Skipf("this host maps %d pieces, more than the test may touch", limit)
	}
	d := newDesk(t, "[8.3]")
	environment := []string{fmt.Sprintf("%s=%d", piecesChild, pages), "PATH=/usr/bin:/bin",
		"FIELDMESH_PROGRAMS=" + programs}
	out := strings.Join(d.inVirtualTime(t, "self", environment, "-test.v", "-test.run", "^TestE2EPiecesChild$"), "\n")
	if !strings.Contains(out, "--- PASS: TestE2EPiecesChild") {
		t.Error(out)
	}
}

// TestE2EPiecesChild is the half of it that runs in virtual time. It touches pages in
// an order in which no two lie side by side both for it and in the kernel's memory,
// again and again, and starts programs meanwhile.
func TestE2EPiecesChild(t *testing.T) {
	testnet.NeedSet(t, piecesChild, "is run in virtual time by another test")
	pages, err := strconv.Atoi(os.Getenv(piecesChild))
	if err != nil {
		t.Fatal(err)
	}
	const stride = 48_271 // a prime that divides no number of pages here, so that each is touched once
	if pages%stride == 0 {
		t.Fatalf("%d pages are touched in a circle", pages)
	}
	memory, err := unix.Mmap(-1, 0, pages*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pages {
		page := i * stride % pages
		binary.NativeEndian.PutUint64(memory[page*4096:], uint64(page)+1)
		if i%10_000 == 0 {
			if out, err := exec.Command("true").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	for range 2 {
		// A single call that changes all of its pages, again and again.
		for _, access := range []int{unix.PROT_READ, unix.PROT_READ | unix.PROT_WRITE} {
			if err := unix.Mprotect(memory, access); err != nil {
				t.Fatal(err)
			}
		}
		for i := range pages {
			page := i * stride % pages
			if got := binary.NativeEndian.Uint64(memory[page*4096:]); got != uint64(page)+1 {
				t.Fatalf("page %d holds %d", page, got)
			}
		}
	}
	log := make([]byte, 1<<20)
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, log)
	if err != nil || !strings.Contains(string(log[:n]), "is in more pieces than the host maps at once") {
		t.Errorf("it has not come to the limit: %v\n%s", err, log[:max(n, 0)])
	}
}
