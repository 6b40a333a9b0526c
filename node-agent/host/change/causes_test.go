package change

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// A radio that was never reached told no cause; one on a road tells none.
func TestCausesThatNeverCameAreMissing(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "radio")
	f := &causeFeed{}
	f.listen(t.Context(), socket)
	if got := f.missing(); !strings.HasSuffix(got, "the radio was not reached") {
		t.Errorf("without a radio: %q", got)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_ = c.Close()
		}
	}()
	f.listen(t.Context(), socket)
	if got := f.missing(); !strings.Contains(got, "its connection 1 times") {
		t.Errorf("of a radio that ended: %q", got)
	}
}
