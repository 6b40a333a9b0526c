package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"fieldmesh.dev/fieldmesh/controller/archive/nodelog"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// FromLogs makes a run without trials, and finishes it, of logs that nodes kept by
// themselves: files of the phone app, and folders of `fieldmesh-agent log`. made
// is the version that it bears. Every log is looked through
// before, so that one that cannot be taken leaves no run behind. told is called
// with what came of each.
func FromLogs(dir, name, made string, paths []string, told func(Log) error) (err error) {
	logs := make([]Log, len(paths))
	for i, path := range paths {
		logs[i].path = path
		take := func(line []byte) error { _, err := logs[i].take(line); return err }
		if err := nodelog.Lines(path, lineMost, take); err != nil {
			return fmt.Errorf("collect %q: %w", path, err)
		}
		if len(logs[i].nodes) == 0 {
			return fmt.Errorf("collect %q: it is empty: no log of the phone app and none of fieldmesh-agent", path)
		}
	}
	info := RunInfo{Run: name, Campaign: "log", CreatedWall: time.Now().UTC(),
		Version: made, Place: PlaceLog,
		CampaignRaw: []byte("# There was no campaign: nodes logged by themselves.\n"),
		Plan:        wire.RunPlan{Run: name, Campaign: "log"}}
	return createWhole(dir, info, func(a *Archive) error {
		for _, l := range logs {
			if err := l.store(a); err != nil {
				return fmt.Errorf("collect %q: %w", l.path, err)
			}
			if err := told(l); err != nil {
				return err
			}
		}
		return a.Finish()
	})
}

// Log is what came of one log.
type Log struct {
	path         string
	nodes        []string
	records, bad int // lines
}

func (l Log) String() string {
	text := fmt.Sprintf("%s: %d records of %v", l.path, l.records, l.nodes)
	if l.bad > 0 {
		text += fmt.Sprintf("; %d lines are not records and are set aside in between/%s.unreadable", l.bad, l.nodes[0])
	}
	return text
}

// logLinesAtOnce bounds what is held of a log.
const logLinesAtOnce = 5000

// store appends a log's lines to the archive, which sets those aside that are
// not records.
func (l Log) store(a *Archive) error {
	again := Log{nodes: l.nodes[:1:1]}
	batch, held := map[string][][]byte{}, 0
	flush := func() error {
		for node, lines := range batch {
			if err := a.Append(node, lines); err != nil {
				return err
			}
		}
		batch, held = map[string][][]byte{}, 0
		return nil
	}
	err := nodelog.Lines(l.path, lineMost, func(line []byte) error {
		node, err := again.take(line)
		if err != nil {
			return err
		}
		batch[node] = append(batch[node], line)
		if held++; held < logLinesAtOnce {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// take looks whose line it is, and counts it. A record that bears a run belongs
// to that run's archive, where its node brings it.
func (l *Log) take(line []byte) (node string, err error) {
	var r wire.Record
	err = json.Unmarshal(line, &r)
	switch {
	case err == nil && r.Run != "":
		return "", fmt.Errorf("it holds records of run %q: fieldmesh pull brings those from their node", r.Run)
	case err == nil && !isNodeName(r.Node):
		return "", fmt.Errorf("it names node %.80q, which is not a node's name", r.Node)
	case err == nil && r.Epoch != "" && r.Seq > 0:
		l.records++
		if !slices.Contains(l.nodes, r.Node) {
			l.nodes = append(l.nodes, r.Node)
		}
		return r.Node, nil
	case len(l.nodes) == 0:
		return "", errors.New("its first line is not a record: name a log of the phone app, or the folder of one " +
			"that `fieldmesh-agent log` kept")
	}
	l.bad++
	return l.nodes[0], nil
}
