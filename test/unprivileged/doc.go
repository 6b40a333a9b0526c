// Package unprivileged holds the tests of agents without root (`privileges: none`): they
// run as an ordinary user without any capability, one of them with no more of the kernel
// than Android leaves to an app. It has no code of its own.
package unprivileged
