//go:build e2e

package packaging

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// appsCalls are of the system calls that Android lets 64-bit apps make, as far as a program
// like iperf3 may need them: of bionic's SYSCALLS.TXT and SECCOMP_ALLOWLIST_COMMON.TXT.
var appsCalls = strings.Fields(`accept4 bind brk clock_gettime clock_nanosleep clone close connect execve exit exit_group
	fcntl fstat ftruncate futex getpeername getpid getrandom getrusage getsockname getsockopt gettid ioctl listen lseek
	madvise membarrier mmap mprotect mremap munmap nanosleep openat ppoll prctl pselect6 read readlinkat readv recvfrom
	recvmsg rt_sigaction rt_sigprocmask rt_sigreturn sched_setaffinity sched_yield sendfile sendmsg sendto
	set_tid_address setsockopt shutdown socket tkill umask uname unlinkat wait4 write writev`)

// madeCall is a line of what qemu says of a system call.
var madeCall = regexp.MustCompile(`(?m)^\d+ ([a-z0-9_]+)\(`)

// The iperf3 of phones needs nothing of the system that it runs on, may lie anywhere in
// memory, says its version, and sends and receives until it is ended, with no call for
// which Android ends an app.
func TestE2EPhonesIperf3RunsUnderEmulation(t *testing.T) {
	testnet.Need(t, "qemu-aarch64")
	built := testnet.Iperf3(t, "iperf3/build", "aarch64")
	f, err := elf.Open(built)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Machine != elf.EM_AARCH64 || f.Type != elf.ET_DYN || slices.ContainsFunc(f.Progs, func(p *elf.Prog) bool {
		return p.Type == elf.PT_INTERP || p.Type == elf.PT_LOAD && p.Align < 16384
	}) {
		t.Errorf("it is not static, for any place, for arm64, and for pages of 16 KB: %+v", f.FileHeader)
	}
	if libraries, err := f.ImportedLibraries(); err != nil || len(libraries) != 0 {
		t.Errorf("it needs %v (%v)", libraries, err)
	}
	if out := run(t, "qemu-aarch64", built, "--version"); !regexp.MustCompile(`^iperf 3\.\d+ \(cJSON`).MatchString(out) {
		t.Errorf("it says\n%s", out)
	}
	var calls bytes.Buffer
	emulated := func(said io.Writer, args ...string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), "qemu-aarch64", append([]string{"-strace", built, "--port", "5299"},
			args...)...)
		command.Stderr = said
		return command
	}
	var server bytes.Buffer
	serving := emulated(&server, "--server", "--bind", "127.0.0.1")
	if err := serving.Start(); err != nil {
		t.Fatal(err)
	}
	client := func(args ...string) *exec.Cmd {
		return emulated(&calls, append([]string{"--client", "127.0.0.1"}, args...)...)
	}
	for name, way := range map[string][]string{"up": nil, "down": {"--reverse"},
		"chosen": {"--congestion", "reno"}, "bound": {"--bind-dev", "lo"}} {
		var out []byte
		testnet.Await(t, 30*time.Second, "the server", func() bool {
			var err error
			out, err = client(append(way, "--bytes", "1M", "--json")...).Output()
			return err == nil
		})
		var report struct {
			End struct {
				Received struct {
					Bytes int `json:"bytes"`
				} `json:"sum_received"`
			} `json:"end"`
		}
		if err := json.Unmarshal(out, &report); err != nil || report.End.Received.Bytes < 1<<20 {
			t.Errorf("%s: %d bytes arrived (%v):\n%s", name, report.End.Received.Bytes, err, out)
		}
	}

	last := client("--time", "60", "--interval", "0.2", "--forceflush")
	said, err := last.StdoutPipe()
	if err == nil {
		err = last.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "bits/sec") {
			break
		}
	}
	if err := serving.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, said); err != nil {
		t.Error(err)
	}
	if err := last.Wait(); err == nil {
		t.Error("the client ended as if nothing had been")
	}
	if err := serving.Wait(); err != nil {
		t.Errorf("the server did not end in order: %v", err)
	}
	calls.Write(server.Bytes())
	seen := map[string]bool{}
	for _, m := range madeCall.FindAllStringSubmatch(calls.String(), -1) {
		if !seen[m[1]] && !slices.Contains(appsCalls, m[1]) {
			t.Errorf("it calls %s, for which Android ends an app", m[1])
		}
		seen[m[1]] = true
	}
	if len(seen) < 20 {
		t.Errorf("of its calls %d are seen:\n%s", len(seen), calls.String())
	}
}

// Another folder, another umask, another time zone, another home: the same bytes.
func TestE2ETwoBuildsOfPhonesIperf3AreTheSameBytes(t *testing.T) {
	testnet.Need(t, "cargo")
	script, err := filepath.Abs("iperf3/build")
	if err != nil {
		t.Fatal(err)
	}
	testnet.Iperf3(t, script, "aarch64")
	first := run(t, script, "aarch64")
	again := exec.Command(script, "aarch64")
	again.Env = append(os.Environ(), "FIELDMESH_IPERF3="+filepath.Join(t.TempDir(), "a folder"), "TZ=Asia/Tokyo",
		"LC_ALL=C.UTF-8", "TMPDIR="+t.TempDir())
	old := umask(0o077)
	out, err := again.Output()
	umask(old)
	if err != nil {
		t.Fatal(err)
	}
	second := string(out)
	for _, name := range []string{"libiperf3.so", "libiperf3.so.parts", "NOTICES"} {
		one, err := os.ReadFile(filepath.Join(filepath.Dir(strings.TrimSpace(first)), name))
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(filepath.Join(filepath.Dir(strings.TrimSpace(second)), name))
		if err != nil || !bytes.Equal(one, two) {
			t.Errorf("two builds of %s differ (%v)", name, err)
		}
	}
	if first == second {
		t.Error("it was built once")
	}
}
