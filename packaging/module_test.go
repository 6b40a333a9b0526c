package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the agent said before the phone was booted is kept, and what it says now beside it.
func TestTheModuleKeepsTheLogOfTheLifeBefore(t *testing.T) {
	text, err := os.ReadFile("module/service.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	home, module := filepath.Join(dir, "home"), filepath.Join(dir, "module")
	script := strings.NewReplacer("/data/local/fieldmesh", home, "/sys/power", dir, "sleep 2", "sleep 0.1").
		Replace(string(text))
	agent := "#!/bin/sh\n[ $1 = restore ] || { echo life >>" + dir + "/lives; echo \"life $(wc -l <" + dir +
		"/lives | tr -d ' ')\"; : >" + module + "/disable; }\n"
	for name, text := range map[string]string{"module/service.sh": script, "module/module.prop": "",
		"module/fieldmesh-agent": agent, "bin/chown": "#!/bin/sh\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range [][2]string{{"life 1\n", ""}, {"life 2\n", "life 1\n"}, {"life 3\n", "life 2\n"}} {
		_ = os.Remove(filepath.Join(module, "disable"))
		boot := exec.Command("sh", filepath.Join(module, "service.sh"))
		boot.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		if out, err := boot.CombinedOutput(); err != nil {
			t.Fatalf("boot: %v\n%s", err, out)
		}
		for i, name := range []string{"service.log", "service.log.1"} {
			log, _ := os.ReadFile(filepath.Join(home, name)) // the other one is not there at first
			// A shell may say that it has ended its child.
			if said := strings.ReplaceAll(string(log), "Terminated\n", ""); said != want[i] {
				t.Errorf("%s has %q, want %q", name, said, want[i])
			}
		}
	}
}

// When Termux is installed again Android gives it another user. The agent's configuration and files become that
// user's, in whichever folders they lie. A face_user that belongs to no app, or to one that is installed, stays.
func TestTheAgentFollowsTermuxsUser(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/chown", "#!/bin/sh\necho \"chown $*\" >>"+dir+"/said\n")
	write("bin/id", "#!/bin/sh\necho 10234\n")
	write("bin/su", "#!/bin/sh\nexec sh -c \"$2\"\n")
	write("bin/env", "#!/bin/sh\nshift 2; PATH="+dir+"/bin:$PATH exec \"$@\"\n")
	write("bin/stat", "#!/bin/sh\necho 10234\n")
	write("packages.list", "com.termux 10234 0 /data\nanother.app 10150 0 /data\n")
	write("termux/files/usr/bin/fieldmesh-agent", "the agent")
	write("termux/files/usr/bin/iperf3", "")
	write("module/fieldmesh-agent", "the agent")
	script := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.NewReplacer("/data/local/fieldmesh", home, "/data/data/com.termux", dir+"/termux",
			"/data/system", dir,
			"/system/bin/env", dir+"/bin/env").Replace(string(text))
	}
	write("fieldmesh-root", script("termux/fieldmesh-root"))
	write("customize.sh", "ARCH=arm64 MODPATH="+dir+"/module\nui_print() { echo \"$1\"; }\n"+
		"abort() { echo \"$1\"; exit 1; }\nset_perm() { :; }\n"+script("module/customize.sh"))
	for _, install := range [][]string{{"fieldmesh-root", "install"}, {"customize.sh"}} {
		for user, want := range map[string]string{"10123": "10234", "10234": "10234", "2000": "2000",
			"10150": "10150"} {
			const rest = ":3003\"\nbinaries: {}\n"
			before := "node: alpha\nstate_dir: '" + dir + "/card' # bigger\nkeys_dir: " + home + "/keys\nface_user: \""
			write("home/agent.yaml", before+user+rest)
			write("home/keys/node.key", "key")
			write("card/face/spool", "records")
			write("said", "")
			install := append([]string{filepath.Join(dir, install[0])}, install[1:]...)
			run := exec.Command("sh", install...)
			run.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
			out, err := run.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %v\n%s", install, err, out)
			}
			config, err := os.ReadFile(filepath.Join(home, "agent.yaml"))
			if err != nil || string(config) != before+want+rest {
				t.Errorf("%v: the configuration is %s (%v)", install, config, err)
			}
			said, err := os.ReadFile(filepath.Join(dir, "said"))
			given := strings.Contains(string(said), "chown -hR 10234:3003 "+dir+"/card/face\n") &&
				strings.Contains(string(said), "chown -hR 10234:3003 "+home+"/keys/node.key\n")
			if err != nil || given != (user != want) {
				t.Errorf("%v: of user %s, given to Termux's: %v\n%s%s", install, user, given, said, out)
			}
			if strings.Contains(string(out), "face_user stays "+user) != (want != "10234") {
				t.Errorf("%v: that user %s stays is not told rightly:\n%s", install, user, out)
			}
		}
	}
}
