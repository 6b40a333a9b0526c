package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// keptMax is how many attempts that were looked at are kept for whoever looks again.
const keptMax = 8

// errNoAttempt is the answer about an attempt that nobody judged.
var errNoAttempt = errors.New("no such attempt was judged in this run")

// shelf has judged attempts ready for viewers. One is read at a time: it may be large.
type shelf struct {
	turn chan struct{} // whoever holds it may read, and use what is below
	kept []shown       // the newest last
}

// shown is a judged attempt as a viewer gets it.
type shown struct {
	verdict wire.Verdict
	bytes   int64 // of the attempt's records
	text    []byte
}

func newShelf() *shelf { return &shelf{turn: make(chan struct{}, 1)} }

// attempt is a judged attempt as JSON.
func (s *shelf) attempt(ctx context.Context, dir string, k wire.TrialKey) ([]byte, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	a, err := archive.Read(dir)
	if err != nil {
		return nil, err
	}
	decided := a.Decisions()
	i := slices.IndexFunc(decided, func(v wire.Verdict) bool { return v.TrialKey == k })
	if _, planned := a.Trial(k.Trial); i < 0 || !planned {
		return nil, errNoAttempt
	}
	bytes, err := a.Recorded(k)
	if err != nil {
		return nil, err
	}
	of := func(had shown) bool { return had.verdict.TrialKey == k }
	if had := slices.IndexFunc(s.kept, of); had >= 0 {
		v := s.kept[had].verdict
		if v.Outcome == decided[i].Outcome && v.Reason == decided[i].Reason && s.kept[had].bytes == bytes {
			return s.kept[had].text, nil
		}
		s.kept = slices.Delete(s.kept, had, had+1) // a person decided otherwise, or more records came
	}
	c, err := current(a, k, decided, new(archive.Tail), time.Time{})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	if len(s.kept) == keptMax {
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	s.kept = append(s.kept, shown{decided[i], bytes, text})
	return text, nil
}

// serve answers /attempt?trial=N&attempt=M.
func (s *shelf) serve(dir string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		trial, err := strconv.Atoi(r.URL.Query().Get("trial"))
		attempt, aerr := strconv.Atoi(r.URL.Query().Get("attempt"))
		if errors.Join(err, aerr) != nil {
			http.Error(w, "trial and attempt are numbers", http.StatusBadRequest)
			return
		}
		text, err := s.attempt(r.Context(), dir, wire.TrialKey{Trial: trial, Attempt: attempt})
		switch {
		case errors.Is(err, errNoAttempt):
			http.Error(w, err.Error(), http.StatusNotFound)
		case err != nil:
			http.Error(w, fmt.Sprintf("the attempt cannot be read: %v", err), http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(text) // a viewer that is gone misses nothing
		}
	}
}
