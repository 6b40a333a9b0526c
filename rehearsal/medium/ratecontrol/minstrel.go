package ratecontrol

import (
	"math"
	"math/rand/v2"
	"time"
)

// Constants of mac80211's minstrel_ht, by which Linux has rated legacy rates too since 5.12
// (net/mac80211/rc80211_minstrel_ht.[ch], the same in 6.12 and 7.3; names as there).
const (
	MinstrelBytes  = 1200 // AVG_PKT_SIZE: throughputs are compared for frames of it
	MinstrelFrames = 16   // AVG_AMPDU_SIZE: in as many of which a frame's time with A-MPDUs is taken

	jiffy           = 4 * time.Millisecond    // CONFIG_HZ 250, as Debian has it: times are told by it
	minstrelEvery   = 50 * time.Millisecond   // update_interval, HZ / 20
	minstrelSample  = 20 * time.Millisecond   // MINSTREL_SAMPLE_INTERVAL, HZ / 50
	minstrelSegment = 6000 * time.Microsecond // segment_size: the most time of a stage's tries, backoffs included
	minstrelSlot    = 9 * time.Microsecond    // t_slot of minstrel_calc_retransmit
	minstrelCWMin   = 15                      // cw_min, of every standard
	minstrelCWMax   = 1023                    // cw_max
	minstrelSamples = 5                       // MINSTREL_SAMPLE_RATES: rates of one kind that wait to be sampled
	minstrelColumns = 10                      // SAMPLE_COLUMNS: orders in which rates are looked at, drawn once
	minstrelPast    = 0.75                    // EWMA_LEVEL 96 of EWMA_DIV 128, of the length of A-MPDUs

	sure     = 1 << 12 // MINSTREL_FRAC(1, 1): chances are multiples of 2^-12, which decides how they fade away
	hopeless = sure * 10 / 100
	doubtful = sure * 20 / 100 // below it a stage has two tries (minstrel_ht_set_rate)
	reliable = sure * 75 / 100 // from it on throughput counts for the last stage (minstrel_ht_set_best_prob_rate)
	capped   = sure * 90 / 100 // the most that throughput goes by (minstrel_ht_get_tp_avg)
	safe     = sure * 95 / 100 // no slower rate is sampled that comes through more often (minstrel_ht_next_jump_rate)

	minstrelTwoTries = 2
)

// The low-pass filter of chances, with a period of 16 updates: MINSTREL_AVG_COEFF1 to 3.
const (
	filterIn   = sure - filterLast + filterPast
	filterLast = 0x1499
	filterPast = 0x92e
)

// Minstrel is minstrel_ht for one station: it samples rates and goes by what was acknowledged,
// and by nothing that the receiver measured. A frame has a retry chain of four stages, all but the
// first with RTS: the three rates of the best throughput, and the surest. Every 20 ms at most, one
// frame's first try is at a rate to sample; its second stage follows.
//
// The rates here are one group of the kernel's. What it does between groups is left out: streams,
// widths, guard intervals, and CCK beside others.
type Minstrel struct {
	times MinstrelTimes
	order []int // in which rates are looked at for jumps
	peers []*minstrelPeer
}

// MinstrelTimes are the times by which Minstrel compares rates and limits tries.
type MinstrelTimes struct {
	Frame                 []time.Duration // by mode, of MinstrelBytes
	Overhead, OverheadRTS time.Duration   // of an exchange, beside the frame
}

type minstrelPeer struct {
	updated time.Duration
	told    time.Duration // the last result
	rates   []minstrelRate
	best    [3]int // by throughput
	surest  int

	sampleAt time.Duration
	turn     int // in sampleTurns
	samples  [sampleKinds][minstrelSamples]int
	looked   int // at rates for jumps

	perExchange     float64 // frames in an A-MPDU, on average
	frames, packets int     // since the last update

	table [2]chain // without RTS at the first stage, and with it
	chain          // of the present frame
}

// chain is a frame's retry chain.
type chain struct {
	stages [4]stage
	tries  int32 // of them all
	sample bool  // the first stage is one
}

type minstrelRate struct {
	attempts, ok   int // since the last update
	tried          bool
	chance, before int // the filter's last two
}

type stage struct{ mode, tries int32 }

// The kinds of samples: the next faster rate than the best; any faster one; one between the
// fastest and the slowest of the chain (enum minstrel_sample_type).
const (
	sampleNext = iota
	sampleJump
	sampleSlow
	sampleKinds
)

// sampleTurns is minstrel_sample_seq.
var sampleTurns = [...]int{sampleNext, sampleJump, sampleNext, sampleJump, sampleNext, sampleSlow}

// noRate is an empty place among samples.
const noRate = -1

// NewMinstrel is one for a station. Modes get faster by their index.
func NewMinstrel(times MinstrelTimes, peers int, rng *rand.Rand) *Minstrel {
	m := &Minstrel{times: times, peers: make([]*minstrelPeer, peers)}
	for range minstrelColumns {
		m.order = append(m.order, rng.Perm(len(times.Frame))...)
	}
	return m
}

func (m *Minstrel) peer(i int, at time.Duration) *minstrelPeer {
	if m.peers[i] == nil {
		p := &minstrelPeer{rates: make([]minstrelRate, len(m.times.Frame)), perExchange: 1}
		for kind := range p.samples {
			p.samples[kind] = [minstrelSamples]int{noRate, noRate, noRate, noRate, noRate}
		}
		m.update(p, at.Truncate(jiffy))
		m.peers[i] = p
	}
	return m.peers[i]
}

// Pick is the choice for the next attempt. A frame keeps the chain of its first.
func (m *Minstrel) Pick(peer, tried int, rts bool, at time.Duration) Choice {
	if peer < 0 {
		return Choice{}
	}
	p := m.peer(peer, at)
	if tried == 0 || p.chain.tries == 0 {
		if p.told-p.updated > minstrelEvery {
			m.update(p, p.told)
		}
		p.begin(rts, at)
	}
	i, left := 0, int32(tried)
	for ; i < len(p.stages)-1 && left >= p.stages[i].tries; i++ {
		left -= p.stages[i].tries
	}
	return Choice{Mode: int(p.stages[i].mode), RTS: i > 0, Sample: i == 0 && p.sample}
}

// Tries is how often the present frame goes on the air at most.
func (m *Minstrel) Tries(peer int) int {
	if peer < 0 || m.peers[peer] == nil {
		return 0
	}
	return int(m.peers[peer].chain.tries)
}

// begin takes a frame's chain from the table, or has it sample.
func (p *minstrelPeer) begin(rts bool, at time.Duration) {
	p.chain = p.table[0]
	if rts {
		p.chain = p.table[1]
	}
	if at = at.Truncate(jiffy); at < p.sampleAt {
		return
	}
	p.sampleAt = at + minstrelSample
	kind := sampleTurns[p.turn]
	p.turn = (p.turn + 1) % len(sampleTurns)
	for i, mode := range p.samples[kind] {
		if mode != noRate {
			p.samples[kind][i] = noRate
			p.chain.tries += 1 - p.stages[0].tries
			p.stages[0], p.sample = stage{int32(mode), 1}, true
			return
		}
	}
}

// tabulate makes the chains of the frames until the next update.
func (m *Minstrel) tabulate(p *minstrelPeer) {
	for rts := range p.table {
		c := chain{}
		for i, mode := range [...]int{p.best[0], p.best[1], p.best[2], p.surest} {
			c.stages[i] = stage{int32(mode), m.tries(p, mode, rts > 0 || i > 0)}
			c.tries += c.stages[i].tries
		}
		p.table[rts] = c
	}
}

// tries is how many of them a stage's time has room for.
func (m *Minstrel) tries(p *minstrelPeer, mode int, rts bool) int32 {
	if p.rates[mode].chance < doubtful {
		return minstrelTwoTries
	}
	one := m.times.Frame[mode]*time.Duration(p.perExchange) + m.times.Overhead
	if rts {
		one += m.times.OverheadRTS - m.times.Overhead
	}
	n, cw, total := int32(0), minstrelCWMin, time.Duration(0)
	for ; n <= minstrelTwoTries || total < minstrelSegment; n++ {
		total += time.Duration(cw)*minstrelSlot/2 + one
		cw = min(2*cw+1, minstrelCWMax)
	}
	return n - 1
}

// Result counts an attempt with so many frames, of which some were acknowledged.
func (m *Minstrel) Result(peer, mode, frames, ok int, at time.Duration) {
	if peer < 0 || m.peers[peer] == nil {
		return
	}
	p := m.peers[peer]
	r := &p.rates[mode]
	r.attempts += frames
	r.ok += ok
	p.frames += frames
	p.packets++
	p.told = at.Truncate(jiffy)
}

// Heard is of no use to it.
func (m *Minstrel) Heard(int, float64, time.Duration) {}

func (m *Minstrel) update(p *minstrelPeer, at time.Duration) {
	p.updated, p.sampleAt = at, at
	if p.packets > 0 {
		p.perExchange += (1 - minstrelPast) * (float64(p.frames)/float64(p.packets) - p.perExchange)
		p.frames, p.packets = 0, 0
	}
	p.best, p.surest = [3]int{}, 0
	faster := 0 // the best chance of those that were ever tried
	for i := len(p.rates) - 1; i >= 0; i-- {
		r := &p.rates[i]
		r.count()
		if r.tried {
			faster = max(faster, r.chance)
		} else {
			r.chance = max(faster, r.chance)
		}
		m.rank(p, i)
	}
	for i := range p.rates {
		m.compareSurest(p, i)
	}
	m.tabulate(p)
	m.refill(p)
}

// count takes a rate's attempts into its chance.
func (r *minstrelRate) count() {
	if r.attempts == 0 {
		return
	}
	in := max(1, r.ok*sure/r.attempts)
	out, last := in, r.chance
	if last == 0 { // also of one that has faded away
		last = in
	} else {
		out = (filterIn*in + filterLast*last - filterPast*r.before) >> 12
		if out < 0 {
			out = 1
		}
	}
	r.chance, r.before, r.tried = min(out, sure), last, true
	r.attempts, r.ok = 0, 0
}

// rank puts a rate in its place among the best.
func (m *Minstrel) rank(p *minstrelPeer, mode int) {
	mine := m.throughput(p, mode)
	if mine == 0 {
		return
	}
	place := len(p.best)
	for ; place > 0; place-- {
		other := p.best[place-1]
		theirs := m.throughput(p, other)
		if mine < theirs || mine == theirs && p.rates[mode].chance <= p.rates[other].chance {
			break
		}
	}
	if place < len(p.best) {
		copy(p.best[place+1:], p.best[place:])
		p.best[place] = mode
	}
}

// compareSurest makes a rate the surest if it is: the best by throughput of those that are
// reliable. Those that are faster than the best are less sure than it, or none.
func (m *Minstrel) compareSurest(p *minstrelPeer, mode int) {
	chance := p.rates[mode].chance
	switch best := p.best[0]; {
	case m.times.Frame[mode] < m.times.Frame[best] && chance < p.rates[best].chance:
		return
	case chance > reliable && m.throughput(p, mode) > m.throughput(p, p.surest),
		chance <= reliable && chance > p.rates[p.surest].chance:
		p.surest = mode
	}
}

// throughput is frames a second, by the time of a frame and its share of an exchange.
func (m *Minstrel) throughput(p *minstrelPeer, mode int) float64 {
	chance := p.rates[mode].chance
	if chance < hopeless {
		return 0
	}
	share := m.times.Overhead.Seconds() / math.Floor(p.perExchange)
	return float64(min(chance, capped)) / sure / (share + m.times.Frame[mode].Seconds())
}

// refill chooses the rates that may be sampled until the next update.
func (m *Minstrel) refill(p *minstrelPeer) {
	frame := m.times.Frame
	best, second, surest := frame[p.best[0]], frame[p.best[1]], frame[p.surest]
	fast, slow := min(best, second, surest), max(best, second, surest)
	quicker := func(t time.Duration) bool { return t < fast }

	next, n := &p.samples[sampleNext], m.keep(p, sampleNext, quicker)
	for ; n < len(next); n++ {
		next[n] = m.unlessThere(p, sampleNext, m.slowestBelow(best))
		if next[n] == noRate {
			break
		}
	}
	jump, n := &p.samples[sampleJump], m.keep(p, sampleJump, quicker)
	slows := m.keep(p, sampleSlow, func(t time.Duration) bool { return t > fast && t < slow })
	for ; n < len(jump); n++ {
		jump[n] = m.jump(p, fast, slow, &slows)
		if jump[n] == noRate {
			break
		}
	}
}

// keep throws those out that are not of their kind any more, and closes gaps. As in the kernel, the
// first does not count when it has its place already: what comes next goes there.
func (m *Minstrel) keep(p *minstrelPeer, kind int, fits func(time.Duration) bool) (n int) {
	list := &p.samples[kind]
	for i, mode := range list {
		switch {
		case mode == noRate:
		case !fits(m.times.Frame[mode]):
			list[i] = noRate
		case i > n:
			list[n], list[i] = mode, noRate
			n++
		}
	}
	return n
}

// unlessThere is the rate, or none if it is among the samples of a kind, up to the first gap.
func (m *Minstrel) unlessThere(p *minstrelPeer, kind, mode int) int {
	for _, other := range p.samples[kind] {
		if other == mode {
			return noRate
		}
		if other == noRate {
			break
		}
	}
	return mode
}

// slowestBelow is the slowest rate that is faster than a time.
func (m *Minstrel) slowestBelow(limit time.Duration) int {
	for i, t := range m.times.Frame {
		if t < limit {
			return i
		}
	}
	return noRate
}

// jump looks at one rate by chance. A fast one is its result, one between goes to the slow ones.
func (m *Minstrel) jump(p *minstrelPeer, fast, slow time.Duration, slows *int) int {
	limit := slow
	if *slows == minstrelSamples {
		limit = fast
	}
	mode := m.random(p, m.slowestBelow(limit))
	switch {
	case mode == noRate:
	case m.times.Frame[mode] < fast:
		return m.unlessThere(p, sampleJump, mode)
	case *slows < minstrelSamples && m.times.Frame[mode] < slow && p.rates[mode].chance <= safe &&
		m.unlessThere(p, sampleSlow, mode) != noRate:
		p.samples[sampleSlow][*slows] = mode
		*slows++
	}
	return noRate
}

// random is the next rate of those from least on, in a random order.
func (m *Minstrel) random(p *minstrelPeer, least int) int {
	if least == noRate {
		return noRate
	}
	for range p.rates {
		mode := m.order[p.looked]
		p.looked = (p.looked + 1) % len(m.order)
		if mode >= least {
			return mode
		}
	}
	return noRate
}
