package ratecontrol

import (
	"math/rand/v2"
	"slices"
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
	minstrelPlaces  = 10                      // MCS_GROUP_RATES: of rates in a group, and in each of these orders
	minstrelPast    = 96                      // EWMA_LEVEL, of 128 (EWMA_DIV), of the length of A-MPDUs
	minstrelSudden  = 30                      // tries since the last update from which on a rate may be given up

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
// Its groups of rates differ by width. What it does between others is left out: streams, guard
// intervals, and CCK beside others.
type Minstrel struct {
	times MinstrelTimes
	group []int // by mode
	order []int // of places in a group, in which rates are looked at for jumps
	peers []*minstrelPeer
}

// MinstrelTimes are the times by which Minstrel compares rates and limits tries.
type MinstrelTimes struct {
	Frame                 []time.Duration // by mode, of MinstrelBytes; 0: no group has the mode
	Overhead, OverheadRTS time.Duration   // of an exchange, beside the frame
	// Groups are the modes of each group by their place in it, -1 where it has none there.
	Groups [][]int
	// Unsent are modes that are sampled in vain: no frame goes at them.
	Unsent []int
}

type minstrelPeer struct {
	updated time.Duration
	told    time.Duration // the last result
	rates   []minstrelRate
	best    [3]int // by throughput
	surest  int
	inGroup []minstrelGroup

	sampleAt time.Duration
	turn     int // in sampleTurns
	samples  [sampleKinds][minstrelSamples]int
	turns    [sampleKinds]int // the group that was looked at last

	perExchange     int // frames in an A-MPDU on average, as chances are
	frames, packets int // since the last update

	table [2]chain // without RTS at the first stage, and with it
	chain          // of the present frame
}

// minstrelGroup is what is kept of each group.
type minstrelGroup struct {
	best   [3]int // of the last update
	looked int    // at places for jumps
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

// noRate is an empty place among samples, or in a group.
const noRate = -1

// NewMinstrel is one for a station.
func NewMinstrel(times MinstrelTimes, peers int, rng *rand.Rand) *Minstrel {
	m := &Minstrel{times: times, peers: make([]*minstrelPeer, peers), group: make([]int, len(times.Frame))}
	for g, modes := range times.Groups {
		for _, mode := range modes {
			if mode != noRate {
				m.group[mode] = g
			}
		}
	}
	for range minstrelColumns {
		m.order = append(m.order, rng.Perm(minstrelPlaces)...)
	}
	return m
}

func (m *Minstrel) peer(i int, at time.Duration) *minstrelPeer {
	if m.peers[i] == nil {
		p := &minstrelPeer{rates: make([]minstrelRate, len(m.times.Frame)), perExchange: sure,
			inGroup: make([]minstrelGroup, len(m.times.Groups))}
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
		m.giveUpFailing(p)
		if p.told-p.updated > minstrelEvery {
			m.update(p, p.told)
		}
		m.begin(p, rts, at)
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

// giveUpFailing has the best of the group before take the place of a rate that fails suddenly
// (minstrel_downgrade_rate).
func (m *Minstrel) giveUpFailing(p *minstrelPeer) {
	for i, mode := range p.best[:2] {
		r, g := &p.rates[mode], m.group[mode]
		if g > 0 && r.attempts > minstrelSudden && r.ok < r.attempts/4 {
			p.best[i] = p.inGroup[g-1].best[i]
			m.tabulate(p)
		}
	}
}

// begin takes a frame's chain from the table, or has it sample.
func (m *Minstrel) begin(p *minstrelPeer, rts bool, at time.Duration) {
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
			if slices.Contains(m.times.Unsent, mode) {
				return
			}
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
	one := m.times.Frame[mode]*time.Duration(p.perExchange>>12) + m.times.Overhead
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
		p.perExchange += (128 - minstrelPast) * (p.frames<<12/p.packets - p.perExchange) / 128
		p.frames, p.packets = 0, 0
	}
	first := m.times.Groups[0][0]
	p.best, p.surest = [3]int{first, first, first}, first
	for g, modes := range m.times.Groups {
		p.inGroup[g].best = [3]int{modes[0], modes[0], modes[0]}
		faster := 0 // the best chance of those that were ever tried
		for _, mode := range slices.Backward(modes) {
			if mode == noRate {
				continue
			}
			r := &p.rates[mode]
			r.count()
			if r.tried {
				faster = max(faster, r.chance)
			} else {
				r.chance = max(faster, r.chance)
			}
			m.rank(p, &p.best, mode)
			m.rank(p, &p.inGroup[g].best, mode)
		}
	}
	for _, modes := range m.times.Groups {
		for _, mode := range modes {
			if mode != noRate {
				m.compareSurest(p, mode)
			}
		}
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
func (m *Minstrel) rank(p *minstrelPeer, best *[3]int, mode int) {
	mine := m.throughput(p, mode)
	if mine == 0 {
		return
	}
	place := len(best)
	for ; place > 0; place-- {
		other := best[place-1]
		theirs := m.throughput(p, other)
		if mine < theirs || mine == theirs && p.rates[mode].chance <= p.rates[other].chance {
			break
		}
	}
	if place < len(best) {
		copy(best[place+1:], best[place:])
		best[place] = mode
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

// throughput is frames in a hundred seconds or so, by the time of a frame and its share of an exchange. It is
// as coarse as the kernel's (minstrel_ht_get_tp_avg), so that rates may be equal.
func (m *Minstrel) throughput(p *minstrelPeer, mode int) int {
	chance := p.rates[mode].chance
	if chance < hopeless {
		return 0
	}
	took := m.times.Frame[mode] + m.times.Overhead/time.Duration(p.perExchange>>12)
	return 100 * int(int64(min(chance, capped))*1e6/int64(took)) >> 12
}

// refill chooses the rates that may be sampled until the next update.
func (m *Minstrel) refill(p *minstrelPeer) {
	frame := m.times.Frame
	best, second, surest := frame[p.best[0]], frame[p.best[1]], frame[p.surest]
	fast, slow := min(best, second, surest), max(best, second, surest)
	quicker := func(t time.Duration) bool { return t < fast }

	next, n := &p.samples[sampleNext], m.keep(p, sampleNext, quicker)
	for ; n < len(next); n++ {
		next[n] = m.next(p, best)
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

// has reports whether a mode is among the samples of a kind, up to the first gap.
func (p *minstrelPeer) has(kind, mode int) bool {
	for _, other := range p.samples[kind] {
		if other == mode || other == noRate {
			return other == mode
		}
	}
	return false
}

// slowestBelow is the first place in a group whose rate is faster than a time.
func (m *Minstrel) slowestBelow(group int, limit time.Duration) int {
	return slices.IndexFunc(m.times.Groups[group], func(mode int) bool {
		return mode != noRate && m.times.Frame[mode] < limit
	})
}

// eachGroup calls f for each group, from behind the one of last time on, until f has a mode.
func (m *Minstrel) eachGroup(p *minstrelPeer, kind int, f func(group int) int) int {
	for range m.times.Groups {
		p.turns[kind] = (p.turns[kind] + 1) % len(m.times.Groups)
		if mode := f(p.turns[kind]); mode != noRate {
			return mode
		}
	}
	return noRate
}

// next is a group's slowest rate that is faster than a time, and not there yet.
func (m *Minstrel) next(p *minstrelPeer, limit time.Duration) int {
	return m.eachGroup(p, sampleNext, func(group int) int {
		place := m.slowestBelow(group, limit)
		if place < 0 || p.has(sampleNext, m.times.Groups[group][place]) {
			return noRate
		}
		return m.times.Groups[group][place]
	})
}

// jump looks at one rate of each group by chance. A fast one is its result, one between goes to the slow ones.
func (m *Minstrel) jump(p *minstrelPeer, fast, slow time.Duration, slows *int) int {
	return m.eachGroup(p, sampleJump, func(group int) int {
		limit := slow
		if *slows == minstrelSamples {
			limit = fast
		}
		mode := m.random(p, group, m.slowestBelow(group, limit))
		switch {
		case mode == noRate:
		case m.times.Frame[mode] < fast:
			if !p.has(sampleJump, mode) {
				return mode
			}
		case *slows < minstrelSamples && m.times.Frame[mode] < slow && p.rates[mode].chance <= safe &&
			!p.has(sampleSlow, mode):
			p.samples[sampleSlow][*slows] = mode
			*slows++
		}
		return noRate
	})
}

// random is the next mode of those in a group from a place on, in a random order.
func (m *Minstrel) random(p *minstrelPeer, group, least int) int {
	if least < 0 {
		return noRate
	}
	modes, looked := m.times.Groups[group], &p.inGroup[group].looked
	for range minstrelPlaces {
		place := m.order[*looked]
		*looked = (*looked + 1) % len(m.order)
		if place >= least && place < len(modes) && modes[place] != noRate {
			return modes[place]
		}
	}
	return noRate
}
