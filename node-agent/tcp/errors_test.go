package tcp

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

func TestWhatKeepsAProgramOutIsNamed(t *testing.T) {
	const otherwise = "a kernel that takes such programs"
	for name, c := range map[string]struct {
		err   error
		needs string
		says  string
	}{
		"not permitted": {fmt.Errorf("load: %w", unix.EPERM), needsRoot, "not permitted"},
		"no BPF":        {fmt.Errorf("load: %w", unix.ENOSYS), needsBPF, "no BPF"},
		"no BTF":        {fmt.Errorf("load: %w", btf.ErrNotFound), needsBTF, "does not describe its own types"},
		"anything else": {errors.New("map type 26: invalid argument"), otherwise, "invalid argument"},
	} {
		err := unsupported("variant tahoe", otherwise, c.err)
		var u *UnsupportedError
		if !errors.As(err, &u) || u.Feature != "variant tahoe" || u.Needs != c.needs ||
			!strings.Contains(err.Error(), c.says) || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want that it needs %q and says %q", name, err, c.needs, c.says)
		}
	}
}
