// Package attached has the photos and recordings that the notes of a run name: it fetches them from the nodes, which
// the phone's app has given them to, and says which of them an archive has.
package attached

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/internal/pause"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// Note is a note with an attachment.
type Note struct {
	wire.Header
	wire.Noted
}

// Path is where the attachment lies in the run's folder.
func (n Note) Path() string { return filepath.FromSlash(n.Attachment.Path()) }

// what is it in words.
func (n Note) what() string {
	if n.Attachment.MediaType == "image/jpeg" {
		return "photo"
	}
	return "recording"
}

// Named reports whether a record's line is that of a note with an attachment.
func Named(line []byte) bool {
	return bytes.HasPrefix(line, []byte(`{"kind":"note"`)) && bytes.Contains(line, []byte(`"attachment":{`))
}

// Notes are all of a run, each once, in the order in which the archive has them.
func Notes(a *archive.Archive) (out []Note, err error) {
	attempts, err := a.Trials()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, at := range append(attempts, archive.Attempt{}) { // the last: what belongs to no attempt
		err := a.EachLine(at.TrialKey, func(line []byte) error {
			var rec wire.Record
			if !Named(line) || rec.UnmarshalJSON(line) != nil {
				return nil
			}
			n, is := rec.Body.(*wire.Noted)
			if !is || n.Attachment == nil || n.Attachment.Validate() != nil || seen[rec.Node+"/"+n.ID] {
				return nil
			}
			seen[rec.Node+"/"+n.ID] = true
			out = append(out, Note{rec.Header, *n})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read notes: %w", err)
		}
	}
	return out, nil
}

// Node is one that may have attachments.
type Node interface {
	Attachment(ctx context.Context, sha256 string) (wire.AttachmentHeld, error)
	AttachmentData(ctx context.Context, sha256 string, offset int64, limit int) (data []byte, err error)
	Archived(ctx context.Context, sha256 string) (wire.AttachmentHeld, error)
}

const (
	// pieceBytes is what a slow control link carries within a call's time.
	pieceBytes = 256 << 10
	// growing is for how long a node is waited for to which a phone gives nothing more.
	growing = 10 * time.Second
)

// Lacking is what an archive does not have, and why.
type Lacking struct {
	Note Note
	Err  error
}

func (l Lacking) String() string {
	return fmt.Sprintf("the %s %q of node %s: %v", l.Note.what(), l.Note.Text, l.Note.Node, l.Err)
}

// Fetch fetches from the nodes what the archive does not have, from all at once, and tells them what it has: they let
// it go then. A phone that is just giving a node the rest is waited for.
func Fetch[N Node](ctx context.Context, a *archive.Archive, nodes map[string]N) (lacking []Lacking, err error) {
	return fetch(ctx, a, nodes, growing)
}

func fetch[N Node](ctx context.Context, a *archive.Archive, nodes map[string]N,
	wait time.Duration) (lacking []Lacking, err error) {
	notes, err := Notes(a)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var asked sync.WaitGroup
	for name, node := range nodes {
		asked.Go(func() {
			wait := wait
			for _, n := range notes {
				if n.Node != name {
					continue
				}
				err := one(ctx, a, node, *n.Attachment, wait)
				if errors.Is(err, errNotDelivered) {
					wait = 0 // the phone is away, for the others too
				}
				if err != nil {
					mu.Lock()
					lacking = append(lacking, Lacking{n, err})
					mu.Unlock()
				}
			}
		})
	}
	asked.Wait()
	return lacking, nil
}

// one fetches one, and tells the node.
func one(ctx context.Context, a *archive.Archive, node Node, t wire.Attachment, wait time.Duration) error {
	if _, whole := a.FileHeld(t.Path()); whole {
		if h, err := node.Attachment(ctx, t.SHA256); err != nil || h.Archived {
			return nil // it is here; what the node keeps of it, it is told another time
		}
		_, err := node.Archived(ctx, t.SHA256)
		return err
	}
	if err := awaitWhole(ctx, node, t, wait); err != nil {
		return err
	}
	for again := true; ; again = false {
		if err := copyBytes(ctx, a, node, t); err != nil {
			return err
		}
		err := a.CloseFile(t.Path(), t.SHA256)
		if err == nil {
			break
		}
		if !again || !errors.Is(err, archive.ErrOtherCapture) { // what a former call left may be at fault
			return err
		}
	}
	_, err := node.Archived(ctx, t.SHA256)
	return err
}

var errNotDelivered = errors.New("the phone has not delivered it yet")

// awaitWhole waits for as long as a phone gives a node more of an attachment.
func awaitWhole(ctx context.Context, node Node, t wire.Attachment, wait time.Duration) error {
	held, grew := -1, time.Now()
	for {
		h, err := node.Attachment(ctx, t.SHA256)
		switch {
		case err != nil:
			return err
		case h.Archived:
			return errors.New("another archive has it, and the node no longer does")
		case h.HeldBytes == t.Bytes:
			return nil
		case h.HeldBytes != held:
			held, grew = h.HeldBytes, time.Now()
		case time.Since(grew) > wait:
			return fmt.Errorf("%w: %d of %d bytes", errNotDelivered, held, t.Bytes)
		}
		if err := pause.For(ctx, min(500*time.Millisecond, wait/4)); err != nil {
			return err
		}
	}
}

func copyBytes(ctx context.Context, a *archive.Archive, node Node, t wire.Attachment) error {
	for {
		held, _ := a.FileHeld(t.Path())
		if held >= int64(t.Bytes) {
			return nil
		}
		data, err := node.AttachmentData(ctx, t.SHA256, held, pieceBytes)
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return fmt.Errorf("the node's file ends at byte %d of %d", held, t.Bytes)
		}
		if err := a.AppendFile(t.Path(), data); err != nil {
			return err
		}
	}
}

// Verify is archive.Verify, which knows no notes; where all is as it was written, it holds the files against the notes
// that name them, too.
func Verify(dir string) ([]archive.Finding, error) {
	findings, err := archive.Verify(dir)
	if err != nil || len(archive.Altered(findings)) > 0 {
		return findings, err
	}
	a, err := archive.Read(dir)
	if err != nil {
		return nil, err
	}
	notes, err := Notes(a)
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		found := archive.Finding{Path: n.Attachment.Path()}
		switch sum, err := sumOf(filepath.Join(dir, n.Path())); {
		case errors.Is(err, os.ErrNotExist):
			found.Problem, found.Detail = archive.Unfinished, fmt.Sprintf("the %s %q has not come from node %s; "+
				"`fieldmesh pull` fetches it once the phone has delivered it there", n.what(), n.Text, n.Node)
		case err != nil:
			found.Problem, found.Detail = archive.Unreadable, err.Error()
		case sum != n.Attachment.SHA256:
			found.Problem, found.Detail = archive.Changed, "it is not what the note named"
		default:
			continue
		}
		findings = append(findings, found)
	}
	return findings, nil
}

func sumOf(path string) (_ string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}
