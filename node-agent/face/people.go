package face

import (
	"context"
	"fmt"

	"fieldmesh.dev/fieldmesh/node-agent/api"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Schedule passes a question for the run's plan on.
func (f *Face) Schedule(run string) (wire.Schedule, error) { return f.engine.Schedule(run) }

// PushFix takes a phone's fix where the configuration says that there is no gpsd. One
// phone is followed: on the phone that is the node its own, else the first.
func (f *Face) PushFix(p api.Peer, fix wire.Fix) (wire.GPS, error) {
	if f.cfg.GPSD != config.NoGPSD {
		return wire.GPS{}, &wire.Error{Code: wire.CodeConflict, Message: "this node's GPS is the gpsd at " + f.cfg.GPSD,
			Cure: "set gpsd: none in the agent's configuration to have the phone's instead"}
	}
	if f.cfg.AppKey != "" && p.Pin != f.cfg.AppKey {
		return wire.GPS{}, &wire.Error{Code: wire.CodeConflict,
			Message: fmt.Sprintf("this node is a phone, whose own app tells where it is: %s is elsewhere", p.Name),
			Cure:    "leave it to the app whose key is app_key in the agent's configuration"}
	}
	attempt, _ := f.engine.Attempt()
	now, _ := f.engine.View(context.Background(), f.runHeld(), 0) // without a run, the state is none
	return f.follow(p.Name, fix, attempt, now.State)
}

// runHeld is the name of the run that the node holds, "" for none.
func (f *Face) runHeld() string {
	run, _ := f.engine.Held()
	return run
}

// follow takes a phone's fix in a state of an attempt; the attempt is zero between attempts.
func (f *Face) follow(phone string, fix wire.Fix, attempt wire.TrialKey, state wire.State) (wire.GPS, error) {
	followed, before := f.gps.Push(phone, fix, state == wire.StateRunning)
	if followed != phone {
		return wire.GPS{}, &wire.Error{Code: wire.CodeConflict,
			Message: fmt.Sprintf("this node is where %s says, and follows nobody else: %s may be elsewhere",
				followed, phone),
			Cure: fmt.Sprintf("have only the phone that travels with this node give it its GPS; %s is followed until "+
				"it has been silent for 5 s or, while nothing is measured, without a fix for 30 s", followed)}
	}
	if before != "" && before != followed {
		h := wire.Header{Run: f.runHeld(), TBootNs: f.clk.BootNs(), Trial: attempt.Trial,
			Attempt: attempt.Attempt}
		text := fmt.Sprintf("gps: this node is where %s says, and no more where %s says", followed, before)
		if _, err := f.spool.Append(h, &wire.Event{Level: "warning", Text: text}); err != nil {
			f.log.Warn("record whose GPS is followed", "error", err)
		}
	}
	newest, _ := f.gps.Last()
	return newest, nil
}

// PushWiFi takes what Android tells the app that started this agent. Any other app's phone
// is in a Wi-Fi of its own.
func (f *Face) PushWiFi(p api.Peer, w wire.WiFiReading) (wire.WiFi, error) {
	if p.Pin != f.cfg.AppKey || f.cfg.AppKey == "" {
		return wire.WiFi{}, &wire.Error{Code: wire.CodeForbidden,
			Message: fmt.Sprintf("%s is not the app that started this agent: its Wi-Fi is not this node's", p.Name),
			Cure:    "leave it to the app whose key is app_key in the agent's configuration"}
	}
	f.told.Push(w)
	return *w.Record(), nil
}

// Note makes a record of what a person noted. A decision about an attempt is
// only recorded: the controller that collects it decides.
func (f *Face) Note(ctx context.Context, p api.Peer, n wire.Note) (wire.SpoolPosition, error) {
	f.notes.mu.Lock()
	defer f.notes.mu.Unlock()
	if f.notes.isNew(n.ID) {
		if !f.notes.mayNote(p.Name, f.clk.BootNs()) {
			return wire.SpoolPosition{}, wire.Errorf(wire.CodeUnavailable, "%s notes too much: more than %d notes at "+
				"once, and %d a second; send the note again later", p.Name, notesAtOnce, notesPerS)
		}
		if err := f.recordNote(p, n); err != nil {
			return wire.SpoolPosition{}, err
		}
		f.notes.remember(n.ID)
	}
	if err := f.spool.Sync(ctx); err != nil {
		return wire.SpoolPosition{}, fmt.Errorf("make note %q durable: %w", n.ID, err)
	}
	return f.spool.Position(), nil
}

func (f *Face) recordNote(p api.Peer, n wire.Note) error {
	h, err := noteHeader(n, f.runHeld())
	if err != nil {
		return err
	}
	if err := f.spool.CheckRoom(1); err != nil {
		return wire.Errorf(wire.CodeDiskFull, "no room for the note: %v", err)
	}
	if n.Attachment != nil {
		if err := f.attachments.Name(*n.Attachment, h.Run); err != nil {
			return err
		}
	}
	now := f.clk.BootNs()
	h.TBootNs = now
	_, err = f.spool.Append(h, noted(n, p.Name, now))
	return err
}

// noted is the record of a note that came at a moment of the boot clock.
func noted(n wire.Note, by string, nowNs int64) *wire.Noted {
	r := &wire.Noted{ID: n.ID, Note: n.Note, Text: n.Text, By: by, LatDeg: n.LatDeg, LonDeg: n.LonDeg,
		Attachment: n.Attachment}
	if n.AgeMs != nil {
		r.NotedBootNs = new(nowNs - int64(*n.AgeMs*1e6))
	}
	return r
}

// noteHeader says what a note is about on a node that holds a run, "" for none.
// A note may have waited on the phone until there was another run: then a
// decision is refused, and a mark is of no run.
func noteHeader(n wire.Note, held string) (wire.Header, error) {
	switch {
	case n.Run == "" || n.Run == held:
		return wire.Header{Run: held, Trial: n.Trial, Attempt: n.Attempt}, nil
	case n.IsMark():
		return wire.Header{}, nil
	}
	return wire.Header{}, &wire.Error{Code: wire.CodeConflict,
		Message: fmt.Sprintf("the decision is about run %q, which this node does not hold", n.Run),
		Cure:    "decide again in the run that the node holds"}
}
