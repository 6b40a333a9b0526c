package cmd

import (
	"errors"

	"github.com/spf13/cobra"
)

// ReportCommand is `fieldmesh report RUN`.
func ReportCommand() *cobra.Command {
	return &cobra.Command{Use: "report RUN", RunE: func(*cobra.Command, []string) error { return errors.New("not built yet") }}
}

// ExportCommand is `fieldmesh export RUN`.
func ExportCommand() *cobra.Command {
	return &cobra.Command{Use: "export RUN", RunE: func(*cobra.Command, []string) error { return errors.New("not built yet") }}
}

// VerifyCommand is `fieldmesh verify RUN`.
func VerifyCommand() *cobra.Command {
	return &cobra.Command{Use: "verify RUN", RunE: func(*cobra.Command, []string) error { return errors.New("not built yet") }}
}
