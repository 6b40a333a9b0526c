package cmd

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/fleet"
	offers "fieldmesh.dev/fieldmesh/controller/pairing"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/protocols/campaigns"
	"fieldmesh.dev/fieldmesh/protocols/pairing"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// pairOptions are the flags of `fieldmesh keys pair`.
type pairOptions struct {
	app     bool
	drives  bool // the app is an experimenter's
	serve   int  // port at which `fieldmesh serve` answers it
	listen  string
	address string // that the code names
	node    string // at which the node's agent answers
	valid   time.Duration
	picture bool
	entry   fleet.Node // what its entry says besides
}

func keysPairCommand(dir *string) *cobra.Command {
	var o pairOptions
	command := &cobra.Command{Use: "pair NAME", Args: flags.Exactly(1),
		RunE: func(command *cobra.Command, args []string) error {
			return pair(command, *dir, args[0], o)
		}}
	command.Flags().BoolVar(&o.app, "app", false, "for the phone app, not for a node")
	command.Flags().BoolVar(&o.drives, "experimenter", false, "with --app: whoever has the phone may have campaigns "+
		"driven, by fieldmesh serve")
	command.Flags().IntVar(&o.serve, "serve-port", campaigns.Port, "with --experimenter: port of fieldmesh serve")
	command.Flags().StringVar(&o.listen, "listen", ":7447", "HOST:PORT to wait at")
	command.Flags().StringVar(&o.address, "at", "", "HOST:PORT at which the new one reaches this machine, when it "+
		"has several addresses")
	command.Flags().StringVar(&o.node, "address", "", "HOST:PORT at which the node's agent answers; otherwise where "+
		"the node comes from")
	command.Flags().StringVar(&o.entry.Unit, "unit", "", "name of the hardware that carries the node")
	command.Flags().StringToStringVar(&o.entry.Labels, "label", nil, "NAME=VALUE, may be repeated")
	command.Flags().DurationVar(&o.valid, "valid", pairing.Valid, "how long the code is good, at most 5m")
	command.Flags().BoolVar(&o.picture, "qr", true, "show the code as a picture too")
	return command
}

func pair(command *cobra.Command, dir, name string, o pairOptions) error {
	if o.valid <= 0 || o.valid > pairing.Valid {
		return misused("--valid %s: expected more than 0s, and at most %s", o.valid, pairing.Valid)
	}
	if o.drives && !o.app {
		return misused("--experimenter: a node is no experimenter; add --app for a phone")
	}
	if o.serve < 1 || o.serve > math.MaxUint16 {
		return misused("--serve-port %d: expected 1 to %d", o.serve, math.MaxUint16)
	}
	if err := flags.Address("listen", o.listen, ":7447"); err != nil {
		return misuse{err}
	}
	identity, err := fleet.Identity(dir)
	if err != nil {
		return fmt.Errorf("pair %q: %w", name, err)
	}
	if err := fleet.Vacant(dir, name); err != nil {
		return fmt.Errorf("pair: %w", err)
	}
	ctx := command.Context()
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("pair %q: %w; --listen names another address", name, err)
	}
	offer := &offers.Offer{Identity: identity, Name: name, Role: wire.RoleNode, Until: time.Now().Add(o.valid),
		Log: slog.New(slog.NewTextHandler(command.ErrOrStderr(), nil))}
	if o.app {
		offer.Role = wire.RoleApp
	}
	at, err := offers.Address(o.address, listener.Addr())
	if err == nil {
		offer.Code, err = pairing.New(at, identity.Pin)
	}
	if err == nil {
		err = showCode(command.OutOrStdout(), offer, o)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("pair %q: %w", name, err), listener.Close())
	}
	var done fmt.Stringer
	offer.Admit = func(n offers.Newcomer) (reply pairing.Reply, err error) {
		reply, done, err = admit(dir, n, o)
		return reply, err
	}
	if err := offer.Serve(ctx, listener); err != nil {
		return fmt.Errorf("pair %q: %w", name, err)
	}
	_, err = fmt.Fprintln(command.OutOrStdout(), done)
	if o.app && err == nil {
		err = tellApps(ctx, command.OutOrStdout(), dir)
	}
	return err
}

// text is what is said at the end.
type text string

func (t text) String() string { return string(t) }

// admit makes a newcomer part of the fleet.
func admit(dir string, n offers.Newcomer, o pairOptions) (pairing.Reply, fmt.Stringer, error) {
	if n.Role == wire.RoleApp {
		f, err := fleet.AdmitApp(dir, n.Name, fleet.App{Pin: n.Pin, Experimenter: o.drives})
		if err != nil {
			return pairing.Reply{}, nil, err
		}
		var reply pairing.Reply
		if o.drives {
			reply.Controller = &pairing.Controller{Port: o.serve}
		}
		for _, name := range f.Names() {
			reply.Nodes = append(reply.Nodes, pairing.Node{Name: name, Address: f.Nodes[name].Address,
				Pin: f.Nodes[name].Pin})
		}
		return reply, text(fmt.Sprintf("%s is paired: app, key %.12s…", n.Name, n.Pin)), nil
	}
	node := o.entry
	node.Name, node.Pin, node.Address = n.Name, n.Pin, o.node
	if node.Address == "" {
		host := n.Remote
		if given, err := netip.ParseAddr(n.Host); err == nil && !given.IsUnspecified() {
			host = n.Host // it listens there and nowhere else
		}
		node.Address = net.JoinHostPort(host, n.Port)
	}
	peers, err := fleet.AdmitNode(dir, node)
	if err != nil {
		return pairing.Reply{}, nil, err
	}
	return pairing.Reply{Authorized: peers},
		text(fmt.Sprintf("%s is paired: node at %s, key %.12s…", n.Name, node.Address, n.Pin)), nil
}

func showCode(w io.Writer, offer *offers.Offer, o pairOptions) error {
	if o.picture {
		picture, err := offers.Picture(offer.Code.String())
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, picture); err != nil {
			return fmt.Errorf("show code: %w", err)
		}
	}
	what := "On the node, as root, type `fieldmesh-agent pair`, and this code when it asks for it. Where the phone " +
		"app is the node,\nscan the picture on the app's Pair screen, or type the code there:\n\n    "
	if o.app {
		what = "On the phone, on the app's Pair screen, scan the picture or type:\n\n    "
	}
	_, err := fmt.Fprintf(w, "%s%s\n\nThe code is good for one, until %s. Whoever has it becomes %q: show it to "+
		"nobody else.\n",
		what, offer.Code.Groups(), offer.Until.Format("15:04:05"), offer.Name)
	if err != nil {
		return fmt.Errorf("show code: %w", err)
	}
	return nil
}
