package version

import "runtime"

// Build is String with what made the program and what for, as --version says
// it: "0.1.0 (commit 1a2b3c4d5e6f of 2026-11-21T05:25:32Z, go1.26.8, linux/arm64)".
func Build() string {
	of := ""
	if Date != "" {
		of = " of " + Date
	}
	return Version + " (commit " + Commit + of + ", " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH +
		")"
}
