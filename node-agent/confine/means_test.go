package confine

import (
	"errors"
	"testing"
)

// What a kernel lacks is said with what it leaves open, and with what to do about it.
func TestWhatDoesNotConfineIsSaid(t *testing.T) {
	absent := errors.New("function not implemented")
	for _, c := range []struct {
		name               string
		noLandlock, noCall error
		script             string
		lacks              [2]string
	}{
		{"both are there", nil, nil, "", [2]string{}},
		{"no Landlock", absent, nil, "", [2]string{"function not implemented", ""}},
		{"no seccomp", nil, absent, "", [2]string{"", "function not implemented"}},
		{"neither", absent, absent, "", [2]string{"function not implemented", "function not implemented"}},
		{"iperf3 is a script", nil, nil, "/opt/iperf3", [2]string{"/opt/iperf3 is a script", ""}},
	} {
		got := means(4, c.noLandlock, c.noCall, c.script)
		for i, m := range got {
			lacks := m.Lacks != ""
			if m.Lacks != c.lacks[i] || (m.Open != "") != lacks || (m.Cure != "") != lacks {
				t.Errorf("%s: %+v, and %q should be lacking", c.name, m, c.lacks[i])
			}
		}
	}
}
