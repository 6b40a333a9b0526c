package batman

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	rtnl "github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"

	"fieldmesh.dev/fieldmesh/internal/unixsocket"
	"fieldmesh.dev/fieldmesh/node-agent/routing/control"
)

const (
	lookEvery   = 500 * time.Millisecond
	deadline    = 5 * time.Second // of a client
	clientsMost = 16              // at a time
)

// Run tells the state to whoever connects, until ctx ends; a client says one
// line first. It returns an error when the mesh has gone: its device, or the
// interface out of it.
func Run(ctx context.Context, cfg control.Config) error {
	if err := joined(cfg.Interface); err != nil {
		return err
	}
	listener, err := unixsocket.Listen(cfg.Socket, control.SocketMode, max(cfg.SocketUID, 0))
	if err != nil {
		return err
	}
	g, within := errgroup.WithContext(ctx)
	g.Go(func() error { return watch(within, cfg.Interface) })
	g.Go(func() error {
		return unixsocket.Serve(within, listener, clientsMost, func(c *net.UnixConn) { _ = c.Close() },
			func(_ context.Context, conn *net.UnixConn) {
				if err := errors.Join(answer(conn), conn.Close()); err != nil {
					cfg.Log.Debug("a client was not answered", "error", err)
				}
			})
	})
	if err := g.Wait(); ctx.Err() == nil {
		return err
	}
	return nil // asked to end
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
