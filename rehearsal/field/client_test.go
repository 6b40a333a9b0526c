package field

import (
	"os/exec"
	"strings"
	"testing"
)

// Who reads of a field that was killed learns who may have killed it and what to
// do, in whole sentences, whether or not it had said anything.
func TestTheEndOfAFieldIsToldInWholeSentences(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"kill -9 $$", "and --resume goes on. The process: it said nothing on stderr"},
		{"echo >&2; kill -9 $$", "and --resume goes on. The process: it said nothing on stderr"},
		{"echo no room >&2; kill -9 $$", "and --resume goes on. The process: no room"},
		{"echo no room >&2; exit 1", ": no room"},
		{"exit 1", ": it said nothing on stderr"},
	} {
		f := &Client{cmd: exec.Command("sh", "-c", c.script), log: &tail{}}
		f.cmd.Stderr = f.log
		if err := f.cmd.Run(); err == nil {
			t.Fatal("it ended well")
		}
		if got := f.lastWords(); !strings.HasSuffix(got, c.want) || strings.Contains(c.want, "--resume") !=
			strings.HasPrefix(got, "; the kernel") {
			t.Errorf("%s: %q, want %q", c.script, got, c.want)
		}
	}
}
