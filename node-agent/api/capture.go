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
	k := wire.TrialKey{Trial: int(c.number("trial", 1, wire.MaxTrials, 0)),
		Attempt: int(c.number("attempt", 1, wire.MaxAttempts, 0))}
	offset, limit := c.number("offset", 0, math.MaxInt64, 0), c.number("bytes", 1, captureMost, captureDefault)
	if c.bad != nil {
		return nil, c.bad
	}
	if err := k.Validate(); err != nil { // one of them is missing
		return nil, err
	}
	data, size, err := s.node.Capture(c.run, k, int64(offset), int(limit))
	if err != nil {
		return nil, err
	}
	return part{data, size}, nil
}
