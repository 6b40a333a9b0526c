package ratecontrol

import (
	"math/rand/v2"
	"time"
)

// Constants of Minstrel as documented with Linux's mac80211 ("minstrel", Linux
// wireless wiki; net/mac80211/rc80211_minstrel.[ch], before 4.20).
const (
	minstrelEvery      = 100 * time.Millisecond // update_interval
	minstrelKeep       = 0.75                   // EWMA_LEVEL 96 of 128: weight of the past
	minstrelLookaround = 0.10                   // lookaround_rate: share of frames that sample
	minstrelHopeless   = 0.10                   // below it a rate's throughput counts as none
	MinstrelBytes      = 1200                   // frame that throughputs are compared for
	minstrelTries      = 2                      // attempts at each stage of the retry chain
	minstrelSafe       = 0.95                   // of minstrel_ht: the chance from which on slower rates hardly matter
)

// Minstrel samples rates and goes by what was acknowledged, and by nothing that
// the receiver measured: a rate control that works from transmission success
// alone. A tenth of the frames looks around at a random other rate; the others
// go through a retry chain of four: best throughput, second best, surest,
// lowest.
//
// It leaves out the driver's limit of a chain's time (6 ms for a stage) and the fewer
// tries of rates that nearly always or never succeed.
type Minstrel struct {
	airtime []time.Duration // by mode, of MinstrelBytes
	// aggregates: one frame of many that gets through ends a retry chain. Its later
	// stages are hardly reached, where slower rates would be sampled.
	aggregates bool
	rng        *rand.Rand
	peers      []*minstrelPeer
}

type minstrelPeer struct {
	updated time.Duration
	rates   []minstrelRate
	best    int // highest throughput
	second  int
	surest  int // highest chance of success

	frames   uint64
	samples  uint64
	sampling int  // the present frame's other rate, or -1
	after    bool // which is slower than the best, and tried after it
}

type minstrelRate struct {
	attempts, ok uint64 // since the last update
	chance       float64
	known        bool
}

// NewMinstrel is one for a station, by the airtimes of MinstrelBytes at each mode.
func NewMinstrel(airtime []time.Duration, aggregates bool, peers int, rng *rand.Rand) *Minstrel {
	return &Minstrel{airtime: airtime, aggregates: aggregates, rng: rng, peers: make([]*minstrelPeer, peers)}
}

func (m *Minstrel) peer(i int, at time.Duration) *minstrelPeer {
	if m.peers[i] == nil {
		m.peers[i] = &minstrelPeer{updated: at, rates: make([]minstrelRate, len(m.airtime)), sampling: -1}
	}
	return m.peers[i]
}

// Pick is the mode for the next attempt.
func (m *Minstrel) Pick(peer, attempt int, at time.Duration) int {
	if peer < 0 {
		return 0
	}
	p := m.peer(peer, at)
	if at-p.updated >= minstrelEvery {
		m.update(p, at)
	}
	if attempt == 0 {
		m.lookAround(p)
	}
	return p.chain(attempt / minstrelTries)
}

// lookAround decides whether a frame samples, and which rate.
func (m *Minstrel) lookAround(p *minstrelPeer) {
	p.frames++
	p.sampling = -1
	if float64(p.samples) >= minstrelLookaround*float64(p.frames) || len(p.rates) == 1 {
		return
	}
	p.samples++
	other := m.rng.IntN(len(p.rates) - 1)
	if other >= p.best {
		other++
	}
	// A slower rate can only help when the best fails.
	slower, fails := m.airtime[other] > m.airtime[p.best], p.rates[p.best].chance < minstrelSafe
	p.sampling, p.after = other, slower && !(m.aggregates && fails)
}

// chain is the rate of a stage of the retry chain.
func (p *minstrelPeer) chain(stage int) int {
	normal := [...]int{p.best, p.second, p.surest, 0}
	switch {
	case p.sampling >= 0 && p.after:
		normal[1] = p.sampling
	case p.sampling >= 0:
		normal[0], normal[1] = p.sampling, p.best
	}
	return normal[min(stage, len(normal)-1)]
}

func (m *Minstrel) update(p *minstrelPeer, at time.Duration) {
	p.updated = at
	for i := range p.rates {
		r := &p.rates[i]
		if r.attempts == 0 {
			continue
		}
		share := float64(r.ok) / float64(r.attempts)
		if r.known {
			share = minstrelKeep*r.chance + (1-minstrelKeep)*share
		}
		r.chance, r.known, r.attempts, r.ok = share, true, 0, 0
	}
	p.best, p.second, p.surest = 0, 0, 0
	for i := range p.rates {
		switch t := m.throughput(p, i); {
		case t > m.throughput(p, p.best):
			p.best, p.second = i, p.best
		case i != p.best && t > m.throughput(p, p.second):
			p.second = i
		}
		if p.rates[i].chance >= p.rates[p.surest].chance {
			p.surest = i
		}
	}
}

// throughput is frames a second, were there nothing but the frame's airtime.
func (m *Minstrel) throughput(p *minstrelPeer, mode int) float64 {
	if p.rates[mode].chance < minstrelHopeless {
		return 0
	}
	return p.rates[mode].chance / m.airtime[mode].Seconds()
}

// Heard is of no use to it.
func (m *Minstrel) Heard(int, float64, time.Duration) {}

// Result counts an attempt.
func (m *Minstrel) Result(peer, mode int, ok bool) {
	if peer < 0 || m.peers[peer] == nil {
		return
	}
	r := &m.peers[peer].rates[mode]
	r.attempts++
	if ok {
		r.ok++
	}
}
