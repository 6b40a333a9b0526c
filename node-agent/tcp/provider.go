package tcp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// provider puts congestion controls and tracing of tcpcc in force in a kernel.
// What it has put in force holds until it is closed, or the process ends.
type provider interface {
	// able reports why programs cannot be put in force here.
	able(m Machine, program, feature string) error
	congestion(spec *ebpf.CollectionSpec, program, name string) (*Congestion, error)
	// events fills the ring buffer of coll with what the connections of a
	// network namespace do that are in its map.
	events(spec *ebpf.CollectionSpec, cookie uint64, connections []Ports) (*EventTrace, error)
}

// providerHere is compiled where the kernel has the programs compiled in, and
// loaded everywhere else.
func providerHere() (provider, error) {
	sources, err := compiledIn()
	if err != nil {
		return nil, err
	}
	if sources != "" {
		return compiled{sources}, nil
	}
	return loaded{}, nil
}

// loaded has the kernel load them as BPF.
type loaded struct{}

// compiled has the kernel use those that it was built with, as the kernel for
// rehearsals in virtual time is, which can load none of them
// (rehearsal/kernel/tcpcc).
type compiled struct {
	sources string // SHA-256 of the list of what they were built from
}

// device takes a kernel's orders about what is compiled into it.
const device = "/dev/tcpcc"

// compiledIn is the SHA-256 of the list of the sources that the kernel has
// compiled in; empty for a kernel that has none.
func compiledIn() (string, error) {
	sum, err := os.ReadFile(device)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read which TCP variants are compiled in: %w", err)
	}
	return strings.TrimSpace(string(sum)), nil
}

// needsOurs is what a kernel of another version of Fieldmesh does not meet.
const needsOurs = "the kernel for virtual time that belongs to this version (make kernel)"

func (c compiled) able(_ Machine, _, feature string) error {
	if ours := tcpcc.Sources(); c.sources != ours {
		return &UnsupportedError{Feature: feature, Needs: needsOurs, Err: fmt.Errorf("what is compiled in has sources "+
			"of SHA-256 %s, this agent's have %s", c.sources, ours)}
	}
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		return unsupported(feature, needsRoot, err)
	}
	return f.Close()
}

// order writes to the device. The order holds until the file is closed.
func order(format string, values ...any) (io.Closer, error) {
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(f, format, values...); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (c compiled) congestion(spec *ebpf.CollectionSpec, program, name string) (_ *Congestion, err error) {
	if err := c.able(Machine{}, program, "variant "+program); err != nil {
		return nil, err
	}
	made := &Congestion{Name: name}
	if causes := spec.Maps[lossesVariable]; causes != nil {
		if made.losses, err = ebpf.NewMap(causes); err != nil {
			return nil, fmt.Errorf("make map of causes: %w", err)
		}
		made.link, err = order("congestion %s %s %d", program, name, made.losses.FD())
	} else {
		made.link, err = order("congestion %s %s", program, name)
	}
	if err != nil {
		if made.losses != nil {
			err = errors.Join(err, made.losses.Close())
		}
		return nil, registering(name, err)
	}
	return made, nil
}

// registering says why a congestion control was not registered.
func registering(name string, err error) error {
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("register congestion control %q: there is one of this name; another agent of this "+
			"network namespace may have made it", name)
	}
	return fmt.Errorf("register congestion control %q: %w", name, err)
}

func (c compiled) events(spec *ebpf.CollectionSpec, cookie uint64, connections []Ports) (*EventTrace, error) {
	if err := c.able(Machine{}, tcpcc.Events, tracepoints); err != nil {
		return nil, err
	}
	sockets, err := ebpf.NewMap(spec.Maps["sockets"])
	if err != nil {
		return nil, fmt.Errorf("make map of connections: %w", err)
	}
	defer sockets.Close() // the kernel holds it itself
	if err := choose(sockets, connections); err != nil {
		return nil, err
	}
	ring, err := ebpf.NewMap(spec.Maps["events"])
	if err != nil {
		return nil, fmt.Errorf("make ring buffer: %w", err)
	}
	l, err := order("events %d %d %d", cookie, sockets.FD(), ring.FD())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("follow %s: %w", tracepoints, err), ring.Close())
	}
	return &EventTrace{links: []io.Closer{l}, ring: ring}, nil
}
