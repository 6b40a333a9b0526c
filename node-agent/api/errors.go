package api

import (
	"context"
	"errors"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// asWire turns any error into the body that the peer gets.
func asWire(err error) *wire.Error {
	var known *wire.Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &wire.Error{Code: wire.CodeUnavailable, Message: "the node did not finish in time: " + err.Error(),
			Cure: "ask again; look at the agent's log if it stays so"}
	}
	return &wire.Error{Code: wire.CodeInternal, Message: err.Error(), Cure: "look at the agent's log; this is a " +
		"fault of the agent"}
}
