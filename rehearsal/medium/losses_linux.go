package medium

import "fieldmesh.dev/fieldmesh/protocols/wire"

// learnHome remembers where an IPv4 address sends from. A flow's frames enter
// the channel at its first node before any other has them to forward, so the
// first to send from an address is its home.
func (l *Live) learnHome(node int, ethernet []byte) {
	if ip, is := ipv4Of(ethernet); is {
		if src := [4]byte(ip[12:16]); src != [4]byte{} { // DHCP's "none yet"
			if _, known := l.homes[src]; !known {
				l.homes[src] = node
			}
		}
	}
}

// tellLoss passes losses on to a hook, if any, and to the feedback sockets of
// the node that lost the frame and of the one that its flow starts at: a TCP
// that is to know what happened to its segments reads its own node's socket.
func (l *Live) tellLoss(hook func(FrameLoss)) func(FrameLoss) {
	return func(loss FrameLoss) {
		if hook != nil {
			hook(loss)
		}
		l.tellFeeds(loss)
	}
}

// Tell passes a loss that happened outside the channel on to the feedback
// sockets, as if the channel had lost it. It does not wait.
func (l *Live) Tell(loss FrameLoss) {
	if l.opts.FrameLost && l.watched() {
		l.post(func() { l.tellFeeds(loss) })
	}
}

func (l *Live) tellFeeds(loss FrameLoss) {
	cause, told := wireCause(loss.Cause)
	if !told || loss.Flow == "" || !l.watched() {
		return
	}
	line := wire.Feedback{FrameLost: &wire.FrameLost{Flow: loss.Flow, Seq: loss.Seq, Cause: cause}}
	l.publish(loss.Node, line)
	if home, known := l.homes[loss.src]; known && home != loss.Node {
		l.publish(home, line)
	}
	l.strand(loss)
}

func (l *Live) publish(node int, line wire.Feedback) {
	if f := l.feeds[node]; f != nil && f.active.Load() > 0 {
		f.publish(line)
	}
}

// wireCause is a cause in the words of the contract. A dead radio is out of
// everybody's range; what a host refuses or should not have sent is no loss of
// the radio's.
func wireCause(c Cause) (cause string, told bool) {
	switch c {
	case RadioDead:
		return OutOfRange.String(), true
	case Collision, ChannelError, OutOfRange, QueueFull, NoRoute, NoNeighbour:
		return c.String(), true
	}
	return "", false
}
