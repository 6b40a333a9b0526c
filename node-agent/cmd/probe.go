package cmd

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/provenance"
	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ProbeCommand is `fieldmesh-agent probe`: what this machine has and can do.
func ProbeCommand() *cobra.Command {
	var asJSON bool
	c := configured(&cobra.Command{
		Use:   "probe",
		Short: "Tell what this machine has and can do",
	}, func(c *cobra.Command, cfg config.Config) error {
		p := probed{provenance.New(c.Context(), cfg.Interface, cfg.Binaries).Read(c.Context()), cfg.PhyOf,
			tcp.Probe(cfg.FeedbackSocket != "")}
		if p.Driver == "" && p.Beside != "" {
			p.Driver = provenance.Driver(p.Beside)
		}
		if asJSON {
			enc := json.NewEncoder(c.OutOrStdout())
			enc.SetIndent("", "  ")
			return enc.Encode(p)
		}
		return writeProbe(c.OutOrStdout(), p)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// probed is what a machine has, and what of the transport it can do.
type probed struct {
	wire.Provenance
	Beside    string         `json:"beside,omitempty"` // on whose radio the interface is made for a run
	Transport []wire.Ability `json:"transport"`
}

func writeProbe(w io.Writer, p probed) error {
	up, _ := provenance.Link(p.Interface)
	state := "absent"
	if up != nil {
		state = map[bool]string{true: "up", false: "down"}[*up]
	} else if p.Beside != "" {
		state = "made beside " + p.Beside + " for a run"
	}
	lines := []string{
		"kernel      " + p.Kernel + " " + p.Arch,
		"interface   " + p.Interface + " (" + state + ")",
		"driver      " + cmp.Or(p.Driver, "not found"),
		"tcp         " + strings.Join(p.Congestion, " "),
		"iperf3      " + cmp.Or(p.Tools["iperf3"], "not found"),
		"babeld      " + cmp.Or(p.Tools["babeld"], "not found"),
	}
	routing := "batman-adv  " + p.Tools[batman.Protocol]
	if err := batman.Available(); err != nil {
		routing = "batman-adv  " + err.Error()
	}
	lines = append(lines, routing)
	lines = append(lines, transportLines(p.Transport)...)
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// transportLines tell each variant and knob: whose it is, or why there is none.
func transportLines(abilities []wire.Ability) []string {
	var out []string
	for _, a := range abilities {
		how := map[string]string{"native": "the kernel's own", "bpf": "by BPF", "none": "not possible"}[a.How]
		if a.Needs != "" {
			how += ": needs " + a.Needs
		}
		if a.Reason != "" {
			how += " (" + a.Reason + ")"
		}
		out = append(out, fmt.Sprintf("%-24s %s", a.Feature, how))
	}
	return out
}
