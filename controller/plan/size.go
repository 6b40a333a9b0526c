package plan

import (
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// How large a run's archive may be, so that it can be read again within bounded memory.
// Whoever writes an archive keeps to it.
const (
	// FilesMost bounds the files and folders that are the record of a run.
	FilesMost = 1_000_000
	// AttemptsMost bounds the attempts at all trials.
	AttemptsMost = 90_000
	// filesPlanned leaves a tenth for records that come after their attempt was sealed.
	filesPlanned = FilesMost / 10 * 9
	// attemptsEach is for how many attempts at each trial, one with another, a run has to
	// have room, where it may have as many: a run may lose every second. One that is full
	// ends, with the reason, and can be read.
	attemptsEach = 2
)

// FilesOfAttempt is the most files and folders that an attempt at a trial comes to.
func FilesOfAttempt(t wire.Trial) int {
	nodes := len(t.Nodes())
	n := 1 + 3                // its folder; plan, verdict, manifest
	n += 1 + nodes + 1        // records, the emulated field's too
	n += 1 + nodes            // provenance
	n += 1 + 2*len(t.Traffic) // what both ends of iperf3 print
	if t.Capture != nil {
		n += 1 + nodes
	}
	return n
}

// AttemptsInAll is how many attempts at all trials an archive has room for, where the
// campaign allows more; 0: it has room for all.
func (c *Campaign) AttemptsInAll() int {
	if room := attemptsRoom(c.trials); room < len(c.trials)*c.AttemptsMax {
		return room
	}
	return 0
}

// attemptsRoom is how many attempts an archive has room for, if each trial has as many
// as any other.
func attemptsRoom(trials []wire.Trial) int {
	files := 0
	for _, t := range trials {
		files += FilesOfAttempt(t)
	}
	return min(AttemptsMost, filesPlanned*len(trials)/max(files, 1))
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
	room := attemptsRoom(trials)
	if room >= len(trials)*each {
		return nil
	}
	var f tree.Findings
	f.Add(c.repetitionsAt, "design.repetitions: the archive of a run has room for %d attempts at trials as large as "+
		"these, and %d trials may need %d each; allowed: fewer repetitions, levels or nodes, a smaller scale, or a "+
		"shard at a time", room, len(trials), each)
	return f.Problems(c.Path, 0)
}
