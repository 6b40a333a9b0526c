package face

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/keys"
	"fieldmesh.dev/fieldmesh/internal/pause"
)

// keysEvery is how often the face checks whether its keys are still those with which it began: whoever deletes them
// takes the node from its controller at once.
const keysEvery = time.Second

// keyFiles tells the files in a folder of keys from what they were: by inode, size and time of the last change of what
// is in them. Those that are not there are zero.
type keyFiles [3]struct{ inode, modified, bytes int64 }

func keyFilesIn(dir string) (files keyFiles) {
	for i, name := range []string{"node.key", "node.crt", "authorized.json"} {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(dir, name), &st) == nil {
			files[i].inode, files[i].modified, files[i].bytes = int64(st.Ino), st.Mtim.Nano(), st.Size
		}
	}
	return files
}

// watchKeys has a change of the list on disk come into force. When the node's key is another one, or is gone, nobody is
// let in any more, and the face ends as soon as no attempt is under way: whoever started it starts it again. While
// something is wrong they are read each time: a mode or an owner that is put right changes nothing else.
func (f *Face) watchKeys(ctx context.Context, every time.Duration, underWay func() bool) error {
	var fault error
	for pause.For(ctx, every) == nil {
		if now := keyFilesIn(f.cfg.KeysDir); now != f.keyFiles || fault != nil {
			f.keyFiles = now
			before := fault
			switch fault = f.readList(); {
			case fault == nil:
				f.log.Info("whom to let in is read again")
			case before == nil || before.Error() != fault.Error():
				f.log.Warn("nobody is let in", "error", fault)
			}
		}
		if fault != nil && !underWay() {
			return fmt.Errorf("end with the keys that were there: %w", fault)
		}
	}
	return nil
}

// readList has those let in whom the disk names for this node's key. With an error that is nobody.
func (f *Face) readList() error {
	list := &keys.Authorized{}
	identity, err := keys.LoadIdentity(f.cfg.KeysDir)
	if err == nil && identity.Pin != f.pin {
		err = fmt.Errorf("this node has another key: %.12s…", identity.Pin)
	}
	f.listed.Lock()
	defer f.listed.Unlock()
	if err == nil {
		var read *keys.Authorized
		if read, err = letIn(f.cfg, f.pin, f.log); err == nil {
			list = read
		}
	}
	f.authorized.Become(list)
	return err
}
