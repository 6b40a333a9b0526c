package process

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A process of another user with a daemon's program and arguments is no daemon of
// ours, and none that could fight over routes. One of root's is, also to whoever may not
// look into it: the test runs thrice, as itself and without capabilities.
//
//attack:local another user's program that looks like a routing daemon, or takes the name of its lock | only root's
//attack:and and our own count
func TestAnotherUsersLookAlikeIsNoDaemon(t *testing.T) {
	if dir := flag.Arg(0); dir != "" {
		d := Daemon{Name: "aodv", Binary: filepath.Join(dir, "aodv"), Dir: dir}
		fmt.Printf("runs %t, named %d.", d.Runs(), Named("aodv"))
		return
	}
	testnet.Need(t, "bash", "setpriv")
	dir := testnet.Folder(t)
	d := Daemon{Name: "aodv", Binary: filepath.Join(dir, "aodv"), Dir: dir}
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(shell)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Binary, program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, uid := range []uint32{testnet.Nobody, 0} {
		cmd := exec.Command(d.Binary, "-c", "echo runs; kill -STOP $$", d.ConfigPath())
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		r := testnet.Start(t, cmd)
		r.Says(t, "runs")
		want := uid == 0
		if runs, pid := d.Runs(), Named("aodv"); runs != want || (pid == cmd.Process.Pid) != want {
			t.Errorf("of user %d: runs %t, named as process %d (it is %d)", uid, runs, pid, cmd.Process.Pid)
		}
		told := "runs false, named 0."
		if want {
			told = fmt.Sprintf("runs true, named %d.", cmd.Process.Pid)
		}
		out, err := exec.Command("setpriv", "--bounding-set=-all", "--inh-caps=-all", self,
			"-test.run=^"+t.Name()+"$", dir).CombinedOutput()
		if err != nil || !strings.Contains(string(out), told) {
			t.Errorf("of user %d, without capabilities: %v, %s, want %s", uid, err, out, told)
		}
		if err := r.Stop(t, syscall.SIGKILL); err == nil {
			t.Error("it ended by itself")
		}
	}
	testnet.Await(t, 5*time.Second, "they are gone", func() bool { return !d.Runs() })
}

// Our own protocols are run by this program, which may lie in a folder of a user's, as
// after a build there. The test runs thrice: as itself, as a copy of the program in such
// a folder, and as the daemon that the copy starts.
//
//attack:local a user exchanges the agent's program, which root has started from a folder of his | root's daemons are
//attack:and started as the program that runs
func TestOurOwnProgramIsStartedAsItRuns(t *testing.T) {
	const says = "the daemon itself"
	switch flag.Arg(0) {
	case "daemon":
		fmt.Println(says)
		time.Sleep(time.Minute)
	case "copy":
		startExchanged(t, flag.Arg(1), says)
	default:
		dir := t.TempDir()
		program, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(dir, "fieldmesh-agent")
		if err := os.WriteFile(copied, program, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(copied, "-test.run=^"+t.Name()+"$", "copy", dir)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// startExchanged starts this program as a daemon after its file was exchanged.
func startExchanged(t *testing.T, dir, says string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(self, self+".moved"),
		os.WriteFile(self, []byte("#!/bin/sh\necho root runs this\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	d := Daemon{Name: "aodv", Binary: self, Dir: filepath.Join(dir, "daemon")}
	ended, err := d.Start(OwnProgram, "", []string{"-test.run=^" + t.Name() + "$", "daemon", d.ConfigPath()})
	if err != nil {
		t.Fatal(err)
	}
	err = d.Await(func() error {
		if !strings.Contains(d.LastWords(), says) {
			return errors.New("not yet")
		}
		return nil
	}, ended)
	if err != nil || !d.Runs() {
		t.Errorf("it runs: %t, %v", d.Runs(), err)
	}
	if err := d.Stop(); err != nil || d.Runs() {
		t.Errorf("it runs after it was stopped: %t, %v", d.Runs(), err)
	}
}
