// Package report writes a run as one self-contained HTML file: an explicit list
// of sections over the metrics table. It computes intervals and the comparison
// of factors; the numbers themselves come from package metrics.
package report

import (
	"errors"
	"io"

	"fieldmesh.dev/fieldmesh/controller/archive"
)

// Write writes the report of a run. The archive is only read.
func Write(a *archive.Archive, w io.Writer) error { return errors.New("not built yet") }
