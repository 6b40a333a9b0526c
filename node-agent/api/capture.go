package api

import (
	"math"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	captureDefault = 1 << 20
	captureMost    = 4 << 20
)

// part is an answer of bytes of a file, with the file's size in its headers.
type part struct {
	data []byte
	size int64
}

func (s *Server) capture(c *call) (any, error) {
	trial, err := c.number("trial", 1, wire.MaxTrials, 0)
	if err != nil {
		return nil, err
	}
	attempt, err := c.number("attempt", 1, wire.MaxAttempts, 0)
	if err != nil {
		return nil, err
	}
	offset, err := c.number("offset", 0, math.MaxInt64, 0)
	if err != nil {
		return nil, err
	}
	limit, err := c.number("bytes", 1, captureMost, captureDefault)
	if err != nil {
		return nil, err
	}
	k := wire.TrialKey{Trial: int(trial), Attempt: int(attempt)}
	if err := k.Validate(); err != nil { // one of them is missing
		return nil, err
	}
	data, size, err := s.node.Capture(c.run, k, int64(offset), int(limit))
	if err != nil {
		return nil, err
	}
	return part{data, size}, nil
}
