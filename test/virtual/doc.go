// Package virtual holds tests of rehearsals in virtual time, as an unprivileged
// user has them: beside busy processors nothing is late and every trial is
// accepted; the same seed gives the same archive; whatever is killed, --resume
// goes on, and nothing is left behind. It has no code of its own.
package virtual
