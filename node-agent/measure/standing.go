package measure

// An iperf3 that runs takes what has come, and always has more to send. One that
// does neither though it could does not run: it was frozen, or waits for a disk.
// The kernel's queues tell it on every kernel, however the process was stopped.

// begunBytes is more than the cookie (37 bytes, iperf.h) that a client sends before
// its test begins.
const begunBytes = 1000

// standing is how one data socket's iperf3 does.
type standing struct {
	sinceNs, longestNs int64
	could              bool   // it had something to do
	done               uint64 // bytes read, or acknowledged
}

// watch notes what the samples say of iperf3, from the window's open to the end of
// each flow's time: after that what is left unread is left so. It tells the longest
// time in which one did nothing with the sample at the close, or the socket's last.
func (t *TCP) watch(tBootNs int64, samples []*sample) {
	if t.openNs == 0 {
		return
	}
	for _, s := range samples {
		e := t.endpointOf(s.Flow)
		if s.Stream == nil || s.Stranger || e == nil {
			continue
		}
		k := t.standing[s.Cookie]
		if k == nil {
			k = &standing{}
			t.standing[s.Cookie] = k
		}
		if tBootNs <= t.endNs(e) {
			k.see(tBootNs, s, e.sends)
		}
		if s.Edge == "close" || s.State == stateName(stateClose) {
			s.StillMs = new(float64(k.longestNs) / 1e6)
		}
	}
}

func (k *standing) see(tBootNs int64, s *sample, sends bool) {
	could, done := s.unread > 0, s.BytesReceived-uint64(s.unread)
	if sends {
		could, done = s.unacked == 0 && s.BytesAcked > begunBytes, s.BytesAcked
	}
	could = could && s.State == stateName(stateEstablished)
	if could && k.could && done == k.done {
		k.longestNs = max(k.longestNs, tBootNs-k.sinceNs)
	} else {
		k.sinceNs = tBootNs
	}
	k.could, k.done = could, done
}

func (t *TCP) endpointOf(flow string) *endpoint {
	for i := range t.flows {
		if t.flows[i].flow.Name == flow {
			return &t.flows[i]
		}
	}
	return nil
}
