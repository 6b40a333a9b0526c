// Package bench measures the goals of speed and size, each beside its reference
// in the same run: `make bench` prints them as one table. It judges nothing: a
// goal that is missed on a busy machine is a figure, not a failed test. It has
// no code of its own.
package bench
