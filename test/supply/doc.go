// Package supply holds tests of what builds fetch from elsewhere: that nothing else than
// what is pinned comes into them, and that Gradle would take no other versions than Maven. There is nothing in it to
// import.
package supply
