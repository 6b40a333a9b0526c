package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A process of another user with a daemon's program and arguments is no daemon of
// ours, and none that could fight over routes.
//
//attack:local another user's program that looks like a routing daemon, or takes the name of its lock | only root's
//attack:and and our own count
func TestAnotherUsersLookAlikeIsNoDaemon(t *testing.T) {
	testnet.Need(t, "bash")
	dir := testnet.Folder(t)
	d := Daemon{Name: "aodv", Binary: filepath.Join(dir, "aodv"), Dir: dir}
	shell, err := exec.LookPath("bash")
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
	own, err := NamespaceOf("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, uid := range []uint32{testnet.Nobody, 0} {
		cmd := exec.Command(d.Binary, "-c", "echo runs; kill -STOP $$", d.ConfigPath())
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		r := testnet.Start(t, cmd)
		r.Says(t, "runs")
		want := uid == 0
		if runs, pid := d.Runs(), Named("aodv", own); runs != want || (pid == cmd.Process.Pid) != want {
			t.Errorf("of user %d: runs %t, named as process %d (it is %d)", uid, runs, pid, cmd.Process.Pid)
		}
		if err := r.Stop(t, syscall.SIGKILL); err == nil {
			t.Error("it ended by itself")
		}
	}
	testnet.Await(t, 5*time.Second, "they are gone", func() bool { return !d.Runs() })
}
