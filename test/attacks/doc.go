// Package attacks holds tests that attack the real programs: what they refuse,
// that they log it, and that they go on working. SECURITY.md lists all attacks
// with their tests, those of single packages too. There is nothing in it to import.
package attacks
