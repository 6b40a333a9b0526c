package manet

import "maps"

// Turn is what every protocol needs to handle an event: the time, and the
// actions so far. It also counts what happens, over all events. A protocol's
// node embeds one.
type Turn struct {
	Now      Time
	actions  []Action
	counters map[string]int64
}

// Begin starts the turn of the next event.
func (t *Turn) Begin(now Time) { t.Now, t.actions = now, t.actions[:0] }

// Act adds an action.
func (t *Turn) Act(a Action) { t.actions = append(t.actions, a) }

// Actions are those since Begin, valid until the next one.
func (t *Turn) Actions() []Action { return t.actions }

// Count counts one more of something.
func (t *Turn) Count(what string) {
	if t.counters == nil {
		t.counters = map[string]int64{}
	}
	t.counters[what]++
}

// Counters is a copy of all counts, never nil.
func (t *Turn) Counters() map[string]int64 {
	out := make(map[string]int64, len(t.counters))
	maps.Copy(out, t.counters)
	return out
}
