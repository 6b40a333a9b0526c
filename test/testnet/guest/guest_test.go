package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestModulesLoadAfterWhatTheyNeed(t *testing.T) {
	dir := t.TempDir()
	index := "kernel/a/9p.ko: kernel/n/9pnet.ko kernel/f/netfs.ko\nkernel/n/9pnet.ko:\nkernel/f/netfs.ko.xz:\n" +
		"kernel/n/9pnet_virtio.ko: kernel/n/9pnet.ko " +
		"kernel/v/virtio-ring.ko\nkernel/v/virtio-ring.ko:\nkernel/x/other.ko:\n"
	if err := os.WriteFile(filepath.Join(dir, "modules.dep"), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := moduleFiles(dir, []string{"9pnet_virtio", "built_in", "9p"})
	want := []string{"kernel/n/9pnet.ko", "kernel/v/virtio-ring.ko", "kernel/n/9pnet_virtio.ko", "kernel/f/netfs.ko",
		"kernel/a/9p.ko"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if _, err := moduleFiles(dir, []string{"nothing"}); err == nil {
		t.Error("a kernel without any of the modules is taken")
	}
}

func TestArchiveIsAligned(t *testing.T) {
	var a archive
	a.add("a", modeFile, []byte("12345"))
	a.add("TRAILER!!!", 0, nil)
	const header = 110
	if at := bytes.Index(a.b.Bytes(), []byte("12345")); at != header+2 {
		t.Errorf("data begins at %d, want %d: header and name fill words", at, header+2)
	}
	if n := a.b.Len(); n%4 != 0 || bytes.Index(a.b.Bytes()[1:], []byte("070701"))+1 != header+2+8 {
		t.Errorf("an archive of %d bytes, the second member not after whole words", n)
	}
}

func TestNewerPackagesComeFirst(t *testing.T) {
	for _, pair := range [][2]string{
		{"linux-image-6.1.0-56-amd64", "linux-image-6.1.0-9-amd64"},
		{"linux-image-6.12.117+deb12-amd64", "linux-image-6.12.99+deb12-amd64"},
		{"linux-image-6.1.0-57-amd64", "linux-image-6.1.0-56-amd64"},
	} {
		if !later(pair[0], pair[1]) || later(pair[1], pair[0]) {
			t.Errorf("%s is not taken for later than %s", pair[0], pair[1])
		}
	}
	if !flavours[1].pattern.MatchString("linux-image-6.12.117+deb12-amd64") ||
		flavours[1].pattern.MatchString("linux-image-6.12.117+deb12-rt-amd64") {
		t.Error("6.12 is not told from its variants")
	}
}

func TestDamagedKernelsAreRefused(t *testing.T) {
	image := make([]byte, 4096)
	copy(image[0x202:], "HdrS")
	image[0x1f1] = 1
	for _, length := range []uint32{0, 3, 16, 1 << 31, 1<<32 - 1} {
		binary.LittleEndian.PutUint32(image[0x24c:], length)
		if _, err := decompress(image); err == nil {
			t.Errorf("a payload of %d bytes of zeros is a kernel", length)
		}
	}
	if _, err := decompress(image[:100]); err == nil {
		t.Error("100 bytes are a kernel")
	}
}

// The status must survive the guest's way out, and no status may look like
// QEMU's own failure (1) or its ordinary end (0).
func TestDebugExitIsNeverQEMUsOwn(t *testing.T) {
	for code := -1; code < 300; code++ {
		if got := debugExit(code)<<1 | 1; got < 3 || got > 255 {
			t.Errorf("status %d makes QEMU end with %d", code, got)
		}
	}
}

func TestOutputIsFollowedToTheToken(t *testing.T) {
	for _, c := range []struct {
		said string
		code int
		ok   bool
	}{
		{"T up\nok\nT exit 3\n", 3, true},
		{"T up\nwithout a newline T exit 0\n", 0, true},
		{"T up\nPASS\nexit 0\n", 0, false},
		{"T up\nT exit", 0, false},
	} {
		m := &machine{token: "T"}
		var ack strings.Builder
		came := false
		code, ok := m.follow(strings.NewReader(c.said), &ack, func() { came = true })
		if code != c.code || ok != c.ok || !came || (ack.String() == "ok\n") != c.ok {
			t.Errorf("%q: status %d, %t, acknowledged %q", c.said, code, ok, ack.String())
		}
	}
}

func TestLimitIsTheTestsOwn(t *testing.T) {
	if got := testLimit([]string{"-test.v", "-test.timeout=90s"}); got != 90*time.Second {
		t.Errorf("limit %s", got)
	}
	if got := testLimit([]string{"-test.timeout=0"}); got != 10*time.Minute {
		t.Errorf("without a limit: %s", got)
	}
}
