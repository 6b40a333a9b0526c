/*
 * Android ends an app that calls accept: its own libc makes it of accept4, and its filter
 * of system calls has what its own libc makes (SYSCALLS.TXT of bionic). musl makes accept4
 * without flags of accept.
 */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
	return (int)syscall(SYS_accept4, fd, address, length, 0);
}
