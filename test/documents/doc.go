// Package documents holds tests of the project's pages: what they tell a reader
// to type exists. There is nothing in it to import.
//
//go:generate go test -run "^TestTheReferenceIsCurrent$|^TestPapersPagesAreCurrent$" . -update
package documents
