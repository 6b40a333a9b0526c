package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/provenance"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ProbeCommand is `fieldmesh-agent probe`: what this machine has and can do.
func ProbeCommand() *cobra.Command {
	var asJSON bool
	path := config.DefaultPath
	c := &cobra.Command{
		Use:   "probe",
		Short: "Tell what this machine has and can do",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := config.Load(path)
			if err != nil {
				return err
			}
			p := provenance.New(c.Context(), cfg.Interface, cfg.Binaries).Read(c.Context())
			if asJSON {
				enc := json.NewEncoder(c.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(p)
			}
			return writeProbe(c.OutOrStdout(), p)
		},
	}
	c.Flags().StringVar(&path, "config", path, "the agent's configuration")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func writeProbe(w io.Writer, p wire.Provenance) error {
	up, _ := provenance.Link(p.Interface)
	state := "absent"
	if up != nil {
		state = map[bool]string{true: "up", false: "down"}[*up]
	}
	lines := []string{
		"kernel      " + p.Kernel + " " + p.Arch,
		"interface   " + p.Interface + " (" + state + ")",
		"driver      " + orUnknown(p.Driver),
		"tcp         " + strings.Join(p.Congestion, " "),
		"iperf3      " + orUnknown(p.Tools["iperf3"]),
		"babeld      " + orUnknown(p.Tools["babeld"]),
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func orUnknown(s string) string {
	if s == "" {
		return "not found"
	}
	return s
}
