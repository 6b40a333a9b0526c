package host

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/unixsocket"
)

// aloneName is an abstract socket: a network namespace has it once, and it ends with its process.
const aloneName = "@fieldmesh-agent"

// aloneWithin is how long another that only restores may take.
const aloneWithin = 2 * time.Second

// holdNamespace keeps every other agent from changing this network namespace, whatever its state directory: the
// second would take what the first has changed for what was before.
func holdNamespace(log *slog.Logger) (io.Closer, error) {
	address := &net.UnixAddr{Name: aloneName, Net: "unix"}
	for until := time.Now().Add(aloneWithin); ; time.Sleep(aloneWithin / 20) {
		l, err := net.ListenUnix("unix", address)
		if err == nil {
			go answerNobody(l)
			return l, nil
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			return nil, fmt.Errorf("hold the network namespace: %w", err)
		}
		uid, err := unixsocket.Owner(address)
		late := time.Now().After(until)
		if err == nil && uid != 0 && uid != os.Geteuid() || err != nil && late { // an agent answers
			// Any user may take the name, and must not keep changes in force by it.
			log.Warn("the name by which agents keep apart is taken by somebody else", "uid", uid, "error", err)
			return io.NopCloser(nil), nil
		}
		if late {
			return nil, errors.New("another agent changes this network namespace, with a state_dir of its own: stop " +
				"that one first, `fieldmesh-agent route` among them")
		}
	}
}

// answerNobody takes calls until the socket is closed, so that whoever asks whose it is never waits.
func answerNobody(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(aloneWithin / 20) // of the moment: no descriptors
			continue
		}
		_ = conn.Close()
	}
}
