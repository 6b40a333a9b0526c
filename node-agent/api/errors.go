package api

import (
	"context"
	"errors"
	"net/http"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// statusOf is the HTTP status of an error's code. A code that is not listed is
// a newer part's refusal of the present state: a conflict.
func statusOf(code string) int {
	switch code {
	case wire.CodeBadRequest:
		return http.StatusBadRequest
	case wire.CodeForbidden:
		return http.StatusForbidden
	case wire.CodeNotFound:
		return http.StatusNotFound
	case wire.CodeMethodNotAllowed:
		return http.StatusMethodNotAllowed
	case wire.CodeTooSlow:
		return http.StatusRequestTimeout
	case wire.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case wire.CodeMediaType:
		return http.StatusUnsupportedMediaType
	case wire.CodeInternal:
		return http.StatusInternalServerError
	case wire.CodeUnavailable:
		return http.StatusServiceUnavailable
	case wire.CodeDiskFull:
		return http.StatusInsufficientStorage
	}
	return http.StatusConflict
}

// asWire turns any error into the body that the peer gets.
func asWire(err error) *wire.Error {
	var known *wire.Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &wire.Error{Code: wire.CodeUnavailable, Message: "the node did not finish in time: " + err.Error(), Cure: "ask again; look at the agent's log if it stays so"}
	}
	return &wire.Error{Code: wire.CodeInternal, Message: err.Error(), Cure: "look at the agent's log; this is a fault of the agent"}
}
