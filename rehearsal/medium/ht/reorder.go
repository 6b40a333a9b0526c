package ht

import "time"

// releaseAfter is how long mac80211 lets a frame wait for those before it
// (HT_RX_REORDER_BUF_TIMEOUT, net/mac80211/rx.c).
const releaseAfter = 100 * time.Millisecond

// Reorder is a receiver's buffer for what one sender sends under a block acknowledgement
// (10.25.6.6): frames go up in the order of their numbers. Those behind a gap wait until it is filled,
// until the sender has moved on, by a request or by a number beyond the window, or until they have
// waited for too long, as in mac80211. Numbers are not taken modulo 4096.
type Reorder[F comparable] struct {
	next  uint64              // to go up
	held  *[Window]waiting[F] // nil: none has come yet
	count int
}

type waiting[F comparable] struct {
	frame F
	since time.Duration
}

// Take puts a frame in, and hands up what can go now. It returns false for one that came before, or
// after its turn.
func (r *Reorder[F]) Take(number uint64, frame F, at time.Duration, up func(F)) bool {
	var none F
	if number < r.next {
		return false
	}
	if number >= r.next+Window {
		r.MoveTo(number-Window+1, up)
	}
	if r.held == nil {
		r.held = new([Window]waiting[F])
	}
	h := &r.held[number%Window]
	if h.frame != none {
		return false
	}
	*h = waiting[F]{frame, at}
	r.count++
	r.run(up)
	return true
}

// MoveTo gives up waiting for numbers below one.
func (r *Reorder[F]) MoveTo(next uint64, up func(F)) {
	for ; r.next < next && r.count > 0; r.next++ {
		r.pop(up)
	}
	r.next = max(r.next, next)
	r.run(up)
}

// Release gives up waiting for what those wait for that have waited for too long.
func (r *Reorder[F]) Release(at time.Duration, up func(F)) {
	for due, any := r.Due(); any && due <= at; due, any = r.Due() {
		r.MoveTo(r.first(), up)
	}
}

// Due is when Release would do something, unless a gap is filled before.
func (r *Reorder[F]) Due() (time.Duration, bool) {
	if r.count == 0 {
		return 0, false
	}
	return r.held[r.first()%Window].since + releaseAfter, true
}

// first is the lowest number that waits.
func (r *Reorder[F]) first() uint64 {
	var none F
	n := r.next
	for r.held[n%Window].frame == none {
		n++
	}
	return n
}

// run hands up what is in order.
func (r *Reorder[F]) run(up func(F)) {
	for ; r.pop(up); r.next++ {
	}
}

// pop hands the next frame up, if it is there.
func (r *Reorder[F]) pop(up func(F)) bool {
	var none F
	if r.count == 0 {
		return false
	}
	h := &r.held[r.next%Window]
	if h.frame == none {
		return false
	}
	f := h.frame
	h.frame = none
	r.count--
	up(f)
	return true
}
