package wire

import (
	"encoding/base64"
	"strings"
)

// Attachment is a photo or a recording that belongs to a note. Its bytes travel apart from the note, in pieces.
type Attachment struct {
	MediaType string `json:"media_type" words:"mediaTypes"`              // what it is
	Bytes     int    `json:"bytes" unit:"B" min:"1" max:"MaxAttachment"` // its size
	SHA256    string `json:"sha256" form:"shaForm"`                      // of all its bytes, which names it
}

// MaxAttachment is the most bytes that an attachment has: a photo of 1600 pixels has a third of them, a minute of
// speech an eighth.
const MaxAttachment = 2 << 20

// AttachmentPiece is how many bytes of an attachment travel at once, at most.
const AttachmentPiece = 48 << 10

// maxPieceText is the same in base64.
const maxPieceText = AttachmentPiece / 3 * 4

// mediaTypes are what phones attach.
func mediaTypes() []string { return []string{"image/jpeg", "audio/mp4"} }

// Path is where an attachment lies in a run's folder; its own name says what it holds.
func (a Attachment) Path() string {
	return "attachments/" + a.SHA256 + map[string]string{"image/jpeg": ".jpg", "audio/mp4": ".m4a"}[a.MediaType]
}

// Validate refuses what is none.
func (a Attachment) Validate() error { return check("", &a) }

// AttachmentPut are the next bytes of an attachment that a note has named.
type AttachmentPut struct {
	SHA256 string `json:"sha256" form:"shaForm"`
	Offset int    `json:"offset" min:"0" max:"MaxAttachment"` // of the first byte: all before it are held
	// base64, RFC 4648 section 4, of at most 48 KiB
	Data string `json:"data" min:"4" max:"maxPieceText"`
}

// Validate refuses what is no piece.
func (p AttachmentPut) Validate() error {
	if err := check("", &p); err != nil {
		return err
	}
	_, err := p.Bytes()
	return err
}

// Bytes are the piece's bytes.
func (p AttachmentPut) Bytes() ([]byte, error) {
	data, err := base64.StdEncoding.Strict().DecodeString(p.Data)
	if err != nil || len(data) == 0 || strings.ContainsAny(p.Data, "\r\n") {
		return nil, Errorf(CodeBadRequest, "data: not base64")
	}
	return data, nil
}

// AttachmentName names an attachment.
type AttachmentName struct {
	SHA256 string `json:"sha256" form:"shaForm"`
}

// Validate refuses what names none.
func (n AttachmentName) Validate() error { return check("", &n) }

// AttachmentHeld is how much of an attachment a node holds.
type AttachmentHeld struct {
	SHA256    string `json:"sha256"`
	Bytes     int    `json:"bytes"`      // of the whole
	HeldBytes int    `json:"held_bytes"` // on the node's disk; as many as bytes: whole, and checked
	Archived  bool   `json:"archived"`   // a controller's archive has it, and the node no longer does
}
