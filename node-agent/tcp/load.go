// Package tcp puts TCP variants into the kernel that it does not have itself,
// holds the retransmission timer constant, and tells what of all this the
// machine can do. It changes nothing that outlives the process: everything it
// loads hangs on a file descriptor. Sysctls and routes are the host process's.
package tcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"fieldmesh.dev/fieldmesh/protocols/tcpcc"
)

// opsVariable is what every object calls its struct tcp_congestion_ops.
const opsVariable = "ops"

// Congestion is a congestion control in the kernel.
type Congestion struct {
	Name string // in the kernel
	link io.Closer
	// losses is the reference TCP's map of causes, nil for all others.
	losses *ebpf.Map
}

// Register loads a program of tcpcc and makes it a congestion control of the
// kernel under name. Nothing is pinned on purpose: when the process ends,
// however it does, the kernel takes the congestion control out of its list.
// Connections that use it, and a namespace whose default it is, keep it until
// they end or choose another.
func Register(program, name string) (*Congestion, error) {
	spec, err := specOf(program)
	if err != nil {
		return nil, err
	}
	p, err := providerHere()
	if err != nil {
		return nil, err
	}
	return p.congestion(spec, program, name)
}

func (loaded) congestion(spec *ebpf.CollectionSpec, program, name string) (*Congestion, error) {
	if err := rename(spec, name); err != nil {
		return nil, fmt.Errorf("name congestion control %q: %w", program, err)
	}
	coll, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("load congestion control %q: %w", program, refused("variant "+program, needsStructOps,
			err))
	}
	defer coll.Close() // the link and the map's own copies keep what they need
	l, err := link.AttachStructOps(link.StructOpsOptions{Map: coll.Maps[opsVariable]})
	if err != nil {
		return nil, registering(name, err)
	}
	c := &Congestion{Name: name, link: l}
	if losses := coll.Maps[lossesVariable]; losses != nil {
		c.losses = losses
		delete(coll.Maps, lossesVariable)
	}
	return c, nil
}

// lossesVariable is what objects call the map of causes.
const lossesVariable = "losses"

// Close takes the congestion control out of the kernel's list.
func (c *Congestion) Close() error {
	err := c.link.Close()
	if c.losses != nil {
		err = errors.Join(err, c.losses.Close())
	}
	if err != nil {
		return fmt.Errorf("remove congestion control %q: %w", c.Name, err)
	}
	return nil
}

var _ io.Closer = (*Congestion)(nil)

func specOf(program string) (*ebpf.CollectionSpec, error) {
	object, err := tcpcc.Object(program)
	if err != nil {
		return nil, err
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read object of %q: %w", program, err)
	}
	return spec, nil
}

// rename writes the kernel's name for it over the one in the object.
func rename(spec *ebpf.CollectionSpec, name string) error {
	ops := spec.Maps[opsVariable]
	if ops == nil || len(ops.Contents) != 1 {
		return errors.New("the object has no congestion control")
	}
	value, is := ops.Contents[0].Value.([]byte)
	layout, isStruct := ops.Value.(*btf.Struct)
	if !is || !isStruct {
		return errors.New("the object's congestion control is no structure")
	}
	for _, m := range layout.Members {
		if m.Name != "name" {
			continue
		}
		size, err := btf.Sizeof(m.Type)
		if err != nil {
			return err
		}
		at := int(m.Offset.Bytes())
		if len(name) >= size || at+size > len(value) {
			return fmt.Errorf("%q has more than %d characters", name, size-1)
		}
		clear(value[at : at+size])
		copy(value[at:at+size], name)
		return nil
	}
	return errors.New("the object's congestion control has no name")
}
