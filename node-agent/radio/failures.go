package radio

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
)

// Failures follows a radio-feedback socket for nothing but the frames that
// the radio gave up: failed is called with the hardware address of the
// neighbour that did not take one, and the Ethernet frame, nil where the radio
// does not say. It returns ctx's error when ctx ends.
func Failures(ctx context.Context, socket string, failed func(peer net.HardwareAddr, frame []byte)) error {
	return reconnect(ctx, socket, func(conn net.Conn) {
		wish(conn, 0)
		readFailures(conn, failed)
	})
}

// readFailures decodes only the lines that matter: a server that ignores
// feedback rates sends far more others.
func readFailures(r io.Reader, failed func(net.HardwareAddr, []byte)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 4096), maxLineBytes)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(`"tx_failed":{`)) {
			continue
		}
		f, err := parse(lines.Bytes())
		if err != nil || f.TxFailed == nil {
			continue
		}
		if mac, err := net.ParseMAC(f.TxFailed.Peer); err == nil {
			failed(mac, f.TxFailed.Frame)
		}
	}
}
