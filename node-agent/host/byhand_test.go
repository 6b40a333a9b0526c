package host

import (
	"maps"
	"os"
	"strings"
	"testing"

	"fieldmesh.dev/fieldmesh/node-agent/host/change"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// On a full disk no undo can be recorded, but the journal is emptied: then there is nothing left to be told. While
// something is left in it, it is.
func TestAFullDiskIsToldOnlyWhereTheJournalIsNotEmptied(t *testing.T) {
	for denied, want := range map[string][2]int{"": {0, 0}, linkUp().Target(): {1, 1}} { // failed, unrecorded
		m, d := newMachine(), &disk{}
		before := m.snapshot()
		d.bomb = m.bomb
		k := wake(t, m, d)
		if _, err := k.apply(ScopeRun, []change.Change{linkUp(), address("10.77.0.1/24")}); err != nil {
			t.Fatal(err)
		}
		d.full = true
		if denied != "" {
			m.deny[denied] = errCrash
		}
		report, err := k.restore("")
		if err != nil || len(report.Failed) != want[0] || len(report.Unrecorded) != want[1] {
			t.Errorf("with %q not undone: %+v, %v", denied, report, err)
		}
		if denied == "" && (!maps.Equal(m.snapshot(), before) || len(d.data) != 0) {
			t.Errorf("machine %v, journal of %d bytes", m.snapshot(), len(d.data))
		}
	}
}

// A restore of everything by root is one by hand, unless the network face is root; its word outlives the process.
func TestARestoreByHandIsTold(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may be told from the network face")
	}
	m, cfg := newMachine(), testConfig(t)
	word := func(c *Client) string {
		t.Helper()
		s, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.ByHand
	}
	restore := func(c *Client, scope string) {
		t.Helper()
		if _, err := c.Restore(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
	}
	c, stop := begin(t, cfg, m)
	restore(c, "")
	if w := word(c); w != "" {
		t.Errorf("the face's own is told as %q", w)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	cfg.AllowUIDs = []int{12345}
	c, stop = begin(t, cfg, m)
	restore(c, ScopeTrial)
	if w := word(c); w != "" {
		t.Errorf("a trial's is told as %q", w)
	}
	restore(c, "")
	first := word(c)
	restore(c, "")
	second := word(c)
	if first == "" || second == "" || first == second {
		t.Errorf("two are told as %q and %q", first, second)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	c, _ = begin(t, cfg, m)
	if w := word(c); w != second {
		t.Errorf("in the next life it is told as %q, not %q", w, second)
	}
}

// What was undone and is not recorded is no failure, and is said.
func TestWhatIsNotRecordedIsSaid(t *testing.T) {
	r := wire.RestoreReport{Undone: []string{"link wlan0 up"}, Unrecorded: []string{"write journal: no space"}}
	if said := strings.Join(r.Lines(), "\n"); !strings.Contains(said, "undone: link wlan0 up\nnot recorded, so that "+
		"the next restore does it again: write journal: no space") {
		t.Error(said)
	}
}
