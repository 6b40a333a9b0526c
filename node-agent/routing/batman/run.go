package batman

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	rtnl "github.com/vishvananda/netlink"

	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
)

const (
	lookEvery = 500 * time.Millisecond
	deadline  = 5 * time.Second // of a client
)

// Run tells the state to whoever connects, until ctx ends; a client says one
// line first. It returns an error when the mesh has gone: its device, or the
// interface out of it.
func Run(ctx context.Context, cfg control.Config) error {
	if err := joined(cfg.Interface); err != nil {
		return err
	}
	if err := os.Remove(cfg.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", cfg.Socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				cancel(err)
				return
			}
			clients.Go(func() {
				if err := errors.Join(answer(conn), conn.Close()); err != nil {
					cfg.Log.Debug("a client was not answered", "error", err)
				}
			})
		}
	})
	err = watch(ctx, cfg.Interface)
	closing := listener.Close()
	clients.Wait()
	if errors.Is(context.Cause(ctx), context.Canceled) { // asked to end
		return closing
	}
	return errors.Join(err, closing)
}

// watch checks whether the mesh is still there.
func watch(ctx context.Context, device string) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if err := joined(device); err != nil {
				return err
			}
		}
	}
}

// joined says why an interface is not in the mesh, nil when it is.
func joined(device string) error {
	mesh, err := rtnl.LinkByName(Device)
	if err != nil {
		return fmt.Errorf("find the mesh's interface %q: %w", Device, err)
	}
	below, err := rtnl.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find interface %q: %w", device, err)
	}
	if below.Attrs().MasterIndex != mesh.Attrs().Index {
		return fmt.Errorf("interface %q is not in the mesh of %q any more", device, Device)
	}
	return nil
}

// answer tells the state once.
func answer(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(deadline)); err != nil {
		return err
	}
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		return err
	}
	s, err := Read(Device)
	if err != nil {
		return err
	}
	return json.NewEncoder(conn).Encode(s)
}
