// Package metrics turns an archive into one long table of numbers, each with
// its unit and its definition, and into a timeline per attempt. It draws no
// conclusions; the report does.
package metrics

import (
	"errors"
	"io"

	"fieldmesh.dev/fieldmesh/controller/archive"
)

// Row is one number of one attempt. Flow is empty for a number of the whole
// attempt.
type Row struct {
	Run        string
	Trial      int
	Attempt    int
	Flow       string
	Name       string
	Unit       string
	Value      float64
	Definition string
}

var errTODO = errors.New("not built yet")

// Table computes the rows of every attempt of an archive.
func Table(a *archive.Archive) ([]Row, error) { return nil, errTODO }

// WriteCSV writes rows with a header line.
func WriteCSV(w io.Writer, rows []Row) error { return errTODO }
