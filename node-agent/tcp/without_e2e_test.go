//go:build e2e

package tcp

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// withoutVariable names what TestE2EWithoutChild is to do without.
const withoutVariable = "FIELDMESH_TCP_WITHOUT"

// lacks are ways in which a machine cannot have our programs, each made real
// for one thread, and what the probe must then say is needed.
var lacks = map[string]struct {
	lose  func() error
	needs string
}{
	"root":         {func() error { return setUID(65534) }, needsRoot},
	"capabilities": {loseCapabilities, needsRoot},
	"bpf":          {loseBPF, needsBPF},
	"btf":          {loseBTF, needsBTF},
}

// A machine that lacks what the programs rest on says so for each of them: what
// is not possible, and what it would take. What the kernel has itself is there
// all the same.
func TestE2EProbeSaysWhatIsMissing(t *testing.T) {
	testnet.Need(t)
	for lack, want := range lacks {
		t.Run(lack, func(t *testing.T) {
			// A process of its own: the loader remembers what a kernel refused.
			cmd := exec.Command(os.Args[0], "-test.run=^TestE2EWithoutChild$")
			cmd.Env = append(os.Environ(), withoutVariable+"="+lack)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("probe without %s: %v\n%s", lack, err, out)
			}
			var got without
			_, line, _ := strings.Cut(string(out), withoutMark)
			if err := json.NewDecoder(strings.NewReader(line)).Decode(&got); err != nil {
				t.Fatalf("probe without %s: %v\n%s", lack, err, out)
			}
			programs := 0
			for _, a := range got.Abilities {
				switch {
				case a.How == "native":
				case a.Feature == "variant "+tcpcc.Reference: // is a rehearsal's, whatever the machine has
				case a.How != "none" || a.Needs != want.needs || a.Reason == "":
					t.Errorf("without %s: %+v, want it to need %s", lack, a, want.needs)
				default:
					programs++
				}
			}
			if programs < 4 {
				t.Errorf("without %s: %d programs are told to be impossible: %+v", lack, programs, got.Abilities)
			}
			if feature := "variant " + tcpcc.Tahoe; !strings.Contains(got.Registering, feature) ||
				!strings.Contains(got.Registering, want.needs) {
				t.Errorf("registering without %s says %q, want %q and %q in it", lack, got.Registering, feature,
					want.needs)
			}
			t.Logf("without %s: %s", lack, got.Registering)
		})
	}
}

// without is what a process says that lacks something.
type without struct {
	Abilities   []wire.Ability
	Registering string // the error
}

const withoutMark = "\nwithout: "

// TestE2EWithoutChild is the other half, run by it in a process that lacks something.
func TestE2EWithoutChild(t *testing.T) {
	lack := os.Getenv(withoutVariable)
	if lack == "" {
		t.Skip("is run by TestE2EProbeSaysWhatIsMissing")
	}
	var out without
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never given back: the thread ends with what it lacks
		done <- func() error {
			if err := lacks[lack].lose(); err != nil {
				return err
			}
			out.Abilities = Probe(false)
			c, err := Register(tcpcc.Tahoe, fmt.Sprintf("tahoe_%x_x", os.Getpid()))
			if err == nil {
				return c.Close()
			}
			out.Registering = err.Error()
			return nil
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s%s\n", withoutMark, line)
}

// setUID changes the user of this thread; Go's own would change all.
func setUID(uid uintptr) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); errno != 0 {
		return fmt.Errorf("become user %d: %w", uid, errno)
	}
	return nil
}

// loseCapabilities leaves the thread root without a capability, as in a container.
func loseCapabilities() error {
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// loseBPF has the thread's kernel not know bpf(2).
func loseBPF() error {
	load := uint16(unix.BPF_LD | unix.BPF_W | unix.BPF_ABS)
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // seccomp_data.nr of linux/seccomp.h
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_BPF, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("filter bpf: %w", errno)
	}
	return nil
}

// loseBTF hides the description of the kernel's types from the thread.
func loseBTF() error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", "/sys/kernel/btf", "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("hide types: %w", err)
	}
	return nil
}
