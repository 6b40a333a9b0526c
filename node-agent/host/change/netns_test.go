package change

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/host/process"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

// A namespace that has gone leaves its inode's number to the next one: a change that was
// made in it is not one of the next.
func TestANamespaceIsKnownByItsCookie(t *testing.T) {
	present, err := presentNetns()
	if err != nil {
		t.Fatal(err)
	}
	if present.Cookie == 0 {
		t.Skip("this kernel has no cookies")
	}
	if how := present.lives(present); how == "" {
		t.Error("the present namespace is taken for gone")
	}
	if os.Geteuid() != 0 {
		t.Skip("another namespace's cookie is read by root")
	}
	gone := present
	gone.Cookie += 1 << 40 // of none yet
	if how := gone.lives(present); how != "" {
		t.Errorf("a namespace that had this inode before is taken for one that lives, by %q", how)
	}
	gone.Boot = "another"
	if how := gone.lives(present); how != "" {
		t.Errorf("a namespace of another boot lives, by %q", how)
	}
	older := present
	older.Cookie = 0
	if older.lives(present) == "" {
		t.Error("without a cookie the inode decides, and the namespace is taken for gone")
	}
}

// Whoever may not look into a process does not know in which namespace it is: one that only such a process holds is not
// taken for gone. The test runs twice: as itself, and without the capability to look.
func TestANamespaceThatMayNotBeLookedIntoIsNotTakenForGone(t *testing.T) {
	if flag.NArg() > 0 {
		present, err := presentNetns()
		var made Netns
		if err = errors.Join(err, json.Unmarshal([]byte(flag.Arg(0)), &made)); err != nil {
			t.Fatal(err)
		}
		fmt.Println(made.lives(present))
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("another namespace is made by root")
	}
	testnet.Need(t, "unshare", "setpriv", "sleep")
	made, err := presentNetns()
	if err != nil {
		t.Fatal(err)
	}
	holder := exec.Command("unshare", "--net", "sleep", "600")
	testnet.Start(t, holder)
	at := fmt.Sprintf("/proc/%d/ns/net", holder.Process.Pid)
	own := made.Namespace
	testnet.Await(t, time.Minute, "the namespace is made", func() bool {
		made.Namespace, err = process.NamespaceOf(at)
		return err == nil && made.Namespace != own
	})
	if made.Cookie, err = cookieAt(at); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for set, want := range map[string]string{
		"-all,+sys_admin": "which may still exist, as not all processes may be looked into",
		"+all":            fmt.Sprintf("run `nsenter -n -t %d fieldmesh-agent restore`", holder.Process.Pid),
	} {
		out, err := exec.Command("setpriv", "--bounding-set="+set, "--inh-caps=-all", self, "-test.run=^"+t.Name()+"$",
			testnet.JSON(t, made)).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("with capabilities %s: %v, %s, want %s", set, err, out, want)
		}
	}
}
