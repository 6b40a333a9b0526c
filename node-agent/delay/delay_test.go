package delay

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"fieldmesh.dev/fieldmesh/node-agent/clock"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"fieldmesh.dev/fieldmesh/test/fuzz"
	"fieldmesh.dev/fieldmesh/test/testnet"
)

var (
	runKey = []byte("the key of the run, 32 bytes....")
	first  = wire.TrialKey{Trial: 3, Attempt: 1}
	here   = netip.MustParseAddr("127.0.0.1")
)

// recorded keeps an end's records.
type recorded struct {
	mu  sync.Mutex
	all []wire.Body
}

func (r *recorded) emit(_ int64, b wire.Body) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, b)
	return nil
}

func (r *recorded) split() (delays []*wire.Delay, end *wire.DelayEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.all {
		switch b := b.(type) {
		case *wire.Delay:
			delays = append(delays, b)
		case *wire.DelayEnd:
			end = b
		}
	}
	return delays, end
}

// ends are both ends' settings on loopback; their ports are those that the kernel has chosen.
func ends(t *testing.T, durationS float64) (sender, responder End, sent, came *recorded) {
	t.Helper()
	flow := wire.Flow{Name: "delay", Kind: wire.KindDelay, From: "a", To: "b", Streams: 1, DurationS: durationS,
		IntervalMs: new(5.0), PayloadBytes: new(172)}
	sent, came = &recorded{}, &recorded{}
	key := Key(runKey, "velocity-1", first, flow.Name)
	ports := [2]netip.AddrPort{freePort(t), freePort(t)}
	return End{flow, key, ports[0], ports[1], clock.System{}, sent.emit, ""},
		End{flow, key, ports[1], ports[0], clock.System{}, came.emit, ""}, sent, came
}

func freePort(t *testing.T) netip.AddrPort {
	t.Helper()
	s, err := listen(t.Context(), End{Own: netip.AddrPortFrom(here, 0), Clock: clock.System{}}, true)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(s.conn.LocalAddr().String())
	if err := s.conn.Close(); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestEachDatagramIsRecordedAtBothEnds(t *testing.T) {
	from, to, sent, came := ends(t, 0.2)
	r, err := Receive(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSender(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	open := clock.System{}.BootNs() + 20e6
	if err := s.Run(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	out, outEnd := sent.split()
	in, inEnd := came.split()
	if outEnd == nil || inEnd == nil {
		t.Fatalf("the ends tell %+v and %+v", outEnd, inEnd)
	}
	n := uint64(len(out))
	// A machine that is busy may not have run at some datagram's time.
	if n == 0 || n > 40 || *outEnd != (wire.DelayEnd{Flow: "delay", Side: "sender", Sent: n, Received: n}) ||
		*inEnd != (wire.DelayEnd{Flow: "delay", Side: "responder", Sent: n, Received: n}) || uint64(len(in)) != n {
		t.Fatalf("%d records, %d at the responder; the ends tell %+v and %+v", n, len(in), outEnd, inEnd)
	}
	byKernel := 0
	for _, d := range out {
		at := slices.IndexFunc(in, func(o *wire.Delay) bool { return o.Datagram == d.Datagram })
		if at < 0 {
			t.Fatalf("the responder has no record of %+v", d)
		}
		o := in[at]
		due := open + int64(d.Datagram)*5e6
		ns, ok := d.RoundTripNs()
		if !ok || ns <= 0 || *d.DueBootNs != due || *d.HandedBootNs < due ||
			*d.PeerReceivedBootNs != *o.ReceivedBootNs || *d.PeerHandedBootNs != *o.HandedBootNs ||
			d.PeerReceivedStamp != o.ReceivedStamp || *o.ReceivedBootNs < *d.HandedBootNs-1e6 {
			t.Errorf("sender %+v\nresponder %+v", d, o)
		}
		if d.QueuedBootNs == nil {
			t.Errorf("the kernel stamped no departure of %+v", d)
		}
		if d.ReceivedStamp == wire.StampKernel && d.PeerReceivedStamp == wire.StampKernel {
			byKernel++
		}
	}
	if byKernel == 0 { // it begins some time after it is asked to
		t.Error("the kernel stamped no arrival")
	}
}

// constantEnds are those of a flow of kind cbr, a datagram every 5 ms.
func constantEnds(t *testing.T, durationS float64) (sender, receiver End, sent, came *recorded) {
	t.Helper()
	sender, receiver, sent, came = ends(t, durationS)
	for _, e := range []*End{&sender, &receiver} {
		e.Flow.Kind, e.Flow.Background, e.Flow.IntervalMs, e.Flow.BitrateBps = wire.KindCBR, true, nil, new(172*8/5e-3)
	}
	return sender, receiver, sent, came
}

// each checks that the sender has one record of each datagram, and returns those of what it wanted to send.
func each(t *testing.T, e End, openNs int64, sent *recorded) (handed []*wire.Delay, end *wire.DelayEnd) {
	t.Helper()
	all, end := sent.split()
	if end == nil || len(all) != e.Flow.Datagrams() {
		t.Fatalf("%d records of %d datagrams; the sender tells %+v", len(all), e.Flow.Datagrams(), end)
	}
	for i, d := range all {
		due := openNs + int64(i)*5e6
		if d.Side != wire.DelaySender || int(d.Datagram) != i || *d.DueBootNs != due ||
			d.HandedBootNs != nil && *d.HandedBootNs < due || d.ReceivedBootNs != nil {
			t.Errorf("record %d is %+v", i, d)
		}
		if d.HandedBootNs != nil {
			handed = append(handed, d)
		}
	}
	return handed, end
}

// Datagrams of kind cbr go one way. Those whose time has passed when the sender begins are recorded as not sent.
func TestDatagramsThatNobodyAnswers(t *testing.T) {
	from, to, sent, came := constantEnds(t, 0.2)
	r, err := Receive(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSender(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	open := clock.System{}.BootNs() - 50e6
	if err := s.Run(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	if over := open + 200e6 + 1e9; s.Clock.BootNs() > over {
		t.Error("the sender waited for answers")
	}
	_, end := sent.split()
	testnet.Await(t, 10*time.Second, "what was sent", func() bool {
		in, _ := came.split()
		return uint64(len(in)) == end.Sent
	})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	handed, _ := each(t, from, open, sent)
	n := uint64(len(handed))
	if n == 0 || n > 31 || *end != (wire.DelayEnd{Flow: "delay", Side: "sender", Sent: n}) {
		t.Errorf("%d of 40 were handed over, of which 9 or more were too late; the sender tells %+v", n, end)
	}
	in, inEnd := came.split()
	if uint64(len(in)) != n || *inEnd != (wire.DelayEnd{Flow: "delay", Side: "receiver", Received: n}) {
		t.Fatalf("%d were sent, %d came; the receiver tells %+v", n, len(in), inEnd)
	}
	byKernel := 0
	for i, d := range in {
		if d.Side != wire.DelayReceiver || d.Datagram != handed[i].Datagram || d.HandedBootNs != nil ||
			*d.ReceivedBootNs < *handed[i].HandedBootNs-1e6 {
			t.Errorf("sender %+v\nreceiver %+v", handed[i], d)
		}
		if d.ReceivedStamp == wire.StampKernel {
			byKernel++
		}
	}
	if byKernel == 0 {
		t.Error("the kernel stamped no arrival")
	}
}

// A sender goes on whatever the kernel says of each datagram, and records it.
func TestWhatTheKernelRefusesIsRecorded(t *testing.T) {
	from, _, sent, _ := constantEnds(t, 0.1)
	from.Peer = netip.MustParseAddrPort("192.0.2.1:5002") // to which nothing goes from a loopback address
	s, err := NewSender(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	open := s.Clock.BootNs()
	if err := s.Run(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	handed, end := each(t, from, open, sent)
	for _, d := range handed {
		if d.Refused == "" {
			t.Errorf("it was sent: %+v", d)
		}
	}
	if len(handed) == 0 || end.Sent != 0 {
		t.Errorf("%d were handed over; the sender tells %+v", len(handed), end)
	}
}

// Datagrams are sent at their times while a record waits for the disk; all records are there when the sender is done.
func TestSendingDoesNotWaitForTheRecords(t *testing.T) {
	for _, kind := range []string{wire.KindCBR, wire.KindDelay} {
		from, to, sent, _ := ends(t, 1)
		if kind == wire.KindCBR {
			from, to, sent, _ = constantEnds(t, 1)
		}
		var once sync.Once
		from.Emit = func(tBootNs int64, b wire.Body) error {
			once.Do(func() { time.Sleep(700 * time.Millisecond) })
			return sent.emit(tBootNs, b)
		}
		r, err := Receive(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewSender(t.Context(), from)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Run(t.Context(), clock.System{}.BootNs())
		if err = errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		all, end := sent.split()
		if end == nil {
			t.Fatalf("%s: no end after %d records", kind, len(all))
		}
		for i, d := range all {
			if kind == wire.KindCBR && int(d.Datagram) != i {
				t.Errorf("record %d is %+v", i, d)
			}
		}
		if end.Sent < 130 { // a machine that is busy may miss some
			t.Errorf("%s: %d of 200 were sent", kind, end.Sent)
		}
	}
}

// What had come when an end is closed counts, though its program was held up and had not read it.
func TestWhatWaitsAtTheCloseIsRead(t *testing.T) {
	from, to, _, came := constantEnds(t, 1)
	held, release := make(chan bool), make(chan bool)
	r, err := newReceiver(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	r.socket.start(func(b []byte, from netip.AddrPort, at stamp) {
		if len(r.seen) == 0 {
			held <- true
			<-release
		}
		r.arrived(b, from, at)
	}, nil)
	s, err := NewSender(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	const n = 150 // more than are read at once
	for i := range uint32(n) {
		if err := s.one(i, 0); err != nil {
			t.Fatal(err)
		}
	}
	<-held
	over := clock.System{}.BootNs()
	closed := make(chan error)
	go func() { closed <- r.Close() }()
	time.Sleep(100 * time.Millisecond) // it closes while the program is held up
	release <- true
	if err := errors.Join(<-closed, s.Close(), s.flush()); err != nil {
		t.Fatal(err)
	}
	in, end := came.split()
	if len(in) != n || end.Received != n {
		t.Errorf("%d of %d are recorded; the receiver tells %+v", len(in), n, end)
	}
	for _, d := range in {
		if d.ReceivedStamp == wire.StampKernel && *d.ReceivedBootNs > over {
			t.Errorf("%+v came before %d", d, over)
		}
	}
}

// A record that cannot be written ends the flow, and nothing is written after it.
func TestARecordThatIsNotWrittenEndsTheFlow(t *testing.T) {
	from, _, _, _ := constantEnds(t, 20)
	full := errors.New("no room")
	emitted := 0
	from.Emit = func(int64, wire.Body) error {
		if emitted++; emitted == 3 {
			return full
		}
		return nil
	}
	s, err := NewSender(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := s.Run(t.Context(), clock.System{}.BootNs()); !errors.Is(err, full) || emitted != 3 ||
		time.Since(began) > 10*time.Second {
		t.Errorf("after %v and %d records: %v", time.Since(began), emitted, err)
	}
}

// Whatever ends a sender, what was lost before is recorded, but for what may still be answered.
func TestWhatWasLostIsRecordedThoughTheSenderIsInterrupted(t *testing.T) {
	t.Parallel()
	from, _, sent, _ := ends(t, 60) // and nobody answers
	s, err := NewSender(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	open := clock.System{}.BootNs()
	ctx, cancel := context.WithTimeout(t.Context(), wire.DelayGrace+time.Second)
	defer cancel()
	if err := s.Run(ctx, open); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	over := clock.System{}.BootNs() - wire.DelayGrace.Nanoseconds()
	out, end := sent.split()
	if end != nil || len(out) < 50 {
		t.Errorf("%d datagrams are recorded, and the end %+v", len(out), end)
	}
	seen := map[uint32]bool{}
	for _, d := range out {
		if d.ReceivedBootNs != nil || *d.HandedBootNs > over || seen[d.Datagram] {
			t.Errorf("%+v is recorded; it is lost or answered by %d", d, over)
		}
		seen[d.Datagram] = true
	}
}

// An answer that comes when its datagram was recorded as lost is counted, and gives no second record.
func TestALateAnswerGivesNoSecondRecord(t *testing.T) {
	from, _, sent, _ := ends(t, 0.2)
	s, err := NewSender(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.one(7, 0); err != nil {
		t.Fatal(err)
	}
	s.giveUp(clock.System{}.BootNs())
	back := datagram{kind: answer, number: 7, receivedNs: 1, handedNs: 2}.seal(from.Key, 172)
	s.arrived(back, from.Peer, stamp{bootNs: clock.System{}.BootNs()})
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	if out, _ := sent.split(); len(out) != 1 || out[0].ReceivedBootNs != nil || s.end.Received != 1 {
		t.Errorf("the sender has recorded %+v, and counts %+v", out, s.end)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// What comes to an end's port from others, or bears another attempt's key, is counted as foreign and changes nothing;
// a copy is not answered.
//
//attack:air datagrams of kinds delay and cbr that are made up, of another attempt, or heard and sent again | HMAC
//attack:and with a key of the attempt; a copy is counted apart and not answered
func TestStrangersDatagramsAreNotCounted(t *testing.T) {
	from, to, sent, came := ends(t, 0.2)
	r, err := newReceiver(t.Context(), to) // nobody serves either socket: what comes is given by hand
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSender(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.one(7, 0); err != nil {
		t.Fatal(err)
	}
	now := stamp{bootNs: clock.System{}.BootNs(), byKernel: true}
	stranger := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.9"), from.Own.Port())
	elsewhere := netip.AddrPortFrom(here, from.Own.Port()+1)
	one, seven, next := datagram{kind: request, number: 1}, datagram{kind: answer, number: 7},
		wire.TrialKey{Trial: 3, Attempt: 2}
	good := one.seal(to.Key, 172)
	spoilt := slices.Clone(good)
	spoilt[atNumber+3] ^= 2
	for name, c := range map[string]struct {
		b    []byte
		from netip.AddrPort
	}{
		"from another address": {good, stranger},
		"from another port":    {good, elsewhere},
		"spoilt":               {spoilt, from.Own},
		"cut":                  {good[:100], from.Own},
		"empty":                {nil, from.Own},
		"an answer":            {datagram{kind: answer, number: 1}.seal(to.Key, 172), from.Own},
		"beyond the last":      {datagram{kind: request, number: 40}.seal(to.Key, 172), from.Own},
		"of another run":       {one.seal(Key(runKey, "velocity-2", first, "delay"), 172), from.Own},
		"of another flow":      {one.seal(Key(runKey, "velocity-1", first, "other"), 172), from.Own},
		"of the next attempt":  {one.seal(Key(runKey, "velocity-1", next, "delay"), 172), from.Own},
	} {
		before := r.end
		r.arrived(c.b, c.from, now)
		if before.Foreign++; r.end != before {
			t.Errorf("%s: the responder counts %+v, want %+v", name, r.end, before)
		}
	}
	before := r.end
	r.arrived(good, from.Own, now)
	r.arrived(good, from.Own, now)
	if before.Received, before.Sent, before.Duplicates = 1, 1, 1; r.end != before {
		t.Errorf("one and its copy are %+v, want %+v", r.end, before)
	}
	back := datagram{kind: answer, number: 7, receivedNs: 1, handedNs: 2}.seal(from.Key, 172)
	for name, c := range map[string]struct {
		b    []byte
		from netip.AddrPort
	}{
		"from another address":    {back, stranger},
		"its own request":         {datagram{kind: request, number: 7}.seal(from.Key, 172), from.Peer},
		"to what was never sent":  {datagram{kind: answer, number: 8}.seal(from.Key, 172), from.Peer},
		"of another attempt":      {seven.seal(Key(runKey, "velocity-1", next, "delay"), 172), from.Peer},
		"an answer without a key": {seven.seal(nil, 172), from.Peer},
	} {
		before := s.end
		s.arrived(c.b, c.from, now)
		if before.Foreign++; s.end != before {
			t.Errorf("%s: the sender counts %+v, want %+v", name, s.end, before)
		}
	}
	s.arrived(back, from.Peer, now)
	s.arrived(back, from.Peer, now)
	if s.end.Received != 1 || s.end.Duplicates != 1 {
		t.Errorf("one answer and its copy are %+v", s.end)
	}
	if err := errors.Join(s.Close(), s.flush(), r.Close()); err != nil {
		t.Error(err)
	}
	if out, _ := sent.split(); len(out) != 1 || *out[0].PeerReceivedBootNs != 1 {
		t.Errorf("the sender has recorded %+v", out)
	}
	if in, _ := came.split(); len(in) != 1 {
		t.Errorf("the responder has recorded %+v", in)
	}
}

// FuzzOpen: what was not sealed with the key is not authentic, whatever it is.
func FuzzOpen(f *testing.F) {
	key := Key(runKey, "velocity-1", first, "delay")
	f.Add(datagram{kind: request, number: 5}.seal(key, 48))
	f.Add(datagram{kind: answer, number: 5, byKernel: true, receivedNs: 1, handedNs: -1}.seal(key, 172))
	f.Add([]byte(magic))
	fuzz.Run(f, func(t *testing.T, b []byte) {
		for _, kind := range []byte{request, answer} {
			if d, ok := open(key, b, kind); ok && !slices.Equal(d.seal(key, len(b)), b) {
				t.Errorf("%x is taken for %+v", b, d)
			}
			if _, ok := open(runKey, b, kind); ok {
				t.Errorf("%x is authentic under another key", b)
			}
		}
	})
}
