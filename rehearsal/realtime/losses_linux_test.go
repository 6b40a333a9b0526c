package realtime

import (
	"bufio"
	"encoding/json"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/rehearsal/medium/phy"
)

// A loss at a forwarding node is told there and at the node that the flow
// starts at, and nowhere when nobody asked.
func TestFrameLostOnTheFeedbackSockets(t *testing.T) {
	for _, asked := range []bool{true, false} {
		cfg := testConfig(phy.Standard80211g, 54, 3)
		live, hosts, ports3 := startWith(t, cfg, true, Options{NoFIFO: true, FrameLost: asked})
		var lines []*bufio.Scanner
		for _, p := range ports3 {
			conn, err := net.Dial("unix", p.FeedbackSocket)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			s := bufio.NewScanner(conn)
			s.Scan() // caps: the client is known
			lines = append(lines, s)
		}
		for live.watchers.Load() != 3 {
			time.Sleep(time.Millisecond)
		}
		// Node 0 sends to node 1, which forwards to a node that is not there.
		for i, frame := range [][]byte{segment(0, 1, 42), segment(1, 77, 42)} {
			if _, err := unix.Write(hosts[i], frame); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				buf := make([]byte, 2048)
				if _, err := unix.Read(hosts[1], buf); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := wire.FrameLost{Flow: "10.0.0.1:5201>10.0.0.2:40000/tcp", Seq: 42, Cause: "out_of_range"}
		for node, s := range lines {
			told, must := false, asked && node < 2
			// Surveys come ten times a second; who is told nothing is watched for six.
			for surveys := 0; (must || surveys < 6) && !told && s.Scan(); {
				var line wire.Feedback
				if err := json.Unmarshal(s.Bytes(), &line); err != nil {
					t.Fatal(err)
				}
				if line.Survey != nil {
					surveys++
				}
				told = line.FrameLost != nil && *line.FrameLost == want
			}
			if told != must {
				t.Errorf("asked %v: node %d was told about the loss: %v", asked, node, told)
			}
		}
	}
}
