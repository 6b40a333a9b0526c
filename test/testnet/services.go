package testnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Services asks the link of an own address, by multicast DNS, for all of a type such as
// "_fieldmesh._tcp", and returns what each says of itself within a time, as HOST:PORT TEXT.
func (n *NS) Services(t testing.TB, own, kind string, within time.Duration) (found []string) {
	t.Helper()
	question := dnsmessage.Message{Header: dnsmessage.Header{ID: 1}, Questions: []dnsmessage.Question{{
		Name: dnsmessage.MustNewName(kind + ".local."), Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET}}}
	raw, err := question.Pack()
	if err != nil {
		t.Fatal(err)
	}
	n.Do(t, func() error {
		c, err := net.ListenPacket("udp4", own+":0")
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.WriteTo(raw, &net.UDPAddr{IP: net.IPv4(224, 0, 0, 251), Port: 5353}); err != nil {
			return err
		}
		if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
			return err
		}
		for buf := make([]byte, 9000); ; {
			size, _, err := c.ReadFrom(buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return nil
			}
			if err != nil {
				return err
			}
			said, err := ServicesOf(buf[:size])
			if err != nil {
				return err
			}
			found = append(found, said...)
		}
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// ServicesOf is what an answer says, for each address and text in it.
func ServicesOf(answer []byte) (out []string, err error) {
	var m dnsmessage.Message
	if err := m.Unpack(answer); err != nil || !m.Response {
		return nil, errors.Join(err, fmt.Errorf("no answer: %+v", m.Header))
	}
	var port uint16
	var hosts, texts []string
	for _, r := range append(m.Answers, m.Additionals...) {
		switch b := r.Body.(type) {
		case *dnsmessage.SRVResource:
			port = b.Port
		case *dnsmessage.AResource:
			hosts = append(hosts, netip.AddrFrom4(b.A).String())
		case *dnsmessage.TXTResource:
			texts = append(texts, b.TXT...)
		}
	}
	for _, host := range hosts {
		for _, text := range texts {
			out = append(out, fmt.Sprintf("%s:%d %s", host, port, text))
		}
	}
	return out, nil
}
