// Package android holds the tests of the agent on a phone, rooted or as it is sold. The phone
// is emulated, as far as the agent can see: the routing rules of each version's netd, Android's folders
// and programs and nothing of a Debian system's, Termux's user, a `su` of Magisk's and
// of KernelSU's manner, real runit, and the very scripts of the package. What only a phone can
// show stays out: radios, SELinux, the system's own killing of processes. It has
// no code of its own.
package android
