// Package packaging holds what `make dist` puts into packages, and the tests of
// them. There is nothing in it to import.
package packaging
