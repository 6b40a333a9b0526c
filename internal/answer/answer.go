// Package answer reads the bodies of requests and sends what is answered, as all of
// our servers do: within a time that grows with the size, never stored, and of a
// declared kind.
package answer

import (
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// JSON is the kind of bodies, and of answers that are no files.
const JSON = "application/json"

// Answer is what is sent.
type Answer struct {
	Status int
	Kind   string // of the data
	Data   []byte
}

// Of is a body as an answer; an error has the status of its code. It never fails towards the
// peer: what cannot be encoded is our fault and says so.
func Of(body any, log *slog.Logger) Answer {
	out := Answer{Status: http.StatusOK, Kind: JSON}
	if refused, is := body.(*wire.Error); is {
		out.Status = wire.HTTPStatus(refused.Code)
	}
	var err error
	if out.Data, err = wire.Encode(body); err != nil {
		log.Error("encode answer", "error", err)
		out.Status = http.StatusInternalServerError
		out.Data = []byte(`{"code":"internal","message":"the answer could not be encoded"}`)
	}
	return out
}

// Send sends an answer within a time, and a second more for every 32 KiB.
func (a Answer) Send(w http.ResponseWriter, r *http.Request, within time.Duration, log *slog.Logger) {
	w.Header().Set("Content-Type", a.Kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.Data)))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	within += time.Duration(len(a.Data)>>15) * time.Second
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(within)); err != nil {
		log.Warn("set write deadline", "error", err)
	}
	w.WriteHeader(a.Status)
	if r.Method == http.MethodHead {
		return
	}
	if _, err := w.Write(a.Data); err != nil {
		log.Info("answer not delivered", "path", r.URL.Path, "remote", r.RemoteAddr, "error", err)
	}
}

// Body reads a JSON body of at most so many bytes, within the connection's read deadline.
func Body(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != JSON {
		return nil, wire.Errorf(wire.CodeMediaType, "the body is %.80q, not %s", r.Header.Get("Content-Type"), JSON)
	}
	tooLarge := wire.Errorf(wire.CodeTooLarge, "the body exceeds %d bytes", most)
	if r.ContentLength > most {
		return nil, tooLarge
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, wire.Errorf(wire.CodeTooSlow, "the body did not arrive in time; %d bytes came", len(data))
	case err != nil:
		return nil, wire.Errorf(wire.CodeBadRequest, "read body: %s", err)
	}
	return data, nil
}
