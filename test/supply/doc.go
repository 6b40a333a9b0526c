// Package supply holds tests of what builds take from elsewhere: that nothing else than what is pinned comes into them,
// that Gradle would take no other versions than Maven, that the tools of the app's scripts are installed, and that its
// long build leaves out nothing of the everyday one. There is nothing in it to import.
package supply
