package measure

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel tells whoever listens of each socket that it destroys, with its
// last tcp_info (sock_diag(7) groups, Linux 4.2). By that, what a socket
// received between its last sample and its end is counted: iperf3 ends within
// milliseconds of the window's close, and on a busy machine before the sample
// at that edge.

// Multicast groups of linux/sock_diag.h; group n is bit n-1.
const (
	destroyedTCP4 = 1 // SKNLGRP_INET_TCP_DESTROY
	destroyedTCP6 = 3 // SKNLGRP_INET6_TCP_DESTROY
	destroyedTCP  = 1<<(destroyedTCP4-1) | 1<<(destroyedTCP6-1)
)

// endsWithin is how long Edge waits to be told about a socket that is gone: the
// kernel tells a little after it, from a work queue.
const endsWithin = 100 * time.Millisecond

// listen opens the subscription. Where the kernel has none, samples alone
// have to do.
func (t *TCP) listen() {
	if !t.ends.isOpen && !t.deaf {
		t.deaf = t.ends.open() != nil
	}
}

// ended puts the last samples of sockets that have been destroyed in place of
// those that the samples have.
func (t *TCP) ended(samples []*sample) ([]*sample, error) {
	if t.programs != nil {
		samples = t.addClosed(samples)
	}
	for !t.deaf {
		more, err := t.ends.poll(func(_ uint16, _ uint32, payload []byte) error {
			s, err := t.last(payload)
			if s == nil || err != nil {
				return err
			}
			samples = slices.DeleteFunc(samples, func(o *sample) bool { return o.Cookie == s.Cookie })
			samples = append(samples, s)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("hear of ended sockets: %w", err)
		}
		if !more {
			break
		}
	}
	return samples, nil
}

// last makes the sample of a destroyed data socket, or of a stranger's; nil
// when it is another's, or one that was never met and never carried anything. The
// end of one that was met and whose notice has no counts, as after a reset, stays unknown.
func (t *TCP) last(payload []byte) (*sample, error) {
	m, ok := parseDiag(payload)
	if !ok {
		return nil, nil
	}
	flow, stream, whose := t.match(m.local(), m.remote())
	if len(m.info) == 0 || whose == ofNobody || whose == ofFlow && (stream < 0 || t.programs != nil) ||
		whose == ofStranger && !t.tells() {
		return nil, nil
	}
	f := found{flow: flow, stream: stream, cookie: m.cookie, local: m.local().String(), remote: m.remote().String()}
	m.congestion = []byte(t.congestion[m.cookie]) // which the message does not name
	s := new(sample)
	if err := f.fill(s, m); err != nil {
		return nil, err
	}
	s.Stranger = whose == ofStranger
	const fin = 1 // counts as a byte
	if !t.living[m.cookie] && s.BytesReceived+s.BytesAcked <= fin {
		return nil, nil
	}
	delete(t.living, m.cookie)
	return s, nil
}

// awaitEnds waits until the kernel has reported every living data socket that
// is not among the samples, but not longer than endsWithin.
func (t *TCP) awaitEnds(samples []*sample) ([]*sample, error) {
	for deadline := time.Now().Add(endsWithin); ; {
		var err error
		if samples, err = t.ended(samples); err != nil {
			return nil, err
		}
		left := time.Until(deadline)
		if t.deaf || left <= 0 || len(t.missing(samples)) == 0 {
			return samples, nil
		}
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(t.ends.fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil, fmt.Errorf("wait for ended sockets: %w", err)
		}
	}
}

// missing names the living data sockets that are not among the samples.
func (t *TCP) missing(samples []*sample) []uint64 {
	var out []uint64
	for cookie := range t.living {
		if !slices.ContainsFunc(samples, func(s *sample) bool { return s.Cookie == cookie }) {
			out = append(out, cookie)
		}
	}
	return out
}

// giveUp forgets the data sockets of whose end nothing is known, and counts
// them. News that the kernel had to drop may have been of one more.
func (t *TCP) giveUp(samples []*sample) int {
	missing := t.missing(samples)
	for _, cookie := range missing {
		delete(t.living, cookie)
	}
	unknown := len(missing)
	if t.ends.overruns > 0 && unknown == 0 {
		unknown = 1
	}
	t.ends.overruns = 0
	return unknown
}
