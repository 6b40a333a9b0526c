package report

import (
	"fmt"

	"fieldmesh.dev/fieldmesh/controller/report/evidence"
)

// markView is one line of what was noted on the way.
type markView struct {
	When, Where, Text, By string
	Path                  string // of its photo or recording, from the run's folder; empty: none
	Photo, Here, Alone    bool   // Alone: the report is not in that folder
}

func viewMarks(d *evidence.Run) (any, error) {
	var out []markView
	for _, m := range d.Marks {
		v := markView{When: "–", Where: "no attempt known", Text: m.Text, By: m.By + ", " + m.Node, Here: m.Here,
			Alone: d.Alone}
		if !m.Wall.IsZero() {
			v.When = m.Wall.UTC().Format("15:04:05")
		}
		if m.Trial > 0 {
			v.Where = fmt.Sprintf("trial %d.%d", m.Trial, m.Attempt)
		}
		if m.Attachment != nil {
			v.Path, v.Photo = m.Attachment.Path(), m.Attachment.MediaType == "image/jpeg"
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}
