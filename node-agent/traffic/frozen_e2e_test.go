//go:build e2e

package traffic

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A process is frozen by its control group while it runs, and thawed again: no
// signal reports it, and its record does.
func TestE2EAProcessThatItsControlGroupFreezesSaysSo(t *testing.T) {
	for _, c := range []struct{ root, file, freeze, thaw string }{
		{"/sys/fs/cgroup", "cgroup.freeze", "1", "0"}, {"/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"},
		{"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"},
	} {
		t.Run(c.root, func(t *testing.T) {
			group := filepath.Join(c.root, "fieldmesh-test-"+strconv.Itoa(os.Getpid()))
			if err := os.Mkdir(group, 0o755); err != nil {
				t.Skip(err)
			}
			if _, err := os.Stat(filepath.Join(group, c.file)); err != nil { // no control groups lie there
				t.Skip(errors.Join(err, os.RemoveAll(group)))
			}
			p := run(t, t.Context(), `exec sleep 4`, time.Minute)
			write := func(file, text string) error {
				return os.WriteFile(filepath.Join(group, file), []byte(text), 0o644)
			}
			t.Cleanup(func() {
				p.Wait()
				if err := os.Remove(group); err != nil {
					t.Error(err)
				}
			})
			if err := write("cgroup.procs", strconv.Itoa(p.Pid())); err != nil {
				t.Skip(err)
			}
			if err := write(c.file, c.freeze); err != nil {
				t.Skip(err)
			}
			time.Sleep(500 * time.Millisecond)
			if err := write(c.file, c.thaw); err != nil {
				t.Fatal(err)
			}
			if out := p.Wait(); out.Ended != wire.EndedItself || out.FrozenBootNs == nil || out.StoppedBootNs != nil ||
				*out.FrozenBootNs <= *out.StartedBootNs {
				t.Errorf("%+v", out)
			}
		})
	}
}
