package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// flavours are the kernels by the name that FIELDMESH_GUEST_KERNEL bears, and
// how their packages are called. The first is the default. 6.12 is there for
// links of BPF struct_ops (from 6.4) beside kernel modules.
var flavours = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"6.1", regexp.MustCompile(`^linux-image-(6\.1\.0-[0-9]+-amd64)$`)},
	{"6.12", regexp.MustCompile(`^linux-image-(6\.12\.[0-9]+(\+deb[0-9]+|\+bpo)?-amd64)$`)},
}

// wantedModules are the folders below kernel/ that a test may load from; the
// drivers of real hardware would be most of the room.
var wantedModules = []string{
	"arch/x86/crypto", "crypto", "lib", "net", "fs/9p", "fs/ext4", "fs/fscache", "fs/jbd2", "fs/mbcache.ko", "fs/netfs",
	"fs/overlayfs",
	"drivers/block", "drivers/char", "drivers/net/dummy.ko", "drivers/net/ifb.ko", "drivers/net/mac80211_hwsim.ko",
	"drivers/net/tun.ko",
	"drivers/net/veth.ko", "drivers/net/vrf.ko", "drivers/net/wireless/mac80211_hwsim.ko",
	"drivers/net/wireless/virtual", "drivers/virtio",
}

// fetchKernels provides every flavour that the distribution has and fails
// when it has none.
func fetchKernels(dir string) error {
	dir, err := filepath.Abs(dir) // commands run in other folders
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range flavours {
		if _, err := os.Stat(filepath.Join(dir, f.name, "vmlinux")); err == nil {
			continue
		}
		if err := fetchKernel(filepath.Join(dir, f.name), f.pattern); err != nil {
			errs = append(errs, fmt.Errorf("provide kernel %s: %w", f.name, err))
		}
	}
	if len(errs) == len(flavours) {
		return errors.Join(errs...)
	}
	for _, err := range errs {
		fmt.Fprintf(os.Stderr, "guest: %v; the tests that want it will say so\n", err)
	}
	return nil
}

func fetchKernel(dir string, pattern *regexp.Regexp) error {
	pkg, err := newestPackage(pattern)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "guest: fetching %s\n", pkg)
	work := dir + ".new"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(work, "unpacked"), 0o755); err != nil {
		return err
	}
	if _, err := command(work, "apt-get", "download", "-q", pkg); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get download %s left %d packages: %w", pkg, len(debs), err)
	}
	if _, err := command(work, "dpkg-deb", "-x", debs[0], "unpacked"); err != nil {
		return err
	}
	if err := take(work, pattern.FindStringSubmatch(pkg)[1]); err != nil {
		return err
	}
	for _, p := range []string{debs[0], filepath.Join(work, "unpacked"), dir} {
		if err := os.RemoveAll(p); err != nil {
			return err
		}
	}
	return os.Rename(work, dir)
}

// newestPackage is the package of the greatest version that apt can fetch.
func newestPackage(pattern *regexp.Regexp) (string, error) {
	names, err := command("", "apt-cache", "pkgnames", "linux-image-6.1")
	if err != nil {
		return "", err
	}
	var found []string
	for _, name := range strings.Fields(names) {
		if pattern.MatchString(name) {
			found = append(found, name)
		}
	}
	sort.Slice(found, func(i, j int) bool { return later(found[i], found[j]) })
	for _, name := range found {
		policy, err := command("", "apt-cache", "policy", name)
		if err == nil && strings.Contains(policy, "Candidate:") && !strings.Contains(policy, "Candidate: (none)") {
			return name, nil
		}
	}
	return "", fmt.Errorf("no package like %s can be fetched here (apt-get update?)", pattern)
}

var digits = regexp.MustCompile(`[0-9]+`)

// later compares the numbers in two names, the first difference counts.
func later(a, b string) bool {
	x, y := digits.FindAllString(a, -1), digits.FindAllString(b, -1)
	for i := 0; i < min(len(x), len(y)); i++ {
		if len(x[i]) != len(y[i]) {
			return len(x[i]) > len(y[i])
		}
		if x[i] != y[i] {
			return x[i] > y[i]
		}
	}
	return len(x) > len(y)
}

// take keeps what a guest needs of an unpacked package: the kernel as an ELF
// file, the modules of wantedModules, and their index.
func take(work, release string) error {
	image, err := os.ReadFile(filepath.Join(work, "unpacked/boot/vmlinuz-"+release))
	if err != nil {
		return err
	}
	vmlinux, err := decompress(image)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "vmlinux"), vmlinux, 0o644); err != nil {
		return err
	}
	from, to := filepath.Join(work, "unpacked/lib/modules", release), filepath.Join(work, "lib/modules", release)
	for _, name := range []string{"modules.builtin", "modules.builtin.modinfo", "modules.order"} {
		if err := move(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	for _, name := range wantedModules {
		for _, suffix := range []string{"", ".xz"} {
			err := move(filepath.Join(from, "kernel", name)+suffix, filepath.Join(to, "kernel", name)+suffix)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	_, err = command(work, "depmod", "-b", work, release)
	return err
}

func move(from, to string) error {
	if _, err := os.Lstat(from); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// decompress takes the ELF kernel out of a bzImage: QEMU starts it directly
// (PVH), where the image's own decompressor would take seconds under
// emulation. Offsets are those of Documentation/arch/x86/boot.rst.
func decompress(image []byte) ([]byte, error) {
	const setupSects, payloadOffset, payloadLength = 0x1f1, 0x248, 0x24c
	if len(image) < 0x260 || string(image[0x202:0x206]) != "HdrS" {
		return nil, errors.New("the kernel is no bzImage")
	}
	le := func(at int) int {
		return int(image[at]) | int(image[at+1])<<8 | int(image[at+2])<<16 | int(image[at+3])<<24
	}
	start := (int(image[setupSects])+1)*512 + le(payloadOffset)
	end := start + le(payloadLength) - 4 // the last four bytes are the size of what comes out
	if start < 0 || end < start+4 || end > len(image) {
		return nil, errors.New("the kernel's header is damaged")
	}
	var tool []string
	switch payload := image[start:end]; {
	case bytes.HasPrefix(payload, []byte{0xfd, '7', 'z', 'X', 'Z'}):
		tool = []string{"xz", "-dc", "--single-stream"}
	case bytes.HasPrefix(payload, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		tool = []string{"zstd", "-dcq"}
	default:
		return nil, fmt.Errorf("the kernel is compressed in a way that is not known here (%x)", payload[:4])
	}
	cmd := exec.Command(tool[0], tool[1:]...)
	cmd.Stdin = bytes.NewReader(image[start:end])
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", tool[0], err, stderr.String())
	}
	if _, err := elf.NewFile(bytes.NewReader(out)); err != nil {
		return nil, fmt.Errorf("read the kernel: %w", err)
	}
	return out, nil
}

// command runs a program and returns what it printed; the error has what it
// said.
func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
