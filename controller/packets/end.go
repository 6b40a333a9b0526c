package packets

import (
	"errors"
	"fmt"
	"io"

	"fieldmesh.dev/fieldmesh/internal/pcapng"
)

// end is a capture that is being read: always one packet ahead.
type end struct {
	End
	sources []*source
	now     *source // whose packet header and at are of
	header  header
	at      int64 // of the packet, by common time
	fine    bool  // its headers are whole
	done    bool
	result  EndResult
}

// source is one interface of a capture, in the order of its times.
type source struct {
	reader *pcapng.Reader
	number int // of the interface in the capture
	packet pcapng.Packet
	at     int64
	done   bool
}

// Places of interfaces in a capture, as node-agent/capture writes it.
const (
	underTest = 0
	above     = 1
)

func (e *end) open() error {
	for number, file := range []io.Reader{underTest: e.Capture, above: e.Above} {
		if file == nil {
			continue
		}
		reader, err := pcapng.NewReader(file)
		if err != nil {
			return fmt.Errorf("read capture of %s: %w", e.Name, err)
		}
		s := &source{reader: reader, number: number}
		if err := e.advance(s); err != nil {
			return err
		}
		e.sources = append(e.sources, s)
	}
	e.choose()
	return nil
}

// advance reads a source's next packet.
func (e *end) advance(s *source) error {
	for {
		err := s.reader.Next(&s.packet)
		if errors.Is(err, io.EOF) {
			s.done = true
			return nil
		}
		if err != nil {
			return fmt.Errorf("read capture of %s: %w", e.Name, err)
		}
		if s.packet.LinkType != pcapng.LinkEthernet && s.packet.LinkType != pcapng.LinkIP {
			return fmt.Errorf("read capture of %s: link type %d is neither Ethernet's (%d) nor that of bare IP (%d)",
				e.Name, s.packet.LinkType, pcapng.LinkEthernet, pcapng.LinkIP)
		}
		if s.packet.Interface != s.number {
			continue
		}
		if s.at = s.packet.TimeNs; e.Common != nil {
			s.at = e.Common(s.at)
		}
		return nil
	}
}

// choose takes up the earliest packet of all sources.
func (e *end) choose() {
	e.now = nil
	for _, s := range e.sources {
		if !s.done && (e.now == nil || s.at < e.now.at) {
			e.now = s
		}
	}
	if e.done = e.now == nil; e.done {
		return
	}
	e.at = e.now.at
	if e.now.packet.LinkType == pcapng.LinkIP {
		e.fine = e.header.decodeIP(e.now.packet.Data)
	} else {
		e.fine = e.header.decode(e.now.packet.Data, e.now.packet.WireBytes)
	}
	e.header.above = e.now.number == above
	if !e.header.above {
		e.count()
	}
}

func (e *end) next() error {
	if err := e.advance(e.now); err != nil {
		return err
	}
	e.choose()
	return nil
}

// count takes a packet of the interface for what it says apart from flows.
func (e *end) count() {
	e.result.Packets++
	if !e.fine {
		e.result.Undecoded++
		return
	}
	if e.now.packet.Direction != pcapng.Outbound || e.at < e.OpenNs || e.at >= e.CloseNs {
		return
	}
	switch {
	case e.header.ethertype == etherARP:
		e.result.ARPPackets++
	case e.header.share.Whole:
		e.result.RoutingPackets++
		e.result.RoutingBytes += uint64(e.header.routing())
		if !e.header.messages(e.countMessage) {
			e.result.RoutingCut++
		}
	default:
		e.result.RoutingBytes += uint64(e.header.routing())
		e.result.RoutingHeaders += uint64(e.header.routing())
	}
}

func (e *end) countMessage(kind string, bytes int) {
	if e.result.Messages == nil {
		e.result.Messages = map[string]MessageCount{}
	}
	m := e.result.Messages[kind]
	e.result.Messages[kind] = MessageCount{m.N + 1, m.Bytes + uint64(bytes)}
}

func (e *end) finish() EndResult {
	e.result.KernelDropped = e.sources[0].reader.Counts().Dropped
	return e.result
}
