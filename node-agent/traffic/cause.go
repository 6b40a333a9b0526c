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
	{"idle timeout for receiving data", wire.CauseTimeout},
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

// errnos are the ends of those sentences. Silence leaves no errno, or that of a
// socket that had nothing to read.
var errnos = []struct{ end, cause string }{
	{"Connection refused", wire.CauseRefused},
	{"timed out", wire.CauseTimeout},
	{"Resource temporarily unavailable", wire.CauseTimeout},
	{"Try again", wire.CauseTimeout},
	{"Operation now in progress", wire.CauseTimeout},
	{"Operation in progress", wire.CauseTimeout},
	{"Success", wire.CauseTimeout},
	{"No route to host", wire.CauseUnreachable},
	{"Host is unreachable", wire.CauseUnreachable},
	{"Network is unreachable", wire.CauseUnreachable},
	{"Network unreachable", wire.CauseUnreachable},
	{"Network is down", wire.CauseUnreachable},
	{"Host is down", wire.CauseUnreachable},
	{"Connection reset by peer", wire.CauseReset},
	{"Broken pipe", wire.CauseReset},
	{"Software caused connection abort", wire.CauseReset},
	{"not connected", wire.CauseReset},
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
