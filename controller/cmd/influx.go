package cmd

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"
)

type influxFlags struct{}

func (f *influxFlags) add(c *cobra.Command) {}

func (f *influxFlags) tail(ctx context.Context, dir string, log *slog.Logger) (func() error, error) {
	return func() error { return nil }, nil
}

func PublishCommand() *cobra.Command { return &cobra.Command{Use: "publish"} }
