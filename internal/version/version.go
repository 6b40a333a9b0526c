// Package version is what both programs say they are. The linker sets it (see
// the Makefile); it holds nothing else.
package version

// Version and Commit are set at link time; these stand for a plain `go build`.
var (
	Version = "0.1.0-dev"
	Commit  = "unknown"
)

// String is version and commit as provenance and --version show them, e.g.
// "0.1.0 (commit 1a2b3c4d5e6f)".
func String() string { return Version + " (commit " + Commit + ")" }
