package traffic

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What iperf3 says, word for word, by the version that says it so.
func TestCauseOfWhatIperf3Says(t *testing.T) {
	const (
		hint318 = "unable to connect to server - server may have stopped running or use a different port, firewall " +
			"issue, etc.: "
		recv318 = "unable to receive control message - port may not be available, the other side may have stopped " +
			"running, etc.: "
	)
	for said, want := range map[string]string{
		"": "",
		// 3.12
		"unable to connect to server: Connection refused": wire.CauseRefused,
		// 3.14 on
		hint318 + "Connection refused":                 wire.CauseRefused,
		"error - " + hint318 + "Connection refused":    wire.CauseRefused,
		"unable to connect stream: Connection refused": wire.CauseRefused,
		// UDP
		"unable to read from stream socket: Connection refused":  wire.CauseRefused,
		"the server is busy running a test. try again later":     wire.CauseServerBusy,
		"unable to connect to server: Connection timed out":      wire.CauseTimeout,
		"unable to connect to server: Operation now in progress": wire.CauseTimeout,
		// UDP's first answer
		"unable to read from stream socket: Resource temporarily unavailable":     wire.CauseTimeout,
		"unable to receive cookie at server: ":                                    wire.CauseTimeout,
		"unable to receive results: ":                                             wire.CauseTimeout,
		"idle timeout for receiving data":                                         wire.CauseTool,
		"error - server test duration expired - test is terminated by the server": wire.CauseTimeout,
		"unable to connect to server: No route to host":                           wire.CauseUnreachable,
		hint318 + "Network is unreachable":                                        wire.CauseUnreachable,
		// musl
		"unable to connect to server: Host is unreachable":                            wire.CauseUnreachable,
		"unable to write to stream socket: Network is unreachable":                    wire.CauseUnreachable,
		recv318 + "Connection reset by peer":                                          wire.CauseReset,
		"unable to write to stream socket: Broken pipe":                               wire.CauseReset,
		"control socket has closed unexpectedly":                                      wire.CausePeerGone,
		"the client has unexpectedly closed the connection":                           wire.CausePeerGone,
		"the server has terminated":                                                   wire.CausePeerGone,
		"the client has terminated":                                                   wire.CausePeerGone,
		"SERVER ERROR - unable to receive results: , errno: Connection reset by peer": wire.CauseReset,
		"SERVER ERROR - unable to create a new stream: , errno: Permission denied":    wire.CauseTool,
		"unable to create a new stream: Permission denied":                            wire.CauseTool,
		// a stale errno
		"unable to create a new stream: Connection refused": wire.
			CauseTool,
		"unable to create a new stream: No space left on device": wire.
			CauseTool,
		"unable to connect to server: Cannot assign requested address": wire.
			CauseTool,
		"unable to connect to server: Name or service not known": wire.
			CauseTool,
		"unable to accept stream connection: Too many open files": wire.
			CauseTool,
		"unable to start listener for connections: Address already in use": wire.
			CauseTool,
		"unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on " +
			"this host": wire.CauseTool,
		"test duration valid values are 0 to 86400 seconds": wire.CauseTool,
		"something that a later version says":               wire.CauseTool,
	} {
		if got := causeOf(said); got != want {
			t.Errorf("%q comes from %q, want %q", said, got, want)
		}
	}
}

// Every errno of Linux, in glibc's words, at every doing that needs the peer: what
// the network gives is a result, all else is the machine's.
func TestCauseOfEveryErrno(t *testing.T) {
	table, err := os.ReadFile("testdata/errnos.tsv")
	if err != nil {
		t.Fatal(err)
	}
	errnos := 0
	for line := range strings.Lines(string(table)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			t.Fatalf("%q", line)
		}
		errnos++
		for _, doing := range overTheNetwork {
			for _, said := range []string{doing + ": " + f[1], "error - " + doing + " - with a hint, etc.: " + f[1],
				"SERVER ERROR - " + doing + ": , errno: " + f[1]} {
				if got := causeOf(said); got != f[2] {
					t.Errorf("%s: %q comes from %q, want %q", f[0], said, got, f[2])
				}
			}
		}
		if got := causeOf("unable to create a new stream: " + f[1]); got != wire.CauseTool {
			t.Errorf("%s at what needs no peer comes from %q", f[0], got)
		}
	}
	if errnos < 130 {
		t.Errorf("%d errnos, Linux has more", errnos)
	}
	for end, want := range map[string]string{ // musl's and bionic's
		"Operation timed out":               wire.CauseTimeout,
		"Try again":                         wire.CauseTimeout,
		"No error information":              wire.CauseTimeout,
		"Host is unreachable":               wire.CauseUnreachable,
		"Network unreachable":               wire.CauseUnreachable,
		"Connection reset by network":       wire.CauseReset,
		"Connection aborted":                wire.CauseReset,
		"Socket not connected":              wire.CauseReset,
		"Cannot send after socket shutdown": wire.CauseReset,
		"No file descriptors available":     wire.CauseTool,
		"Address not available":             wire.CauseTool,
		"Operation not permitted":           wire.CauseTool,
	} {
		if got := causeOf("unable to read from stream socket: " + end); got != want {
			t.Errorf("%q comes from %q, want %q", end, got, want)
		}
	}
}

func TestHowAProcessEnded(t *testing.T) {
	const mess = `{ "start":{}, "error":"unable to connect to server: No route to host" }`
	for name, c := range map[string]struct{ script, ended, signal, cause string }{
		"well": {`echo '{"end":{}}'`, wire.EndedItself, "", ""},
		"with a warning": {`echo '{"end":{}}'; echo 'iperf3: getsockopt - Invalid argument' >&2`, wire.EndedItself,
			"", ""},
		"by the network": {`echo '` + mess + `'; exit 1`, wire.EndedItself, "", wire.CauseUnreachable},
		"refused, in text": {`echo 'iperf3: error - unable to connect to server: Connection refused' >&2; exit 1`,
			wire.EndedItself, "", wire.CauseRefused},
		"without a word": {`exit 3`, wire.EndedItself, "", wire.CauseTool},
		"killed":         {`kill -9 $$`, wire.EndedSignal, "SIGKILL", ""},
		"its disk full":  {`kill -BUS $$`, wire.EndedSignal, "SIGBUS", ""},
		"by a signal it took": {`echo '{"error":"interrupt - the server has terminated"}'; exit 1`, wire.EndedSignal,
			"", ""},
		"the same, 3.21": {`echo '{"error":"interrupt - the server has terminated by signal Terminated(15)"}'; exit 0`,
			wire.EndedSignal, "", ""},
	} {
		out := run(t, t.Context(), c.script, time.Minute).Wait()
		if out.Ended != c.ended || out.Signal != c.signal || out.Cause != c.cause {
			t.Errorf("%s: %+v", name, out)
		}
		if out.StartedBootNs == nil || out.EndedBootNs == nil || *out.EndedBootNs < *out.StartedBootNs ||
			out.StoppedBootNs != nil {
			t.Errorf("%s: its times are %+v", name, out)
		}
	}
}

func TestAProcessThatIsStoppedSaysSo(t *testing.T) {
	p := run(t, t.Context(), `exec sleep 0.3`, time.Minute)
	if err := syscall.Kill(p.Pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	if err := syscall.Kill(p.Pid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	out := p.Wait()
	if out.Ended != wire.EndedItself || out.StoppedBootNs == nil || *out.StoppedBootNs < *out.StartedBootNs ||
		*out.EndedBootNs-*out.StoppedBootNs < 90e6 {
		t.Errorf("%+v", out)
	}
}

func TestATemporaryFolderThatIsNotToBeHadNamesItsCure(t *testing.T) {
	g := generator(t, program(t, `printf '"%s"' "$TMPDIR"; stat -c ' %a' "$TMPDIR"`))
	p, err := g.start(t.Context(), nil, wire.Flow{Name: "main"}, "client", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if said := p.Wait().RawText; !strings.HasPrefix(said, `"`+g.Folder+"/") || !strings.HasSuffix(said, " 700") {
		t.Errorf("its folder: %s", said)
	}
	if err := g.Ready(tcpFlow()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(g.Folder); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	if err := os.Mkdir(g.Folder+"/iperf3-1", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := g.Sweep(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(g.Folder); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Sweep(), os.WriteFile(g.Folder, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	_, started := g.start(t.Context(), nil, wire.Flow{Name: "main"}, "client", time.Minute)
	for what, err := range map[string]error{"start": started, "ready": g.Ready(tcpFlow())} {
		if err == nil || !strings.Contains(err.Error(), g.Folder) || !strings.Contains(err.Error(), "can write") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
