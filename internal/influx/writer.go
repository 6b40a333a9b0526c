package influx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/internal/pause"
)

const (
	firstWait  = 250 * time.Millisecond
	longWait   = 30 * time.Second
	serverWait = 5 * time.Minute // longest Retry-After that is obeyed
	callTime   = 30 * time.Second
	// leastTime is for a call, however short the patience: a name server that does not answer takes 5 s
	// before the next is asked (resolv.conf(5), timeout).
	leastTime = 10 * time.Second
	// refusedMax bounds how many lines of one batch are looked for one by one:
	// a server that refuses everything has another reason than the lines.
	refusedMax = 50
)

// ErrAway is returned when the server could not be reached, or had no answer
// but "later", for as long as Writer.Patience.
var ErrAway = errors.New("influxdb does not take records")

// ErrAccess is returned when the server refuses user or password.
var ErrAccess = errors.New("influxdb refuses access")

// Writer sends points to one target. It may be used by several goroutines.
type Writer struct {
	Target Target
	Client *http.Client // nil: one that follows no redirects and gives up on a call after 30 s

	// Patience is how long a server is tried that is away or does not answer, once
	// at least; 0: until ctx ends.
	Patience time.Duration
	// Outage is told the first failure of an outage, and nil when it is over,
	// once each however many goroutines write. It may be nil.
	Outage func(error)

	// Wait and Jitter are set by tests. Wait sleeps until ctx ends; Jitter is
	// evenly spread over [0, 1), so that many nodes do not come back at once.
	Wait   func(context.Context, time.Duration) error
	Jitter func() float64

	mu   sync.Mutex
	away bool // Outage was told a failure, and not yet its end
}

// Open makes a writer to t that logs once that the server is away, and once that
// it is back, and warns of a password that others on the way can read. The password of
// t's user, if it has one, is that of ReadPassword.
func Open(t Target, passwordFile string, log *slog.Logger) (*Writer, error) {
	if t.User != "" || passwordFile != "" {
		var err error
		if t.Password, err = ReadPassword(passwordFile); err != nil {
			return nil, err
		}
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if t.Password != "" && !t.private() {
		log.Warn("the password goes to influxdb as it is, and who is on the way can read it; use https://, or a "+
			"tunnel", "influxdb", t.place())
	}
	return &Writer{Target: t, Outage: func(err error) {
		if err != nil {
			log.Warn("influxdb is away; records wait on disk", "error", err)
			return
		}
		log.Warn("influxdb is back")
	}}, nil
}

// Refusal is a line that the server does not take, with its reason. The other
// lines of its batch are stored.
type Refusal struct{ Line, Reason string }

// Write stores lines of line protocol; when it returns nil the server has
// acknowledged all but the refused ones. While the server is away it tries
// again. The same lines may be written again: they are the same points.
func (w *Writer) Write(ctx context.Context, lines []byte) ([]Refusal, error) {
	if len(bytes.TrimSpace(lines)) == 0 {
		return nil, nil
	}
	if lines[len(lines)-1] != '\n' {
		lines = append(bytes.Clone(lines), '\n')
	}
	var refused []Refusal
	err := w.store(ctx, lines, &refused)
	return refused, err
}

// store sends a batch, and its halves when the server does not like all of it:
// some versions drop a batch for one bad line.
func (w *Writer) store(ctx context.Context, lines []byte, refused *[]Refusal) error {
	err := w.deliver(ctx, lines)
	answer, ok := errors.AsType[*statusError](err)
	if !ok || !answer.aboutLines() {
		return err
	}
	head, tail := halves(lines)
	if len(tail) == 0 {
		*refused = append(*refused, Refusal{Line: string(bytes.TrimSpace(head)), Reason: answer.message})
		if len(*refused) > refusedMax {
			return fmt.Errorf("write to %v: it refuses line after line: %s", w.Target, answer.message)
		}
		return nil
	}
	if err := w.store(ctx, head, refused); err != nil {
		return err
	}
	return w.store(ctx, tail, refused)
}

// halves cuts a batch, whose last line has its newline, between two lines; a
// single line has no second half.
func halves(lines []byte) (head, tail []byte) {
	middle := len(lines) / 2
	if i := bytes.IndexByte(lines[middle:], '\n'); i >= 0 && middle+i+1 < len(lines) {
		return lines[:middle+i+1], lines[middle+i+1:]
	}
	if i := bytes.LastIndexByte(lines[:middle], '\n'); i >= 0 {
		return lines[:i+1], lines[i+1:]
	}
	return lines, nil
}

// deliver sends one batch until the server has said yes or no to it.
func (w *Writer) deliver(ctx context.Context, lines []byte) error {
	packed, err := Pack(lines)
	if err != nil {
		return fmt.Errorf("pack a batch for influxdb: %w", err)
	}
	query := url.Values{"db": {w.Target.Database}, "precision": {"ns"}}
	created := false
	return w.persist(ctx, func(ctx context.Context) error {
		err := w.call(ctx, "/write", query, packed)
		if answer, ok := errors.AsType[*statusError](err); ok && answer.noDatabase() && !created {
			created = true
			if err := w.create(ctx); err != nil {
				return err
			}
			return w.call(ctx, "/write", query, packed)
		}
		return err
	})
}

// Prepare makes the database unless it is there. Servers that know no such call
// (2.x, 3), or a user who may only write, are not errors: the first write
// tells. A wrong password is.
func (w *Writer) Prepare(ctx context.Context) error {
	if err := w.Target.Validate(); err != nil {
		return err
	}
	return w.persist(ctx, w.create)
}

// Forget deletes what the database has of a measurement's points with some tags and of one time: others of the same
// tags may be another run's of the same name. A server that deletes nothing so (3), or does not let this user, is an
// error.
func (w *Writer) Forget(ctx context.Context, measurement string, tags map[string]string, at time.Time) error {
	var of []string
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		of = append(of, quoted(name, `"`)+" = "+quoted(tags[name], `'`))
	}
	// 1.6 deletes nothing where the time is asked for by "=".
	q := "DELETE FROM " + quoted(measurement, `"`) + " WHERE " + strings.Join(of, " AND ") +
		fmt.Sprintf(" AND time >= %d AND time <= %[1]d", at.UnixNano())
	err := w.persist(ctx, func(ctx context.Context) error {
		return w.call(ctx, "/query", url.Values{"db": {w.Target.Database}, "q": {q}}, nil)
	})
	if answer, ok := errors.AsType[*statusError](err); ok && strings.Contains(answer.message, "database not found") {
		return nil
	}
	return err
}

// quoted is a name or a text as InfluxQL has it.
func quoted(text, quote string) string {
	return quote + strings.NewReplacer(`\`, `\\`, quote, `\`+quote).Replace(text) + quote
}

func (w *Writer) create(ctx context.Context) error {
	err := w.call(ctx, "/query", url.Values{"q": {"CREATE DATABASE " + quoted(w.Target.Database, `"`)}}, nil)
	if answer, ok := errors.AsType[*statusError](err); ok && answer.code != http.StatusUnauthorized &&
		!answer.passes() {
		return nil
	}
	return err
}

// persist repeats a call while the server is away, waiting longer each time.
func (w *Writer) persist(ctx context.Context, call func(context.Context) error) error {
	wait, spent := firstWait, time.Duration(0)
	for {
		begun := time.Now()
		err := w.within(ctx, w.Patience-spent, call)
		spent += time.Since(begun)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil || !passes(err) {
			w.tell(nil)
			return w.explain(err)
		}
		w.tell(err)
		pause := time.Duration(float64(wait) * (0.5 + w.jitter()/2))
		if answer, ok := errors.AsType[*statusError](err); ok && answer.retryAfter > pause {
			pause = min(answer.retryAfter, serverWait)
		}
		if spent += pause; w.Patience > 0 && spent >= w.Patience {
			return fmt.Errorf("write to %v: %w: %w", w.Target, ErrAway, err)
		}
		if err := w.wait(ctx, pause); err != nil {
			return err
		}
		wait = min(2*wait, longWait)
	}
}

// within makes a call that takes no longer than what is left of the patience, but a short one's.
func (w *Writer) within(ctx context.Context, left time.Duration, call func(context.Context) error) error {
	if w.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(left, leastTime))
		defer cancel()
	}
	return call(ctx)
}

// explain turns the server's final answer into what a user can act on.
func (w *Writer) explain(err error) error {
	answer, ok := errors.AsType[*statusError](err)
	switch {
	case err == nil, !ok, answer.aboutLines():
		return err
	case answer.code == http.StatusUnauthorized || answer.code == http.StatusForbidden:
		if w.Target.User == "" {
			return fmt.Errorf("write to %v without a user: %w: %w; name one by --user, and its password by "+
				"--password-file (InfluxDB 2.x: any user, and the token is the password)", w.Target, ErrAccess, err)
		}
		return fmt.Errorf("write to %v as user %q: %w: %w; check user and password (InfluxDB 2.x: the token is "+
			"the password)", w.Target, w.Target.User, ErrAccess, err)
	}
	if answer.noDatabase() {
		return fmt.Errorf("write to %v: %w: user %q may not make it; make it as an administrator and grant WRITE "+
			"on it: %w", w.Target, ErrAccess, w.Target.User, err)
	}
	if answer.code == http.StatusNotFound && strings.Contains(answer.message, "bucket") {
		return fmt.Errorf("write to %v: %w; make the bucket there, or name another by --database", w.Target, err)
	}
	return fmt.Errorf("write to %v: %w", w.Target, err)
}

// tell passes on what is news: a failure, or that the server answers again.
func (w *Writer) tell(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away == (err != nil) {
		return
	}
	w.away = err != nil
	if w.Outage != nil {
		w.Outage(err)
	}
}

func (w *Writer) jitter() float64 {
	if w.Jitter != nil {
		return w.Jitter()
	}
	return rand.Float64()
}

func (w *Writer) wait(ctx context.Context, d time.Duration) error {
	if w.Wait != nil {
		return w.Wait(ctx, d)
	}
	return pause.For(ctx, d)
}
