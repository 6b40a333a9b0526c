// Package fuzz puts made-up input to every parser that reads from outside.
//
// Go's own fuzzer looks for inputs that reach new code, at some ten thousand a second.
// Run lets the same targets be tried with far more: what that fuzzer kept is changed at
// random, without its instruments, as fast as the parser reads.
package fuzz
