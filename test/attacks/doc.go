// Package attacks holds tests that attack the real programs: what they refuse,
// that they log it, and that they go on working. SECURITY.md lists all attacks
// with their tests, those of single packages too: its table is written from the
// tests' own words. There is nothing in it to import.
package attacks
