package measure

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"fieldmesh.dev/fieldmesh/node-agent/descriptor"
	"fieldmesh.dev/fieldmesh/protocols/wire"
	"golang.org/x/sys/unix"
)

// TCP samples the sockets of flows on this node.
//
// Finding sockets means walking the kernel's whole table, so that is done
// seldom, but at each sample of the window in which a flow that runs lacks
// some; a socket once found is asked for by its addresses and its cookie.
// Sample and Edge may be called from different goroutines.
type TCP struct {
	mu      sync.Mutex
	flows   []endpoint
	streams int // data sockets that all flows together will have
	sock    kernelSocket
	ends    kernelSocket // the kernel's news of destroyed sockets
	deaf    bool         // there are none
	// congestion is that of each data socket ever met, by its cookie.
	congestion map[uint64]string
	// living are the data sockets that were met and whose end is not known.
	living map[uint64]bool
	// seen is what the last sample of each data socket showed.
	seen map[uint64]seen
	// standing is how each data socket's iperf3 does since the window's open.
	standing map[uint64]*standing
	openNs   int64 // when Edge was called for the window's open; 0: not yet
	// programs are those that have the flows' sockets, which are then reached by descriptors;
	// nil: the kernel is asked. It is then asked for strangers alone.
	programs func() []*descriptor.Program
	taken    map[uint64]*taken // by their cookies
	closed   []*sample         // the last of those that their programs have closed
	// looksOften: a goroutine checks whether they have closed more (lookOften).
	looksOften bool
	// traced gives the kernel's own events; nil: they are told from samples.
	traced Events
	lost   uint32 // of them, as last told

	sockets  []found
	requests []byte // one request per socket, in the same order
	families []uint8

	lookedNs int64 // when the table was last walked
	eagerNs  int64 // until when it is walked at each sample
	within   bool  // between the window's edges: so it is then, while sockets are missing
	looked   bool
	strange  int // strangers' sockets since the last look
	out      []wire.Body
}

// endpoint is one flow as this node's sockets show it.
type endpoint struct {
	flow       wire.Flow
	server     bool // this node runs iperf3's server
	own, peer  netip.Addr
	sends      bool // the data of the flow
	first, end int  // client ports of the data sockets; empty for UDP
	met        bool // one of them was
}

// found is one socket of a flow.
type found struct {
	flow          string
	stream        int // -1: iperf3's control connection
	local, remote string
	cookie        uint64
	congestion    string
	seq           uint32 // of the newest request
	gone          bool
}

const (
	lookEveryNs = 1e9 // an empty table of 262,144 buckets takes 0.2 ms to walk
	eagerForNs  = 2e9 // sockets come in a burst when a flow starts
	// requestsAtOnce keeps the answers to one write within the default
	// receive buffer of 208 KiB.
	requestsAtOnce  = 32
	oneRequestBytes = headerBytes + diagRequestBytes
	// strangersMost bounds the strangers' sockets that are reported from one look to the
	// next.
	strangersMost = 16
)

// NewTCP makes a source of tcp_info of the flows' sockets on the node self:
// one *wire.TCPSample each, those of the data sockets with their stream and
// iperf3's control connections without, and after them a *wire.TCPEvent for
// what a data socket's sender did since the last sample: told from the samples,
// or by the kernel's tracepoints once Trace has given them. A flow's sockets are
// those between its nodes' addresses; one of another address at the server's
// port is a stranger's. It works without privileges, in the network namespace
// in which it is first used.
func NewTCP(self string, flows []wire.Flow, addresses map[string]netip.Addr) *TCP {
	t := &TCP{
		sock:       kernelSocket{protocol: unix.NETLINK_INET_DIAG},
		ends:       kernelSocket{protocol: unix.NETLINK_INET_DIAG, groups: destroyedTCP},
		congestion: map[uint64]string{}, living: map[uint64]bool{}, seen: map[uint64]seen{},
		standing: map[uint64]*standing{}, families: []uint8{unix.AF_INET, unix.AF_INET6},
	}
	for _, f := range flows {
		client, server := f.From, f.To
		if f.Reverse {
			client, server = server, client
		}
		if self != client && self != server {
			continue
		}
		e := endpoint{flow: f, server: self == server, sends: self == f.From, own: addresses[client],
			peer: addresses[server]}
		if e.server {
			e.own, e.peer = e.peer, e.own
		}
		if f.Kind == "iperf3_tcp" {
			e.first = f.ClientPort
			e.end = e.first + f.Streams
			t.streams += f.Streams
		}
		t.flows = append(t.flows, e)
	}
	return t
}

// Name names the source.
func (t *TCP) Name() string { return "tcp" }

// Close gives the netlink socket back.
func (t *TCP) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.sock.close(), t.ends.close(), t.untrace(), t.letGo())
}

// Sample reads the sockets that are known, after looking for more when some
// are missing and it is time to look. A data socket that has been destroyed
// since has a sample more, its last, in state CLOSE.
func (t *TCP) Sample(tBootNs int64) ([]wire.Body, error) {
	if len(t.flows) == 0 {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listen()
	var samples []*sample
	var err error
	if t.lookDue(tBootNs) {
		t.lookedNs = tBootNs
		samples, err = t.look(tBootNs)
	} else {
		samples, err = t.ask()
	}
	if err == nil {
		samples, err = t.ended(samples)
	}
	t.watch(tBootNs, samples)
	t.out, err = t.bodies(t.out[:0], samples, err)
	if err == nil && t.strange > strangersMost {
		err = fmt.Errorf("%d connections of strangers reached the flows' ports, and only %d are watched", t.strange,
			strangersMost)
	}
	between := t.events(tBootNs, samples)
	if t.traced != nil {
		t.out, err = t.told(t.out, err)
		return t.out, err
	}
	for _, e := range between {
		t.out = append(t.out, e)
	}
	return t.out, err
}

func (t *TCP) bodies(out []wire.Body, samples []*sample, err error) ([]wire.Body, error) {
	if err != nil {
		// What is still under way on the socket answers an old question.
		return nil, errors.Join(fmt.Errorf("sample tcp sockets: %w", err), t.sock.close())
	}
	for _, s := range samples {
		out = append(out, &s.TCPSample)
	}
	return out, nil
}

func (t *TCP) lookDue(now int64) bool {
	if !t.looked {
		t.looked, t.eagerNs = true, now+eagerForNs
	}
	data, missing := 0, 0 // missing: of the flows that run now
	for i := range t.flows {
		if e := &t.flows[i]; t.runs(e, now) {
			missing += e.end - e.first
		}
	}
	for i := range t.sockets {
		if t.sockets[i].stream < 0 {
			continue
		}
		data++
		if t.runs(t.endpointOf(t.sockets[i].flow), now) {
			missing--
		}
	}
	if data >= t.streams && len(t.sockets) > 0 {
		return false
	}
	// A look at programs is quick, and no notice comes of a socket that came and went between two.
	return t.programs != nil || t.within && missing > 0 || now < t.eagerNs || now-t.lookedNs >= lookEveryNs
}

// runs reports whether a flow is between its start and its end, by the window's open. One none of whose data sockets
// was met has no end: its client may still connect.
func (t *TCP) runs(e *endpoint, now int64) bool {
	return now >= t.openNs+int64(e.flow.StartS*1e9) && (!e.met || now <= t.endNs(e))
}

func (t *TCP) endNs(e *endpoint) int64 { return t.openNs + int64((e.flow.StartS+e.flow.SendS())*1e9) }

// look walks the kernel's table and gives a sample of every socket of the
// flows. The sockets that it finds replace those known before.
func (t *TCP) look(now int64) ([]*sample, error) {
	if t.programs != nil {
		return t.lookAtPrograms()
	}
	if err := t.sock.open(); err != nil {
		return nil, err
	}
	known := len(t.sockets)
	t.strange = 0
	t.sockets, t.requests = t.sockets[:0], t.requests[:0]
	var samples []*sample
	for _, family := range t.families {
		err := t.dump(family, func(m diagMessage) error {
			s, err := t.meet(m)
			if s != nil {
				samples = append(samples, s)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(t.sockets) > 0 {
			t.families = []uint8{family} // a flow has one family only
			break
		}
	}
	if len(t.sockets) > known {
		t.eagerNs = max(t.eagerNs, now+eagerForNs)
	}
	return samples, nil
}

// dumpEnd is the error with which the kernel ends a list of sockets. It ends with one where it has no means to list
// them, as without CONFIG_INET_TCP_DIAG: that is not a list without sockets.
func dumpEnd(family uint8, payload []byte) error {
	errno := errnoOf(payload)
	switch {
	case errno == 0, errno == unix.ENOENT && family == unix.AF_INET6: // a kernel without IPv6
		return nil
	case errno == unix.ENOENT:
		return fmt.Errorf("this kernel lists no sockets of TCP (CONFIG_INET_TCP_DIAG): %w", errno)
	}
	return errno
}

// dump asks for all live TCP sockets of a family. With one flow the kernel
// leaves out those of other ports.
func (t *TCP) dump(family uint8, visit func(diagMessage) error) error {
	var message [oneRequestBytes]byte
	body := message[headerBytes:]
	body[0], body[1], body[2] = family, unix.IPPROTO_TCP, diagExtensions
	native.PutUint32(body[4:], liveStates)
	if len(t.flows) == 1 {
		port := 8 // idiag_sport
		if !t.flows[0].server {
			port = 10 // idiag_dport
		}
		body[port], body[port+1] = byte(t.flows[0].flow.Port>>8), byte(t.flows[0].flow.Port)
	}
	seq := t.sock.putHeader(message[:], sockDiagByFamily, unix.NLM_F_DUMP)
	if err := t.sock.send(message[:]); err != nil {
		return err
	}
	for done := false; !done; {
		err := t.sock.receive(func(kind uint16, s uint32, payload []byte) error {
			if s != seq {
				return nil
			}
			if kind == unix.NLMSG_DONE || kind == unix.NLMSG_ERROR {
				done = true
				return dumpEnd(family, payload)
			}
			if m, ok := parseDiag(payload); ok {
				return visit(m)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// meet takes a socket into the table if it is one of the flows'. Of a
// stranger's it makes a sample and follows it no further.
func (t *TCP) meet(m diagMessage) (*sample, error) {
	flow, stream, whose := t.match(m.local(), m.remote())
	if whose == ofNobody || len(m.info) == 0 {
		return nil, nil
	}
	f := found{flow: flow, stream: stream, local: m.local().String(), remote: m.remote().String(), cookie: m.cookie}
	s := new(sample)
	if whose == ofStranger {
		if !t.tells() {
			return nil, nil
		}
		s.Stranger = true
		return s, f.fill(s, m)
	}
	for i := range t.sockets {
		if t.sockets[i].cookie == m.cookie {
			return nil, nil // a dump in several parts may report one twice
		}
	}
	if stream >= 0 {
		t.congestion[m.cookie] = string(m.congestion)
		t.living[m.cookie] = true
		t.endpointOf(flow).met = true
	}
	t.sockets = append(t.sockets, f)
	var request [oneRequestBytes]byte
	body := request[headerBytes:]
	body[0], body[1], body[2] = m.family, unix.IPPROTO_TCP, diagExtensions
	native.PutUint32(body[4:], ^uint32(0))
	copy(body[8:], m.id)
	t.requests = append(t.requests, request[:]...)
	return s, t.sockets[len(t.sockets)-1].fill(s, m)
}

// fill makes the socket's sample from what the kernel told.
func (f *found) fill(s *sample, m diagMessage) error {
	s.Flow, s.Local, s.Remote, s.Cookie, s.State = f.flow, f.local, f.remote, f.cookie, stateName(m.state)
	if f.stream >= 0 {
		s.stream = f.stream
		s.Stream = &s.stream
	}
	if f.congestion != string(m.congestion) {
		f.congestion = string(m.congestion)
	}
	s.Congestion = f.congestion
	s.unread, s.unacked = m.unread, m.unacked
	return s.fill(m.info)
}

// ask reads each known socket by its addresses and cookie, and forgets those
// that are gone.
func (t *TCP) ask() ([]*sample, error) {
	if t.programs != nil {
		return t.readTaken()
	}
	if len(t.sockets) == 0 {
		return nil, nil
	}
	if err := t.sock.open(); err != nil {
		return nil, err
	}
	backing := make([]sample, len(t.sockets))
	samples := make([]*sample, 0, len(t.sockets))
	for from := 0; from < len(t.sockets); from += requestsAtOnce {
		to := min(from+requestsAtOnce, len(t.sockets))
		for i := from; i < to; i++ {
			t.sockets[i].seq = t.sock.putHeader(t.requests[i*oneRequestBytes:(i+1)*oneRequestBytes], sockDiagByFamily,
				0)
		}
		if err := t.sock.send(t.requests[from*oneRequestBytes : to*oneRequestBytes]); err != nil {
			return nil, err
		}
		for answered := from; answered < to; {
			err := t.sock.receive(func(kind uint16, seq uint32, payload []byte) error {
				// Answers come in the order of the questions.
				i := answered
				if seq != t.sockets[i].seq {
					return nil
				}
				answered++
				got, err := t.answer(i, kind, payload, &backing[i])
				if got {
					samples = append(samples, &backing[i])
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	t.forget()
	return samples, nil
}

// answer takes one answer about socket i; false when it is gone.
func (t *TCP) answer(i int, kind uint16, payload []byte, s *sample) (bool, error) {
	if kind == unix.NLMSG_ERROR {
		switch errno := errnoOf(payload); errno {
		case unix.ENOENT, unix.ESTALE: // no such socket; another one with these addresses
			t.sockets[i].gone = true
			return false, nil
		default:
			return false, errno
		}
	}
	m, ok := parseDiag(payload)
	if !ok || len(m.info) == 0 { // TIME_WAIT has no tcp_info
		t.sockets[i].gone = true
		return false, nil
	}
	f := &t.sockets[i]
	if f.stream >= 0 && f.congestion != string(m.congestion) { // its program has chosen another
		t.congestion[f.cookie] = string(m.congestion)
	}
	return true, f.fill(s, m)
}

// forget drops the sockets that are gone.
func (t *TCP) forget() {
	kept := 0
	for i := range t.sockets {
		if t.sockets[i].gone {
			continue
		}
		t.sockets[kept] = t.sockets[i]
		copy(t.requests[kept*oneRequestBytes:], t.requests[i*oneRequestBytes:(i+1)*oneRequestBytes])
		kept++
	}
	t.sockets, t.requests = t.sockets[:kept], t.requests[:kept*oneRequestBytes]
}
