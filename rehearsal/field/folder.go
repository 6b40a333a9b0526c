package field

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
)

// How long the names of folders may be, in bytes. Nodes have sockets far below,
// whose paths have at most 107 bytes (unix(7)), and a run's name and a node's may
// be longer. With these, they fit below the default folder of the fields.
const (
	folderMost     = 12
	nodeFolderMost = 20
)

// Folder is the folder of a run's fields below dir. It bears the run's name; of a
// long one, the beginning and a part of its hash.
func Folder(dir, run string) string { return filepath.Join(dir, short(run, folderMost)) }

// nodeFolder is a node's folder in the field's, named in the same way.
func nodeFolder(dir, node string) string {
	return filepath.Join(dir, "nodes", short(node, nodeFolderMost))
}

func short(name string, most int) string {
	const hashed = 8 // hexadecimal digits
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:most-hashed-1] + "-" + hex.EncodeToString(sum[:])[:hashed]
}
