package plan

import (
	"fieldmesh.dev/fieldmesh/controller/plan/room"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// attemptsEach is for how many attempts at each trial, one with another, a run has to have
// room, where it may have as many: a run may lose every second. One that is full ends, with
// the reason, and can be read.
const attemptsEach = 2

// AttemptsInAll is how many attempts at all trials an archive has room for, where the
// campaign allows more; 0: it has room for all.
func (c *Campaign) AttemptsInAll() int {
	if most := room.Attempts(c.trials); most < len(c.trials)*c.AttemptsMax {
		return most
	}
	return 0
}

// checkSize refuses a campaign of more trials than a node takes. One of a run that was
// driven is taken as it is.
func (p *parse) checkSize(root *tree.Node, trials []wire.Trial) {
	if n := len(trials); n > wire.MaxTrials && !p.archived {
		p.findings.Add(root.Lookup("design.repetitions").At, "design.repetitions: %d trials with those of the "+
			"calibration are not allowed; allowed: at most %d", n, wire.MaxTrials)
	}
}

// Room says what is wrong if the archive of a run that drives those trials of the campaign
// for which drives is true has no room for them; none: it has.
func (c *Campaign) Room(drives func(trial int) bool) tree.Problems {
	var trials []wire.Trial
	for _, t := range c.trials {
		if drives(t.Number) {
			trials = append(trials, t)
		}
	}
	each := min(c.AttemptsMax, attemptsEach)
	most := room.Attempts(trials)
	if most >= len(trials)*each {
		return nil
	}
	var f tree.Findings
	f.Add(c.repetitionsAt, "design.repetitions: the archive of a run has room for %d attempts at trials as large as "+
		"these, and %d trials may need %d each; allowed: fewer repetitions, levels or nodes, a smaller scale, or a "+
		"shard at a time", most, len(trials), each)
	return f.Problems(c.Path, 0)
}
