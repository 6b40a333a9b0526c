package field

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// request is one line from the controller. Calls are answered in order.
type request struct {
	ID          uint64      `json:"id"`
	Call        string      `json:"call"` // place | drive | settle | fault
	Trial       *wire.Trial `json:"trial,omitempty"`
	Attempt     int         `json:"attempt,omitempty"`
	OpenBootNs  int64       `json:"open_boot_ns,omitempty"`
	CloseBootNs int64       `json:"close_boot_ns,omitempty"`
	Fault       *Fault      `json:"fault,omitempty"`
}

// response is one line to the controller. The first, with ID 0, comes when the
// field has been created, or says why it was not.
type response struct {
	ID      uint64        `json:"id"`
	OK      bool          `json:"ok"`
	Error   string        `json:"error,omitempty"`
	Field   *Info         `json:"field,omitempty"`
	Records []wire.Record `json:"records,omitempty"`
}

// maxLine bounds a request: a trial is a few kilobytes.
const maxLine = 1 << 20

// Serve creates a field, does what the lines of in ask, and destroys the field
// when in ends, when ctx ends, or when a part of it breaks down. It needs
// root. The returned error says what went wrong with the field, not with a
// request: that is answered.
func Serve(ctx context.Context, in io.Reader, out io.Writer, cfg Config) error {
	if cfg.VirtualTime {
		// There is one processor. The radio's event thread keeps its P in short waits,
		// and the other goroutines share the second.
		runtime.GOMAXPROCS(2)
	} else {
		boundCollections()
	}
	answers := json.NewEncoder(out)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The reader may block for ever in Read; it ends with the process.
	requests := make(chan request)
	ended := make(chan error, 1)
	go func() {
		defer cancel() // nobody is there any more to wait for an answer
		ended <- readRequests(ctx, in, requests)
	}()
	f, err := Create(ctx, cfg)
	if err != nil {
		return errors.Join(err, answers.Encode(response{Error: err.Error()}))
	}
	info := f.Info()
	err = answers.Encode(response{OK: true, Field: &info})
	for err == nil {
		select {
		case r := <-requests:
			err = answers.Encode(f.answer(ctx, r))
			continue
		case <-ctx.Done():
			select {
			case err = <-ended:
			default: // a signal, not the end of the input
			}
		case <-f.Failed():
		}
		break
	}
	return errors.Join(err, f.Close())
}

func readRequests(ctx context.Context, in io.Reader, out chan<- request) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		r, err := decodeRequest(lines.Bytes())
		if err != nil {
			return err
		}
		select {
		case out <- r:
		case <-ctx.Done():
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read requests: %w", err)
	}
	return nil
}

func decodeRequest(line []byte) (request, error) {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("decode request %.80q: %w", line, err)
	}
	if r.ID == 0 {
		return r, fmt.Errorf("decode request %.80q: no id above 0", line)
	}
	return r, nil
}

func (f *Field) answer(ctx context.Context, r request) response {
	var records []wire.Record
	var err error
	switch {
	case r.Call == "place" && r.Trial != nil:
		err = f.Place(ctx, *r.Trial, r.Attempt)
	case r.Call == "drive":
		err = f.Drive(ctx)
	case r.Call == "settle":
		records, err = f.Settle(ctx, r.OpenBootNs, r.CloseBootNs)
	case r.Call == "fault" && r.Fault != nil:
		err = f.Fault(*r.Fault)
	default:
		err = fmt.Errorf("answer call %q: it is none of place (with a trial), drive, settle, fault (with a fault)",
			r.Call)
	}
	if err != nil {
		return response{ID: r.ID, Error: err.Error()}
	}
	return response{ID: r.ID, OK: true, Records: records}
}

// boundCollections trades memory for the radio's punctuality, in a process that
// is the field's own: a collection of garbage takes a processor from the event
// thread, and may hold it for good (boundWaking of realtime). Some 10 MB live, so 40
// times that passes between two; past the limit they come as often as need be.
func boundCollections() {
	debug.SetGCPercent(4000)
	debug.SetMemoryLimit(1 << 30)
}
