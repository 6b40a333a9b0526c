// Package virtual runs a program in virtual time: in a Linux kernel that is
// itself an ordinary process of this machine (User-mode Linux), whose clock
// stands still while anything runs and jumps to the next timer when all are
// idle. Whatever else the machine does, it makes nothing late in it.
//
// Launch starts the kernel, as any user, on one processor; Boot is the first
// process in it. The program sees this machine's files, read-only, and folders
// of its own where it may write; one folder of this machine is writable. It has
// no network but its own. When the kernel ends, however it ends, everything in
// it is gone.
//
// How a rehearsal is driven, and what its archive holds, are other packages'
// business.
package virtual
