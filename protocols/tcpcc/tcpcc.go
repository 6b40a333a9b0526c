// Package tcpcc holds the TCP variants that a kernel does not have itself: for
// each its source in BPF's C (folder bpf), whose head names what it implements and which
// part is the stack's own, and the object that generate.sh makes of it. It
// loads nothing. How a variant is called in the kernel and what a profile sets of
// it are here too, because the node that makes them and the controller that
// judges them must agree.
package tcpcc

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:generate bpf/generate.sh

//go:embed bpf/*.bpf.o
var objects embed.FS

//go:embed bpf/sources.sha256
var sources []byte

// Sources is the SHA-256 of the list of the programs' sources with their
// SHA-256, by which a kernel says what it has compiled in.
func Sources() string {
	sum := sha256.Sum256(sources)
	return hex.EncodeToString(sum[:])
}

// SourceList is that list, as sha256sum has it.
func SourceList() []byte { return bytes.Clone(sources) }

// The programs, by the names of their files.
const (
	Tahoe     = "tahoe"
	Reno      = "reno" // classic, RFC 2581; not the kernel's own of that name
	NewReno   = "newreno"
	Fack      = "fack"
	Vegas     = "vegas"    // Linux's
	Westwood  = "westwood" // Westwood+, Linux's
	Reference = "reference"
	// As their authors published them, which is what the papers compare.
	Vegas1995    = "vegas1995"
	Westwood2001 = "westwood2001"
)

// Programs lists the congestion controls that there are objects of.
func Programs() []string {
	return []string{Tahoe, Reno, NewReno, Fack, Vegas, Westwood, Reference, Vegas1995, Westwood2001}
}

// nameMax is what TCP_CA_NAME_MAX (net/tcp.h) leaves beside the final zero.
const nameMax = 15

// stems are programs whose names leave too little room for a suffix.
var stems = map[string]string{Reference: "ideal", Vegas1995: "vegas95", Westwood2001: "west2001"}

// mark is between a program's stem and its namespace; no kernel's own name has it
// before a number in base 36 and after one of our stems.
const mark = "_"

// KernelName is what a program of Programs is called in the kernel of a node.
// The kernel keeps one list for all network namespaces, and the nodes of a
// rehearsal share one kernel, so the name ends in the namespace's cookie
// (SO_NETNS_COOKIE), which no two namespaces of a boot have in common.
func KernelName(program string, cookie uint64) (string, error) {
	if !slices.Contains(Programs(), program) {
		return "", fmt.Errorf("name program %q: there is no such one", program)
	}
	stem := program
	if s, short := stems[program]; short {
		stem = s
	}
	name := stem + mark + strconv.FormatUint(cookie, 36)
	if len(name) > nameMax {
		return "", fmt.Errorf("name program %q: %q is longer than the %d characters that the kernel takes", program,
			name, nameMax)
	}
	return name, nil
}

// ProgramOf is the program behind a name in the kernel; false for a name that
// KernelName does not make.
func ProgramOf(kernelName string) (string, bool) {
	stem, cookie, found := strings.Cut(kernelName, mark)
	if !found {
		return "", false
	}
	if _, err := strconv.ParseUint(cookie, 36, 64); err != nil {
		return "", false
	}
	for _, program := range Programs() {
		if stem == program && stems[program] == "" || stem == stems[program] {
			return program, true
		}
	}
	return "", false
}

// Objects that are no variants.
const (
	// RTO is that of the sockops programs that hold the retransmission timer
	// constant.
	RTO = "rto"
	// Clamp is that of the sockops program that bounds windows in segments.
	Clamp = "clamp"
	// Events is that of the programs that tell what connections do about losses.
	Events = "events"
)

// Object is the compiled object of a program, or RTO's, Clamp's or Events'.
func Object(program string) ([]byte, error) {
	b, err := objects.ReadFile("bpf/" + program + ".bpf.o")
	if err != nil {
		return nil, fmt.Errorf("find object of %q: %w", program, err)
	}
	return b, nil
}
