package version

import "time"

// Date is when the build's commit was made, RFC 3339; set at link time.
var Date = ""

// since is before any build of these programs.
var since = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Built is when this build's commit was made; of a build that does not know, a
// time before every build. A clock that shows an earlier time has not been set.
func Built() time.Time {
	if at, err := time.Parse(time.RFC3339, Date); err == nil && at.After(since) {
		return at.UTC()
	}
	return since
}
