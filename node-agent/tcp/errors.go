package tcp

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
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
	case errors.As(err, &verifier):
		return fmt.Errorf("the kernel's verifier refuses it: %w", err)
	case errors.Is(err, btf.ErrNotFound), errors.Is(err, btf.ErrNotSupported):
		return fmt.Errorf("the kernel does not describe its own types (BTF): %w", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("loading BPF is not permitted (needs root): %w", err)
	}
	return err
}
