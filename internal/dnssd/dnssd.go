// Package dnssd answers multicast DNS (RFC 6762) for the one service of this process, so that
// an app which knows the peer's key finds the address that it has today (DNS-SD, RFC 6763).
// It answers questions and says nothing by itself: neither does it probe for its name, which
// a key's hash makes its own, nor announce it. IPv4 only: hotspots and USB have it.
package dnssd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// Type is the service's, as RFC 6763 writes it; PinKey is the key of its TXT record that
// tells the SHA-256 of the peer's public key.
const (
	Type   = "_fieldmesh._tcp"
	PinKey = "pin"
)

const (
	port  = 5353
	zone  = ".local."
	label = 32 // digits of the key's hash in names; a label has 63 bytes at most (RFC 1035, section 2.3.4)
	// ttlS is how long an answer may be kept. Addresses change, and an app asks for a moment
	// only; a plain DNS client may be given no more (RFC 6762, section 6.7).
	ttlS = 10
	// topBit is of a question that wants its answer to itself, and of a record of which
	// there is no other (RFC 6762, sections 5.4 and 10.2).
	topBit dnsmessage.Class = 1 << 15
	// lookEvery is how often interfaces are looked at.
	lookEvery = 2 * time.Second
	// perSecond bounds the answers: a few questions find the service.
	perSecond = 10
)

var group = netip.AddrFrom4([4]byte{224, 0, 0, 251})

// Service is what is answered for.
type Service struct {
	Pin  string // of the peer's key
	Port uint16 // where it listens
	// On reports whether it is answered on an interface, which has these addresses.
	On func(iface string, own []netip.Prefix) bool
	// Quiet reports whether nothing may be said at the moment. Groups are left then, so that
	// the kernel says nothing of them either.
	Quiet func() bool
	Log   *slog.Logger
}

// Run answers until ctx ends.
func (s Service) Run(ctx context.Context) error {
	socket, err := listen()
	if err != nil {
		return fmt.Errorf("answer multicast DNS on UDP port %d: %w", port, err)
	}
	defer socket.Close()
	defer context.AfterFunc(ctx, func() { socket.Close() })()
	r := responder{Service: s, conn: ipv4.NewPacketConn(socket), joined: map[int][]netip.Prefix{}}
	err = errors.Join(r.conn.SetControlMessage(ipv4.FlagInterface, true), r.conn.SetMulticastTTL(255),
		r.conn.SetTTL(255), r.look()) // section 11
	for err == nil {
		err = r.turn()
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("answer multicast DNS: %w", err)
}

// listen binds to the group and not to all addresses: what is sent to the machine's own
// responder alone stays that one's.
func listen() (net.PacketConn, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "multicast DNS")
	defer file.Close()
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		// Nothing of the groups that other programs have joined on other interfaces.
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_ALL, 0),
		unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: group.As4()}))
	if err != nil {
		return nil, err
	}
	return net.FilePacketConn(file)
}

// Listens reports whether who listens at an address does so on an interface with these.
func Listens(at netip.Addr, own []netip.Prefix) bool {
	return at.IsUnspecified() || slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Addr() == at.Unmap() })
}

// responder is a service on its socket.
type responder struct {
	Service
	conn   *ipv4.PacketConn
	joined map[int][]netip.Prefix // addresses by the interface's index
	looked time.Time
	second time.Time // of which so many answers were given
	given  int
}

// turn takes one question, or none for a while.
func (r *responder) turn() error {
	if time.Since(r.looked) >= lookEvery {
		if err := r.look(); err != nil {
			r.Log.Debug("look for interfaces", "error", err) // what there was stays
		}
	}
	if err := r.conn.SetReadDeadline(time.Now().Add(lookEvery)); err != nil {
		return err
	}
	buf := make([]byte, 9000) // section 17
	n, cm, addr, err := r.conn.ReadFrom(buf)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	if err != nil {
		return err
	}
	from, isUDP := addr.(*net.UDPAddr)
	if !isUDP || cm == nil {
		return nil
	}
	own := r.joined[cm.IfIndex]
	asker := from.AddrPort().Addr().Unmap()
	if !slices.ContainsFunc(own, func(p netip.Prefix) bool { return p.Contains(asker) }) {
		return nil // from beyond the link, or an interface that is not answered on (section 11)
	}
	reply, alone := r.answer(buf[:n], from.Port != port, own)
	if reply == nil || !r.may() || r.Quiet() { // in this order: Quiet may read files
		return nil
	}
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(group, port))
	if alone {
		to = from
	}
	if _, err := r.conn.WriteTo(reply, &ipv4.ControlMessage{IfIndex: cm.IfIndex}, to); err != nil {
		r.Log.Debug("answer multicast DNS", "error", err) // the interface may be going
	}
	return nil
}

// may counts the answers.
func (r *responder) may() bool {
	if time.Since(r.second) >= time.Second {
		r.second, r.given = time.Now(), 0
	}
	r.given++
	return r.given <= perSecond
}

// look joins the group where the service is answered, and leaves it elsewhere.
func (r *responder) look() error {
	r.looked = time.Now()
	want := map[int][]netip.Prefix{}
	if !r.Quiet() {
		var err error
		if want, err = r.interfaces(); err != nil {
			return err
		}
	}
	to := &net.UDPAddr{IP: group.AsSlice()}
	for index := range r.joined {
		if _, still := want[index]; !still {
			_ = r.conn.LeaveGroup(&net.Interface{Index: index}, to) // it may be gone
			delete(r.joined, index)
		}
	}
	for index, own := range want {
		if _, is := r.joined[index]; !is {
			if err := r.conn.JoinGroup(&net.Interface{Index: index}, to); err != nil {
				r.Log.Debug("join multicast DNS", "error", err)
				continue // it is tried again
			}
		}
		r.joined[index] = own
	}
	return nil
}

// interfaces are those to be answered on, with their IPv4 addresses.
func (r *responder) interfaces() (map[int][]netip.Prefix, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	out := map[int][]netip.Prefix{}
	for _, i := range all {
		const needs = net.FlagUp | net.FlagMulticast
		if i.Flags&needs != needs || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addresses, _ := i.Addrs() // it may be gone
		var own []netip.Prefix
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
				own = append(own, p)
			}
		}
		if len(own) > 0 && r.On(i.Name, own) {
			out[i.Index] = own
		}
	}
	return out, nil
}

// answer returns the reply to a message on an interface with these addresses, or nil, and reports
// whether it goes to the sender alone. A plain DNS client gets a plain DNS answer (section 6.7).
func (s Service) answer(message []byte, plain bool, own []netip.Prefix) (reply []byte, alone bool) {
	var p dnsmessage.Parser
	head, err := p.Start(message)
	if err != nil || head.Response || head.OpCode != 0 || head.RCode != 0 {
		return nil, false
	}
	questions, err := p.AllQuestions()
	if err != nil {
		return nil, false
	}
	known, err := p.AllAnswers()
	if err != nil {
		return nil, false
	}
	records := s.records(own, plain)
	asked := make([]bool, len(records))
	found, alone := false, true
	for _, q := range questions {
		for i, r := range records {
			if asks(q, r) && !slices.ContainsFunc(known, func(k dnsmessage.Resource) bool { return knows(k, r) }) {
				asked[i], found = true, true
				alone = alone && q.Class&topBit != 0
			}
		}
	}
	if !found {
		return nil, false
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{Response: true, Authoritative: true}}
	if plain {
		m.ID, m.Questions = head.ID, questions
	}
	for i, r := range records {
		if asked[i] {
			m.Answers = append(m.Answers, r)
		} else if r.Header.Type != dnsmessage.TypePTR {
			m.Additionals = append(m.Additionals, r)
		}
	}
	if reply, err = m.Pack(); err != nil {
		return nil, false
	}
	return reply, alone || plain
}

// asks reports whether a question is for a record.
func asks(q dnsmessage.Question, r dnsmessage.Resource) bool {
	class := q.Class &^ topBit
	return (q.Type == r.Header.Type || q.Type == dnsmessage.TypeALL) &&
		(class == dnsmessage.ClassINET || class == dnsmessage.ClassANY) &&
		strings.EqualFold(q.Name.String(), r.Header.Name.String())
}

// knows reports whether the asker has a record that others have as well, for half its time or
// longer yet (section 7.1).
func knows(k, r dnsmessage.Resource) bool {
	theirs, isPTR := k.Body.(*dnsmessage.PTRResource)
	ours, is := r.Body.(*dnsmessage.PTRResource)
	return isPTR && is && k.Header.TTL >= ttlS/2 && strings.EqualFold(theirs.PTR.String(), ours.PTR.String())
}

// records are all that there is to say.
func (s Service) records(own []netip.Prefix, plain bool) []dnsmessage.Resource {
	name := func(text string) dnsmessage.Name { return dnsmessage.MustNewName(text + zone) }
	id := s.Pin[:min(label, len(s.Pin))]
	service, instance, host := name(Type), name(id+"."+Type), name(id)
	record := func(n dnsmessage.Name, t dnsmessage.Type, class dnsmessage.Class,
		b dnsmessage.ResourceBody) dnsmessage.Resource {
		head := dnsmessage.ResourceHeader{Name: n, Type: t, Class: class, TTL: ttlS}
		return dnsmessage.Resource{Header: head, Body: b}
	}
	unique := dnsmessage.ClassINET | topBit
	if plain {
		unique = dnsmessage.ClassINET
	}
	out := []dnsmessage.Resource{
		record(service, dnsmessage.TypePTR, dnsmessage.ClassINET, &dnsmessage.PTRResource{PTR: instance}),
		record(instance, dnsmessage.TypeSRV, unique, &dnsmessage.SRVResource{Port: s.Port, Target: host}),
		record(instance, dnsmessage.TypeTXT, unique, &dnsmessage.TXTResource{TXT: []string{PinKey + "=" + s.Pin}}),
	}
	for _, p := range own {
		out = append(out, record(host, dnsmessage.TypeA, unique, &dnsmessage.AResource{A: p.Addr().As4()}))
	}
	return out
}
