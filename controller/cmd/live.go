package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/live"
)

// LiveCommand is `fieldmesh live RUN`.
func LiveCommand() *cobra.Command {
	var runs, listen string
	c := &cobra.Command{
		Use:   "live RUN",
		Short: "Show a run while it goes, in a browser",
		Long: "Live serves one page about a run: throughput, speed with its band, signal, positions, nodes and " +
			"decisions, from the records as " +
			"they arrive in the archive. It may be started and ended at any time beside the run. By default only " +
			"this machine reaches it; " +
			"with --listen on another address a token is made, and the address that is printed carries it. Traffic " +
			"is not encrypted then: " +
			"use it in a network that you trust.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := openRun(runs, args[0])
			if err != nil {
				return err
			}
			l, err := net.Listen("tcp", listen)
			if err != nil {
				return fmt.Errorf("serve the live page: %w; --listen names another address", err)
			}
			token := ""
			if !live.Loopback(listen) {
				token = live.Token()
			}
			for _, url := range addresses(l.Addr(), token) {
				if _, err := fmt.Fprintf(c.OutOrStdout(), "live: %s\n", url); err != nil {
					return errors.Join(err, l.Close())
				}
			}
			return serveLive(c.Context(), l, live.NewBoard(a.Dir(), slog.Default()), token)
		},
	}
	c.Flags().StringVar(&runs, "runs", "runs", "folder that holds the runs")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:7480", "address and port to serve the page on")
	return c
}

// addresses are where a browser finds the page: beyond this machine, those of
// its interfaces when it listens on all of them.
func addresses(at net.Addr, token string) (urls []string) {
	tail := "/"
	if token != "" {
		tail += "?token=" + token
	}
	bound := at.(*net.TCPAddr).AddrPort()
	if !bound.Addr().IsUnspecified() {
		return []string{"http://" + bound.String() + tail}
	}
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		ip, perr := netip.ParsePrefix(a.String())
		if err == nil && perr == nil && ip.Addr().IsGlobalUnicast() && (ip.Addr().Is4() || !bound.Addr().Is4()) {
			urls = append(urls, "http://"+netip.AddrPortFrom(ip.Addr(), bound.Port()).String()+tail)
		}
	}
	if len(urls) == 0 { // no interface has an address yet
		urls = []string{fmt.Sprintf("http://127.0.0.1:%d%s", bound.Port(), tail)}
	}
	return urls
}

// serveLive serves until ctx ends.
func serveLive(ctx context.Context, l net.Listener, b *live.Board, token string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	h, err := live.Handler(ctx, b, token)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	followed := make(chan struct{})
	go func() { defer close(followed); b.Follow(ctx) }()
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10}
	ended := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer ended()
	err = s.Serve(l)
	stop()
	<-followed
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the live page: %w", err)
}
