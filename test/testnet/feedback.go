package testnet

import (
	"bufio"
	"encoding/json"
	"net"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Feedback connects to the feedback socket of an emulated radio. It returns a
// function that reads the next line, and reports whether there was one within
// 30 s of now. The first line, the radio's abilities, is read: from here on the
// radio tells this reader what happens.
func Feedback(t testing.TB, socket string) func() (wire.Feedback, bool) {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	next := func() (line wire.Feedback, ok bool) {
		t.Helper()
		if !lines.Scan() {
			t.Logf("feedback ended: %v", lines.Err())
			return line, false
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("read feedback %q: %v", lines.Text(), err)
		}
		return line, true
	}
	if first, _ := next(); first.Caps == nil {
		t.Fatalf("the first line of feedback is %+v, want caps", first)
	}
	return next
}
