package traffic

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

const (
	// streamBytes is the file that iperf3 maps for each stream: one block,
	// 128 KiB for TCP (DEFAULT_TCP_BLKSIZE). A disk too full to hold it ends
	// iperf3 by SIGBUS in the midst of a test.
	streamBytes = 128 << 10

	folderBegin = "iperf3-"
)

// folder makes a temporary folder for one iperf3.
func (g Generator) folder() (string, error) {
	err := os.MkdirAll(g.Folder, 0o700)
	name := ""
	if err == nil {
		name, err = os.MkdirTemp(g.Folder, folderBegin) // 0700
	}
	if err != nil {
		return "", fmt.Errorf("make a temporary folder for iperf3: %w: give the agent's user a folder %s in which it "+
			"can write", err, g.Folder)
	}
	return name, nil
}

// Ready says what would keep iperf3 from running the flow here: it is not
// there, cannot bind its sockets as the agent began with, or has no place for its
// streams' files.
func (g Generator) Ready(f wire.Flow) error {
	if err := checkBinary(g.Bin); err != nil {
		return err
	}
	if g.Bound != "" && g.Before310() {
		return fmt.Errorf("bind iperf3's sockets to an interface: %s is older than 3.10 and cannot: restart the "+
			"agent, which then binds none, or install iperf3 3.10 or newer before", g.Bin)
	}
	name, err := g.folder()
	if err != nil {
		return err
	}
	need := streamBytes * max(f.Streams, 1)
	err = os.WriteFile(filepath.Join(name, "room"), make([]byte, need), 0o600)
	if err := errors.Join(err, os.RemoveAll(name)); err != nil {
		return fmt.Errorf("write %d bytes for iperf3's streams: %w: free disk space in %s", need, err, g.Folder)
	}
	return nil
}

// Sweep removes the folders that agents which were killed have left.
func (g Generator) Sweep() error {
	left, err := os.ReadDir(g.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range left {
		if strings.HasPrefix(e.Name(), folderBegin) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(g.Folder, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("remove what iperf3 left: %w", err)
	}
	return nil
}
