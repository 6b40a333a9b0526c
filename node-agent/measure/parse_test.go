package measure

import (
	"encoding/json"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/test/fuzz"
)

// info is a tcp_info of a given length with every byte different from 0.
func info(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 1
	}
	return b
}

func TestOldKernelsTellLess(t *testing.T) {
	for _, c := range []struct {
		bytes               int
		rate, sent, retrans bool
		refused             bool
	}{
		{bytes: 128, refused: true},
		{bytes: 136},
		{bytes: 168, rate: true},
		{bytes: 208, rate: true, sent: true},
		{bytes: 216, rate: true, sent: true, retrans: true},
		{bytes: 400, rate: true, sent: true, retrans: true},
	} {
		var s sample
		err := s.fill(info(c.bytes))
		if c.refused != (err != nil) {
			t.Errorf("%d bytes: %v", c.bytes, err)
		}
		if c.rate != (s.DeliveryRateBps != nil) || c.sent != (s.BytesSent != nil) ||
			c.retrans != (s.BytesRetrans != nil) {
			t.Errorf("%d bytes: %+v", c.bytes, s.TCPSample)
		}
	}
}

func TestWhatTheKernelDoesNotKnowIsAbsent(t *testing.T) {
	b := info(248)
	native.PutUint32(b[offSndSsthresh:], infiniteSsthresh)
	native.PutUint64(b[offPacingRate:], ^uint64(0))
	native.PutUint64(b[offDeliveryRate:], 0)
	var s sample
	if err := s.fill(b); err != nil {
		t.Fatal(err)
	}
	if s.SsthreshSegments != nil || s.PacingRateBps != nil || s.DeliveryRateBps != nil {
		t.Errorf("%+v", s.TCPSample)
	}
	native.PutUint32(b[offSndSsthresh:], infiniteSsthresh+1)
	if err := s.fill(b); err != nil || s.SsthreshSegments == nil || *s.SsthreshSegments != infiniteSsthresh+1 {
		t.Errorf("above infinite: %+v %v", s.TCPSample, err)
	}
	native.PutUint64(b[offDeliveryRate:], 1000)
	native.PutUint32(b[offSndSsthresh:], 7)
	native.PutUint64(b[offPacingRate:], 2000)
	if err := s.fill(b); err != nil || *s.DeliveryRateBps != 8000 || *s.SsthreshSegments != 7 || *s.PacingRateBps !=
		16000 {
		t.Errorf("%+v %v", s.TCPSample, err)
	}
}

func TestStateNames(t *testing.T) {
	for n, want := range map[uint8]string{1: "ESTABLISHED", 6: "TIME_WAIT", 0: "STATE_0", 99: "STATE_99"} {
		if got := stateName(n); got != want {
			t.Errorf("state %d is %s, want %s", n, got, want)
		}
	}
}

// FuzzKernelAnswers feeds the decoders with anything; the kernel is trusted,
// but its structures differ from version to version.
func FuzzKernelAnswers(f *testing.F) {
	message := make([]byte, diagMessageBytes+4)
	message[0], message[1] = 2, 1
	native.PutUint16(message[diagMessageBytes:], 4+232)
	native.PutUint16(message[diagMessageBytes+2:], diagInfo)
	message = append(message, info(232)...)
	message = append(message, 10, 0, diagCong, 0, 'r', 'e', 'n', 'o', 0, 0, 0, 0)
	f.Add(message)
	f.Add(message[:diagMessageBytes+40])
	f.Add([]byte{})
	stats := make([]byte, statsRequestBytes)
	stats = append(stats, 68, 0, statsLink64, 0)
	f.Add(append(stats, info(64)...))
	fuzz.Run(f, func(t *testing.T, data []byte) {
		parseStats("x", data)
		m, ok := parseDiag(data)
		if !ok {
			return
		}
		_, _ = m.local(), m.remote()
		var s sample
		known := found{flow: "f"}
		if err := known.fill(&s, m); err != nil {
			return
		}
		if _, err := json.Marshal(&s.TCPSample); err != nil {
			t.Fatal(err)
		}
	})
}

// A kernel without the means to list sockets ends the list with an error, which is not a list without sockets. The
// answers are Linux 6.18's to a family and to a protocol that it does not know.
func TestAKernelThatListsNoSocketsIsNoneWithoutSockets(t *testing.T) {
	for _, c := range []struct {
		family uint8
		says   []byte
		want   error
	}{
		{unix.AF_INET, []byte{0, 0, 0, 0}, nil},
		{unix.AF_INET, []byte{254, 255, 255, 255}, unix.ENOENT},
		{unix.AF_INET6, []byte{254, 255, 255, 255}, nil},
		{unix.AF_INET6, []byte{234, 255, 255, 255}, unix.EINVAL},
	} {
		if err := dumpEnd(c.family, c.says); !errors.Is(err, c.want) {
			t.Errorf("family %d, %v: %v, want %v", c.family, c.says, err, c.want)
		}
	}
}
