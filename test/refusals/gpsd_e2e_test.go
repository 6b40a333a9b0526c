//go:build e2e

package refusals

import (
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// blindGPSD starts a gpsd on a node, whose receiver sees no satellite.
func (d *desk) blindGPSD(t *testing.T, node string) {
	t.Helper()
	const feed = "127.0.0.1:2900"
	// -b: read only. The receiver is a UDP port.
	c := exec.Command("ip", "netns", "exec", d.spaces[node].Name, "gpsd", "-N", "-n", "-b", "-S", "2947", "udp://"+feed)
	// gpsd exports its state in shared memory, of which a machine has one piece.
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWIPC}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var line net.Conn
	d.spaces[node].Do(t, func() (err error) { line, err = net.Dial("udp", feed); return err })
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for second := 0; ; second++ {
			// Status V, mode 1: no fix (NMEA 0183). Not heard while gpsd starts.
			_, _ = line.Write([]byte(sentence(fmt.Sprintf("GPRMC,1200%02d.00,V,,,,,,,201126,,,N", second%60)) +
				sentence("GPGSA,A,1,,,,,,,,,,,,,,,")))
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
		_ = line.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
}

// sentence closes a sentence with the checksum of NMEA 0183: all characters
// between $ and * by exclusive or.
func sentence(body string) string {
	sum := byte(0)
	for i := range len(body) {
		sum ^= body[i]
	}
	return fmt.Sprintf("$%s*%02X\r\n", body, sum)
}
