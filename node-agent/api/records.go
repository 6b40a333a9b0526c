package api

import (
	"context"
	"errors"
	"math"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	recordsDefault = 1000
	recordsMost    = 10000
)

// page is an answer of records: NDJSON, with its place in the headers.
type page struct {
	epoch string
	last  uint64 // the newest record in it; what was asked for when it is empty
	lines [][]byte
}

func (s *Server) readRecords(c *call) (any, error) {
	after, limit := c.number("after", 0, math.MaxInt64, 0), c.number("limit", 1, recordsMost, recordsDefault)
	wait := c.wait()
	if c.bad != nil {
		return nil, c.bad
	}
	epoch := s.records.Position().Epoch
	if c.query.Has("epoch") {
		asked := c.query.Get("epoch")
		if err := wire.CheckEpoch(asked); err != nil {
			return nil, err
		}
		if asked != epoch {
			after = 0 // a new spool: its numbers say nothing about the old one's
		}
	}
	lines, last, err := s.records.Read(after, int(limit))
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 && wait > 0 {
		ctx, cancel := context.WithTimeout(c.poll, wait)
		defer cancel()
		if err := s.records.Wait(ctx, after); err != nil && !errors.Is(err, ctx.Err()) {
			return nil, err
		}
		if lines, last, err = s.records.Read(after, int(limit)); err != nil {
			return nil, err
		}
	}
	return page{epoch: epoch, last: max(last, after), lines: lines}, nil
}

func (s *Server) confirm(_ *call, p wire.Confirmation) (any, error) {
	newest := s.records.Position()
	if p.Epoch != newest.Epoch {
		return nil, &wire.Error{Code: wire.CodeEpochChanged, Message: "the spool's epoch is " + newest.Epoch +
			", not " + p.Epoch, Cure: "read the records of the present epoch from their beginning"}
	}
	if p.Seq > newest.Seq {
		return nil, wire.Errorf(wire.CodeConflict, "record %d is not written yet; the newest is %d", p.Seq, newest.Seq)
	}
	confirm := func() error { return s.records.Confirm(p) }
	if p.Over && p.Seq == 0 { // nobody has collected anything, nor will
		if err := s.node.Forget(p.Run, confirm); err != nil {
			return nil, err
		}
	} else if err := confirm(); err != nil {
		return nil, err
	}
	return s.records.Status(), nil
}
