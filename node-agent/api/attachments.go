package api

import (
	"errors"
	"math"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Attachments are the photos and recordings of notes. All but the last is refused while an attempt is under way.
type Attachments interface {
	Attachment(sha256 string) (wire.AttachmentHeld, error)
	PutAttachment(sha256 string, offset int, data []byte) (wire.AttachmentHeld, error)
	// AttachmentData gives at most limit bytes of a whole one from an offset on, and its size.
	AttachmentData(sha256 string, offset int64, limit int) (data []byte, size int64, err error)
	// Archived lets one go that an archive has.
	Archived(sha256 string) (wire.AttachmentHeld, error)
}

// attachmentLimit is a piece in base64, and what is around it.
const attachmentLimit = 128 << 10

func (c *call) sha256() (string, error) {
	n := wire.AttachmentName{SHA256: c.query.Get("sha256")}
	return n.SHA256, n.Validate()
}

func (s *Server) attachment(c *call) (any, error) {
	sha, err := c.sha256()
	if err != nil {
		return nil, err
	}
	return s.node.Attachment(sha)
}

func (s *Server) putAttachment(_ *call, p wire.AttachmentPut) (any, error) {
	data, err := p.Bytes()
	if err != nil {
		return nil, err
	}
	return s.node.PutAttachment(p.SHA256, p.Offset, data)
}

func (s *Server) attachmentData(c *call) (any, error) {
	offset, limit := c.number("offset", 0, math.MaxInt64, 0), c.number("bytes", 1, captureMost, captureDefault)
	sha, err := c.sha256()
	if c.bad != nil || err != nil {
		return nil, errors.Join(c.bad, err)
	}
	data, size, err := s.node.AttachmentData(sha, int64(offset), int(limit))
	if err != nil {
		return nil, err
	}
	return part{data, size}, nil
}

func (s *Server) archived(_ *call, n wire.AttachmentName) (any, error) {
	return s.node.Archived(n.SHA256)
}
