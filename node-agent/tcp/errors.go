package tcp

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// UnsupportedError says that this machine cannot do something, and what would.
type UnsupportedError struct {
	Feature string // in a campaign's words: "variant tahoe", "fixed_rto"
	Needs   string // "Linux 6.15", "BTF (CONFIG_DEBUG_INFO_BTF)"
	Err     error  // what was seen; nil when it was concluded
}

func (e *UnsupportedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s is not possible here: it needs %s", e.Feature, e.Needs)
	}
	return fmt.Sprintf("%s is not possible here: it needs %s (%v)", e.Feature, e.Needs, e.Err)
}

func (e *UnsupportedError) Unwrap() error { return e.Err }

// loadError says in words what keeps a BPF object out. The verifier's whole
// log, which may be megabytes, stays out.
func loadError(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("the kernel has no BPF: %w", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("loading BPF is not permitted: %w", err)
	case errors.Is(err, btf.ErrNotFound), errors.Is(err, btf.ErrNotSupported):
		return fmt.Errorf("the kernel does not describe its own types (BTF): %w", err)
	case errors.As(err, &verifier):
		return fmt.Errorf("the kernel's verifier refuses it: %w", err)
	}
	return err
}

// What a kernel or its user lacks when a BPF program is kept out, whatever the program.
const (
	needsBPF  = "a kernel with BPF (CONFIG_BPF_SYSCALL)"
	needsBTF  = "a kernel with BTF (CONFIG_DEBUG_INFO_BTF)"
	needsRoot = "root with all its capabilities (CAP_BPF, CAP_NET_ADMIN, CAP_SYS_ADMIN)"
)

// refused is why the kernel did not take a program that a feature rests on, and
// what would. It tries the least of programs first: what the loader makes of
// not being permitted may read as if the kernel lacked something.
func refused(feature, otherwise string, err error) error {
	p, least := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SockOps, AttachType: ebpf.AttachCGroupSockOps,
		License:      "MIT",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}})
	for _, bare := range []error{unix.EPERM, unix.ENOSYS} {
		if errors.Is(least, bare) {
			err = bare // without the loader's guesses
		}
	}
	if least == nil {
		_ = p.Close() // it was for trying
	}
	return unsupported(feature, otherwise, err)
}

// unsupported is why the kernel does not take a program that a feature rests
// on, by what it said, and what would: what all programs need, or otherwise
// what this one does.
func unsupported(feature, otherwise string, err error) error {
	needs := otherwise
	switch {
	case errors.Is(err, unix.ENOSYS):
		needs = needsBPF
	case errors.Is(err, btf.ErrNotFound), errors.Is(err, btf.ErrNotSupported):
		needs = needsBTF
	case errors.Is(err, unix.EPERM):
		needs = needsRoot
	}
	return &UnsupportedError{Feature: feature, Needs: needs, Err: loadError(err)}
}
