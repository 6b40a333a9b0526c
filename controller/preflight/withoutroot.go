package preflight

import (
	"slices"

	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// What is said of a need that only root can meet.
const (
	noRoot   = "its agent runs without root, which "
	haveRoot = "run the agent as root there (`privileges: root` in its configuration)"
)

// withoutRoot reports whether the node changes nothing.
func (j *judge) withoutRoot() bool { return j.st.Privileges == wire.NoPrivileges }

// capture is a need that every agent with root meets.
func (j *judge) capture() {
	if j.withoutRoot() && slices.ContainsFunc(j.trials, func(t wire.Trial) bool { return t.Capture != nil }) {
		j.unmet("capture", "the plan has packets captured, and "+noRoot+"may not",
			"leave `capture` out of the campaign; or "+haveRoot)
	}
}
