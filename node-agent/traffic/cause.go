package traffic

import (
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// iperf3 has no codes that it tells, only words: what it was doing, mostly
// followed by the C library's words for errno. These are those of iperf3 3.12
// to 3.21 (src/iperf_error.c) and of glibc, musl and bionic.

// spoken are words that say all by themselves.
var spoken = []struct{ begin, cause string }{
	{"the server is busy running a test", wire.CauseServerBusy},
	{"control socket has closed unexpectedly", wire.CausePeerGone},
	{"stream socket has closed unexpectedly", wire.CausePeerGone},
	{"the client has unexpectedly closed the connection", wire.CausePeerGone},
	{"the client has terminated", wire.CausePeerGone},
	{"the server has terminated", wire.CausePeerGone},
	{"idle timeout for receiving data", wire.CauseTool}, // it gave up: its connection may be alive
	{"server test duration expired", wire.CauseTimeout},
	{"Server restart", wire.CauseTimeout},
}

// overTheNetwork are the doings that need the peer. With an errno of the
// network's, or with none, the network ended them.
var overTheNetwork = []string{
	"unable to connect to server", "unable to accept connection from client",
	"unable to send cookie to server", "unable to receive cookie at server",
	"unable to write to the control socket", "unable to read from the control socket",
	"unable to send control message", "unable to receive control message",
	"unable to send parameters to server", "unable to receive parameters from client",
	"unable to send results", "unable to receive results",
	"unable to connect stream", "unable to accept stream connection",
	"unable to write to stream socket", "unable to read from stream socket",
	"select failed",
}

// errnos are the ends of those sentences that the network accounts for: every
// errno that it gives a socket, and with what the peer's end leaves behind. All
// others are of the machine. Silence leaves no errno, or that of a socket that had
// nothing to read. Where the words of C libraries differ, each has its own.
var errnos = []struct{ end, cause string }{
	{"Connection refused", wire.CauseRefused},                          // ECONNREFUSED
	{"Protocol not available", wire.CauseRefused},                      // ENOPROTOOPT: ICMP, protocol unreachable
	{"Connection timed out", wire.CauseTimeout},                        // ETIMEDOUT
	{"Operation timed out", wire.CauseTimeout},                         // musl
	{"Resource temporarily unavailable", wire.CauseTimeout},            // EAGAIN
	{"Try again", wire.CauseTimeout},                                   // bionic
	{"Operation now in progress", wire.CauseTimeout},                   // EINPROGRESS
	{"Operation in progress", wire.CauseTimeout},                       // musl
	{"Operation already in progress", wire.CauseTimeout},               // EALREADY
	{"Success", wire.CauseTimeout},                                     // 0
	{"No error information", wire.CauseTimeout},                        // musl
	{"No route to host", wire.CauseUnreachable},                        // EHOSTUNREACH
	{"Host is unreachable", wire.CauseUnreachable},                     // musl
	{"Network is unreachable", wire.CauseUnreachable},                  // ENETUNREACH
	{"Network unreachable", wire.CauseUnreachable},                     // musl
	{"Network is down", wire.CauseUnreachable},                         // ENETDOWN
	{"Host is down", wire.CauseUnreachable},                            // EHOSTDOWN
	{"Machine is not on the network", wire.CauseUnreachable},           // ENONET: ICMP, host isolated
	{"Protocol error", wire.CauseUnreachable},                          // EPROTO: ICMP, parameter problem
	{"Connection reset by peer", wire.CauseReset},                      // ECONNRESET
	{"Network dropped connection on reset", wire.CauseReset},           // ENETRESET
	{"Connection reset by network", wire.CauseReset},                   // musl
	{"Broken pipe", wire.CauseReset},                                   // EPIPE
	{"Software caused connection abort", wire.CauseReset},              // ECONNABORTED
	{"Connection aborted", wire.CauseReset},                            // musl
	{"Transport endpoint is not connected", wire.CauseReset},           // ENOTCONN
	{"Socket not connected", wire.CauseReset},                          // musl
	{"Cannot send after transport endpoint shutdown", wire.CauseReset}, // ESHUTDOWN
	{"Cannot send after socket shutdown", wire.CauseReset},             // musl
	// EBADF: iperf3 has closed the socket, as its test ran over its time or it waited
	// in vain, and then asks it once more (esnet/iperf issues 753 and 1808).
	{"Bad file descriptor", wire.CauseReset},
	{"Bad file number", wire.CauseReset}, // older bionic
}

// interrupted begins what iperf3 says when a signal that it catches ends it.
const interrupted = "interrupt - "

// causeOf is what an error in iperf3's words comes from; "" for no error.
func causeOf(said string) string {
	// A peer's error, as its client tells it from 3.17 on, is one like its own.
	for _, before := range []string{"iperf3: ", "error - ", "SERVER ERROR - "} {
		said = strings.TrimPrefix(said, before)
	}
	said = strings.TrimSpace(said)
	if said == "" {
		return ""
	}
	for _, s := range spoken {
		if strings.HasPrefix(said, s.begin) {
			return s.cause
		}
	}
	for _, doing := range overTheNetwork {
		if strings.HasPrefix(said, doing) {
			return causeOfErrno(said)
		}
	}
	return wire.CauseTool
}

func causeOfErrno(said string) string {
	// Without an errno there is a colon with nothing after it.
	if !strings.Contains(said, ": ") {
		return wire.CauseTimeout
	}
	for _, e := range errnos {
		if strings.HasSuffix(said, e.end) {
			return e.cause
		}
	}
	return wire.CauseTool
}

// complaint is what of iperf3's standard error is an error: it also warns there.
func complaint(stderr string) string {
	for line := range strings.Lines(stderr) {
		said := strings.TrimPrefix(strings.TrimSpace(line), "iperf3: ")
		if strings.HasPrefix(said, "error - ") || strings.HasPrefix(said, "parameter error - ") ||
			strings.HasPrefix(said, interrupted) {
			return said
		}
	}
	return ""
}
