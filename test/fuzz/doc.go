// Package fuzz holds the test that puts made-up input to every parser that
// reads from outside. There is nothing in it to import.
package fuzz
