package confine

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// architectures are those of the kernel's names (linux/audit.h) that programs are
// made for. Their system calls take arguments one by one, and their words begin with
// the low byte.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64,
	"arm": unix.AUDIT_ARCH_ARM, "riscv64": unix.AUDIT_ARCH_RISCV64}

// refused are system calls that neither the face nor iperf3 and chronyc make: that
// look into other processes, start what is no file, mount, have namespaces, keys or
// modules, or reach the kernel by another way than the filter sees. Without root the face
// reaches iperf3's sockets by pidfd_getfd; Landlock leaves it those of no program but its own.
var refused = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP,
	unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_MEMFD_CREATE, unix.SYS_EXECVEAT,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT, unix.SYS_MOUNT, unix.SYS_UMOUNT2,
	unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG, unix.SYS_PERSONALITY,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

const (
	// Where struct seccomp_data has them (linux/seccomp.h).
	atNumber, atArchitecture, atArguments = 0, 4, 16
	// x32 marks the numbers of an amd64 kernel's other calls (asm/unistd.h).
	x32 = 0x40000000
	// objectInfo is BPF_OBJ_GET_INFO_BY_FD (linux/bpf.h), by which the ring buffer of
	// TCP's events is asked for its size.
	objectInfo = 15

	namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
)

// families are the sockets that the face opens, and netlinks what it asks of the
// kernel: interfaces and routes, TCP's sockets, and the radio.
var (
	families = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	netlinks = []uint32{unix.NETLINK_ROUTE, unix.NETLINK_INET_DIAG, unix.NETLINK_GENERIC}
)

// filters returns why the kernel takes no filter of this kind, and sets none: a filter
// that lies nowhere is a bad address only where the kernel would look at it.
func filters() error {
	if _, known := architectures[runtime.GOARCH]; !known {
		return errors.New("there is no filter for " + runtime.GOARCH)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, 0)
	if errno != unix.EFAULT {
		return errno
	}
	return nil
}

// filtered has the kernel refuse this process, all its threads and what it starts the
// calls of refused. takes says that it may take descriptors of its own children's.
func filtered(takes bool) error {
	architecture, known := architectures[runtime.GOARCH]
	if !known {
		return errors.New("there is no filter for " + runtime.GOARCH)
	}
	raw, err := bpf.Assemble(filter(architecture, takes))
	if err != nil {
		return fmt.Errorf("assemble the filter: %w", err)
	}
	program := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		program[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	of := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	runtime.LockOSThread() // whose bit the other threads take with the filter
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give privileges up for good: %w", err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&of)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return fmt.Errorf("set the filter: %w", errno)
	}
	return nil
}

// filter is the program: each part ends it, or leaves the call's number loaded.
func filter(architecture uint32, takes bool) []bpf.Instruction {
	refused := refused
	if !takes {
		refused = append(slices.Clone(refused), unix.SYS_PIDFD_GETFD)
	}
	refuse := func(errno unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	argument := func(i int) bpf.Instruction { return bpf.LoadAbsolute{Off: uint32(atArguments + 8*i), Size: 4} }
	number := bpf.LoadAbsolute{Off: atNumber, Size: 4}
	unless := func(cond bpf.JumpTest, val uint32, then ...bpf.Instruction) []bpf.Instruction {
		return append([]bpf.Instruction{bpf.JumpIf{Cond: cond, Val: val, SkipTrue: uint8(len(then))}}, then...)
	}
	all := slices.Concat(
		[]bpf.Instruction{bpf.LoadAbsolute{Off: atArchitecture, Size: 4}},
		unless(bpf.JumpEqual, architecture, refuse(unix.EPERM)),
		[]bpf.Instruction{number},
		unless(bpf.JumpLessThan, x32, refuse(unix.EPERM)),
		// Its flags lie in memory, which a filter does not see; C libraries take clone then.
		unless(bpf.JumpNotEqual, unix.SYS_CLONE3, refuse(unix.ENOSYS)),
	)
	for _, nr := range refused {
		all = append(all, unless(bpf.JumpNotEqual, nr, refuse(unix.EPERM))...)
	}
	permit := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	oneOf := func(values []uint32, then ...bpf.Instruction) (out []bpf.Instruction) {
		for _, v := range values {
			out = append(out, unless(bpf.JumpNotEqual, v, then...)...)
		}
		return append(out, refuse(unix.EPERM))
	}
	netlink := append([]bpf.Instruction{argument(2)}, oneOf(netlinks, permit)...)
	socket := append([]bpf.Instruction{argument(0)}, unless(bpf.JumpNotEqual, unix.AF_NETLINK, netlink...)...)
	socket = append(socket, oneOf(families[:len(families)-1], permit)...)
	info := append([]bpf.Instruction{argument(0)}, oneOf([]uint32{objectInfo}, permit)...)
	clone := append([]bpf.Instruction{argument(0)}, unless(bpf.JumpBitsNotSet, namespaces, refuse(unix.EPERM))...)
	return slices.Concat(all,
		unless(bpf.JumpNotEqual, unix.SYS_SOCKET, socket...),
		unless(bpf.JumpNotEqual, unix.SYS_BPF, info...),
		unless(bpf.JumpNotEqual, unix.SYS_CLONE, append(clone, permit)...),
		[]bpf.Instruction{permit})
}
