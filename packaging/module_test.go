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
