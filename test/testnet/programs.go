package testnet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// WithPrograms builds fieldmesh and fieldmesh-agent for a suite, runs it, and
// returns its exit status. folder is told where they are: a folder that other
// users can enter, because agents start their unprivileged half from there.
// Without root nothing is built: every test then skips itself, saying so.
func WithPrograms(run func() int, folder *string) int {
	code, err := withPrograms(run, folder)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func withPrograms(run func() int, folder *string) (code int, err error) {
	if as := filepath.Base(os.Args[0]); as == app || as == strictApp {
		return 1, beApp(as == strictApp, os.Args[1:])
	}
	if os.Geteuid() != 0 {
		return run(), nil
	}
	// Whoever runs many suites has built them already, and so has a guest's host:
	// emulation makes a compiler slow.
	for _, variable := range []string{"FIELDMESH_PROGRAMS", "FIELDMESH_GUEST_PROGRAMS"} {
		if *folder = os.Getenv(variable); *folder != "" {
			return run(), nil
		}
	}
	if *folder, err = OpenFolder(); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(*folder)) }()
	if err := BuildPrograms(*folder); err != nil {
		return 0, err
	}
	return run(), nil
}

// BuildPrograms builds fieldmesh and fieldmesh-agent in a folder, with flags of
// go build.
func BuildPrograms(folder string, flags ...string) error {
	build := exec.Command("go", append(append([]string{"build", "-o", folder + "/"}, flags...),
		"fieldmesh.dev/fieldmesh/cmd/fieldmesh", "fieldmesh.dev/fieldmesh/cmd/fieldmesh-agent")...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the programs: %w", err)
	}
	return nil
}

// Iperf3 is the path of the static iperf3 of phones, built for a machine; script is the
// path of packaging/iperf3/build. Without one the test is skipped.
func Iperf3(t testing.TB, script, machine string) string {
	t.Helper()
	out, err := exec.Command(script, "--path", machine).Output()
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(string(out))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs iperf3 as phones have it: run packaging/iperf3/build %s (%v)", machine, err)
	}
	return path
}

// OpenFolder makes a folder that other users can enter. The system's /tmp will
// not do: a service may have one of its own. Its path is short: nodes keep Unix
// sockets below it, whose paths have at most 107 bytes.
func OpenFolder() (string, error) {
	dir, err := os.MkdirTemp("/var/tmp", "fm-"+strings.TrimSuffix(filepath.Base(os.Args[0]), ".test")+"-")
	if err != nil {
		return "", fmt.Errorf("make a folder for tests: %w", err)
	}
	return dir, os.Chmod(dir, 0o755)
}

// Folder is OpenFolder for one test. It stays for a look when the test failed
// and FIELDMESH_KEEP is set.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := OpenFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() && os.Getenv("FIELDMESH_KEEP") != "" {
			t.Logf("kept: %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
