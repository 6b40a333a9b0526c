package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/screen"
	"fieldmesh.dev/fieldmesh/node-agent/config"
	"fieldmesh.dev/fieldmesh/node-agent/confine"
	"fieldmesh.dev/fieldmesh/node-agent/measure"
	"fieldmesh.dev/fieldmesh/node-agent/provenance"
	"fieldmesh.dev/fieldmesh/node-agent/routing/batman"
	"fieldmesh.dev/fieldmesh/node-agent/standing"
	"fieldmesh.dev/fieldmesh/node-agent/tcp"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ProbeCommand is `fieldmesh-agent probe`: what this machine has and can do.
func ProbeCommand() *cobra.Command {
	var path string
	var asJSON bool
	c := &cobra.Command{Use: "probe", Args: flags.None, RunE: func(c *cobra.Command, _ []string) error {
		cfg, err := loadConfig(path)
		if errors.Is(err, fs.ErrNotExist) && !c.Flags().Changed("config") {
			cfg, err = config.Config{Binaries: config.DefaultBinaries()}, nil
		}
		if err != nil {
			return err
		}
		p := probe(c.Context(), cfg)
		if asJSON {
			enc := json.NewEncoder(c.OutOrStdout())
			enc.SetIndent("", "  ")
			return enc.Encode(p)
		}
		return writeProbe(c.OutOrStdout(), p)
	}}
	addConfig(c, &path)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func probe(ctx context.Context, cfg config.Config) probed {
	p := probed{Provenance: provenance.New(ctx, cfg.Interface, cfg.Binaries, toolsUser(cfg)).Read(ctx),
		Beside: cfg.PhyOf, Transport: tcp.Probe(cfg.FeedbackSocket != ""), Confinement: confine.Kernel(cfg)}
	if cfg.Unprivileged() {
		p.Privileges, p.Transport = cfg.Privileges, standing.Abilities()
		p.SocketsBy = measure.ByDescriptors
	}
	var err error
	if p.Radios, err = radios(); err != nil {
		p.RadiosUnknown = err.Error()
	}
	if p.Driver == "" && p.Beside != "" {
		p.Driver = provenance.Driver(p.Beside)
	}
	return p
}

// nobody owns nothing: the kernel's own number for who is not known (overflowuid in proc_sys_kernel(5)).
const nobody = 65534

// toolsUser is who runs the tools that root asks for their versions: the network face's user, as when trials run, or
// nobody where there is none. It is nil where the caller is not root.
func toolsUser(cfg config.Config) *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	as, err := faceUser(cfg)
	if err != nil || as.uid == 0 {
		as = identity{nobody, nobody}
	}
	return &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid), Groups: []uint32{}}
}

// probed is what a machine has, and what of the transport it can do.
type probed struct {
	wire.Provenance
	Beside string    `json:"beside,omitempty"` // on whose radio the interface is made for a run
	Radios []radioOf `json:"radios"`
	// RadiosUnknown says why the radios could not be listed.
	RadiosUnknown string         `json:"radios_unknown,omitempty"`
	Transport     []wire.Ability `json:"transport"`
	// Confinement is by what the agent's network face is confined when it runs here.
	Confinement []confine.Means `json:"confinement"`
}

// state is that of the interface under test.
func (p probed) state() string {
	if up, _ := provenance.Link(p.Interface); up != nil {
		return map[bool]string{true: "up", false: "down"}[*up]
	}
	if p.Beside != "" {
		return "made beside " + p.Beside + " for a run"
	}
	return "absent"
}

func writeProbe(w io.Writer, p probed) error {
	lines := []string{"kernel      " + p.Kernel + " " + p.Arch}
	if p.Interface != "" {
		lines = append(lines, "interface   "+p.Interface+" ("+p.state()+")",
			"driver      "+cmp.Or(p.Driver, "not found"))
	}
	if p.Privileges == config.NoPrivileges {
		lines = append(lines, "privileges  none: it changes nothing; sockets are read by "+p.SocketsBy)
	}
	lines = append(lines, radioLines(p.Radios, p.RadiosUnknown)...)
	lines = append(lines,
		"tcp         "+strings.Join(p.Congestion, " "),
		"iperf3      "+cmp.Or(p.Tools["iperf3"], "not found"),
		"babeld      "+cmp.Or(p.Tools["babeld"], "not found"))
	routing := "batman-adv  " + p.Tools[batman.Protocol]
	if err := batman.Available(); err != nil {
		routing = "batman-adv  " + err.Error()
	}
	lines = append(lines, routing)
	lines = append(lines, confinementLines(p.Confinement)...)
	lines = append(lines, transportLines(p.Transport)...)
	_, err := io.WriteString(w, screen.Fold(strings.Join(lines, "\n")+"\n", screen.Columns(w)))
	return err
}

// confinementLines tell by what the network face is confined, and what follows where it
// is not.
func confinementLines(means []confine.Means) []string {
	var out []string
	for _, m := range means {
		if m.Lacks == "" {
			out = append(out, fmt.Sprintf("confined    by %s", m.By))
			continue
		}
		out = append(out, fmt.Sprintf("not confined by %s: %s", m.By, m.Lacks),
			"            whoever takes the network face over may "+m.Open,
			"            "+m.Cure)
	}
	return out
}

// transportLines tell each variant and knob: whose it is, or why there is none.
func transportLines(abilities []wire.Ability) []string {
	var out []string
	for _, a := range abilities {
		how := map[string]string{"native": "the kernel's own", "bpf": "by BPF", "compiled": "compiled in",
			"none": "not possible"}[a.How]
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
