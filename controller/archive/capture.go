package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fieldmesh.dev/fieldmesh/internal/durable"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// A capture or an attachment comes in parts. Until it is whole, and is the one that the node's
// record reported, its name says that it is not.
const (
	captureDir    = "captures"
	captureSuffix = ".pcapng"
	partSuffix    = ".part"
	attachmentDir = "attachments" // by wire.Attachment.Path
)

// CapturePath is where the capture of an attempt on a node is, in the run's folder.
func CapturePath(k wire.TrialKey, node string) string {
	return filepath.Join(trialDir(k), captureDir, node+captureSuffix)
}

// CaptureHeld reports how many bytes of a node's capture are on disk, and
// whether it is whole.
func (a *Archive) CaptureHeld(k wire.TrialKey, node string) (bytes int64, whole bool) {
	return a.FileHeld(CapturePath(k, node))
}

// FileHeld does so of a file that comes in parts, by its path in the run's folder.
func (a *Archive) FileHeld(rel string) (bytes int64, whole bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.disk.exists(rel) {
		return a.disk.size(rel), true
	}
	return a.disk.size(rel + partSuffix), false
}

// AppendCapture adds to what is held of a node's capture. When it returns nil,
// that is on disk.
func (a *Archive) AppendCapture(k wire.TrialKey, node string, data []byte) error {
	if !nodeName.MatchString(node) {
		return fmt.Errorf("append capture of %q: not a node's name", node)
	}
	return a.AppendFile(CapturePath(k, node), data)
}

// AppendFile does so of a file that comes in parts. The path is not looked at.
func (a *Archive) AppendFile(rel string, data []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.writable()
	if err == nil {
		_, err = a.disk.append(rel+partSuffix, data)
	}
	if err != nil {
		return fmt.Errorf("append to %s: %w", rel, err)
	}
	return nil
}

// ErrOtherCapture says that what came is not what the node reported.
var ErrOtherCapture = errors.New("its SHA-256 is not the one that the node recorded")

// CloseCapture makes a node's capture whole, if it is the one with this
// SHA-256; otherwise what is held of it is thrown away, and the error is
// ErrOtherCapture.
func (a *Archive) CloseCapture(k wire.TrialKey, node, sha256 string) error {
	return a.CloseFile(CapturePath(k, node), sha256)
}

// CloseFile does so of a file that comes in parts.
func (a *Archive) CloseFile(rel, sha256 string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.writable(); err != nil {
		return fmt.Errorf("close %s: %w", rel, err)
	}
	sum, _, err := a.disk.sum(rel + partSuffix)
	if err != nil {
		return fmt.Errorf("close %s: %w", rel, err)
	}
	if sum != sha256 {
		return errors.Join(fmt.Errorf("close %s: %w", rel, ErrOtherCapture), a.disk.remove(rel+partSuffix))
	}
	if _, err := a.disk.ask("rename", rel, 0); err != nil {
		return err
	}
	if err := os.Rename(a.disk.path(rel+partSuffix), a.disk.path(rel)); err != nil {
		return fmt.Errorf("close %s: %w", rel, err)
	}
	return durable.Folder(filepath.Dir(a.disk.path(rel)))
}

// OpenCapture opens a node's capture of an attempt; fs.ErrNotExist says that
// there is none.
func (a *Archive) OpenCapture(k wire.TrialKey, node string) (*os.File, error) {
	f, err := os.Open(a.disk.path(CapturePath(k, node)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("open capture of %q: %w", node, err)
	}
	return f, nil
}
