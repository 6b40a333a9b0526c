// Package imports holds the rules on which package may import which, as a
// test. It has no code of its own.
package imports
