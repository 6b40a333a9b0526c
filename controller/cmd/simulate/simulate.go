// Package simulate is `fieldmesh simulate-routing`: the routing protocols in virtual time, without a kernel.
package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/internal/nearest"
	"fieldmesh.dev/fieldmesh/internal/screen"
	"fieldmesh.dev/fieldmesh/protocols/manet"
	"fieldmesh.dev/fieldmesh/protocols/manet/adv"
	"fieldmesh.dev/fieldmesh/protocols/manet/aodv"
	"fieldmesh.dev/fieldmesh/protocols/manet/aomdv"
	"fieldmesh.dev/fieldmesh/protocols/manet/dsdv"
	"fieldmesh.dev/fieldmesh/protocols/manet/dsr"
	"fieldmesh.dev/fieldmesh/protocols/manet/olsr"
	"fieldmesh.dev/fieldmesh/protocols/manet/simulation"
)

// simulated is a protocol that `simulate-routing` knows.
type simulated struct {
	name      string
	proactive bool
	port      uint16
	make      simulation.Maker
	carrier   bool // it carries data itself
}

// makerOf makes nodes of a protocol by one of its configurations.
func makerOf[C any, N manet.Node](config func([]manet.Interface, uint64) C, build func(C) (N, error)) simulation.Maker {
	return func(_ int, interfaces []manet.Interface, seed uint64) (manet.Node, error) {
		return build(config(interfaces, seed))
	}
}

// newAODV and newAOMDV leave the quiet after a reboot out: nobody remembers a
// node before the start.
func newAODV(c aodv.Config) (*aodv.Node, error) {
	c.QuietStart = 0
	return aodv.New(c)
}

func newAOMDV(c aomdv.Config) (*aodv.Node, error) {
	c.QuietStart = 0
	return aomdv.New(c)
}

func oneInterface(config func(manet.Interface, uint64) dsr.Config) func([]manet.Interface, uint64) dsr.Config {
	return func(interfaces []manet.Interface, seed uint64) dsr.Config { return config(interfaces[0], seed) }
}

// simulatedProtocols is the list, in the order in which help names them.
func simulatedProtocols() []simulated {
	return []simulated{
		{name: "olsr", proactive: true, port: olsr.Port, make: makerOf(olsr.RFC3626, olsr.New)},
		{name: "olsr-etx", proactive: true, port: olsr.Port, make: makerOf(olsr.Olsrd, olsr.New)},
		{name: "olsr-full", proactive: true, port: olsr.Port, make: makerOf(olsr.FullTC, olsr.New)},
		{name: "aodv", port: aodv.Port, make: makerOf(aodv.LinkLayer, newAODV)},
		{name: "aodv-hello", port: aodv.Port, make: makerOf(aodv.RFC3561, newAODV)},
		{name: "aodv-ns2", port: aodv.Port, make: makerOf(aodv.NS2, newAODV)},
		{name: "aodv-p3", port: aodv.Port, make: makerOf(aodv.P3, newAODV)},
		{name: "aomdv", port: aomdv.Port, make: makerOf(aomdv.LinkDisjoint, newAOMDV)},
		{name: "aomdv-node", port: aomdv.Port, make: makerOf(aomdv.NodeDisjoint, newAOMDV)},
		{name: "dsr", make: makerOf(oneInterface(dsr.RFC4728), dsr.New), carrier: true},
		{name: "dsr-ns2", make: makerOf(oneInterface(dsr.NS2), dsr.New), carrier: true},
		{name: "dsdv", proactive: true, port: dsdv.Port, make: makerOf(dsdv.Broch, dsdv.New)},
		{name: "dsdv-quick", proactive: true, port: dsdv.Port, make: makerOf(dsdv.Quick, dsdv.New)},
		{name: "adv", port: adv.Port, make: makerOf(adv.Default, adv.New)},
	}
}

type simulateFlags struct {
	protocol string
	nodes    []int
	json     bool
	pcap     string
	speedKmh float64
	scale    simulation.Scale
}

// Command is `fieldmesh simulate-routing`: how long a routing
// protocol takes to converge and what it costs each node, as nodes grow.
func Command() *cobra.Command {
	f := simulateFlags{scale: simulation.Scale{Radio: simulation.DefaultRadio(), Feedback: true,
		FlowStart: 20 * time.Second, PacketBytes: 512}}
	var names []string
	for _, p := range simulatedProtocols() {
		names = append(names, p.name)
	}
	c := &cobra.Command{Use: "simulate-routing", Args: flags.None, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error { return simulateRouting(c, &f) }}
	set := c.Flags()
	set.StringVar(&f.protocol, "protocol", "olsr", strings.Join(names, ", "))
	_ = c.RegisterFlagCompletionFunc("protocol", // the flag is there
		cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	set.IntSliceVar(&f.nodes, "nodes", []int{10, 25, 50, 100}, "numbers of nodes, one run each")
	set.Float64Var(&f.scale.Degree, "degree", 10, "other nodes within a node's range, on average")
	set.Float64Var(&f.scale.RangeM, "range", 250, "range of the radio in metres")
	set.Float64Var(&f.speedKmh, "speed-kmh", 0, "highest speed of nodes that roam, km/h")
	set.DurationVar(&f.scale.Duration, "duration", time.Minute, "virtual time of each run")
	set.IntVar(&f.scale.Flows, "flows", 5, "constant flows between random nodes")
	set.DurationVar(&f.scale.PacketPeriod, "packet-every", 250*time.Millisecond, "time between a flow's packets of "+
		"512 bytes")
	set.Float64Var(&f.scale.Radio.Loss, "loss", 0, "share of frames lost over any link, 0 to 1")
	set.Uint64Var(&f.scale.Seed, "seed", 1, "what all chance follows from")
	set.StringVar(&f.pcap, "pcap", "", "write the control packets of the last run to a file")
	set.BoolVar(&f.json, "json", false, "print one JSON object a run instead of a table")
	return c
}

func simulateRouting(c *cobra.Command, f *simulateFlags) error {
	protocols := simulatedProtocols()
	at := slices.IndexFunc(protocols, func(p simulated) bool { return p.name == f.protocol })
	if at < 0 {
		var names []string
		for _, p := range protocols {
			names = append(names, p.name)
		}
		if near := nearest.Word(f.protocol, names); near != "" {
			return fmt.Errorf("--protocol %q: it is not simulated; did you mean %q?", f.protocol, near)
		}
		return fmt.Errorf("--protocol %q: it is not simulated; expected one of %s", f.protocol,
			strings.Join(names, ", "))
	}
	if f.scale.Radio.Loss < 0 || f.scale.Radio.Loss >= 1 {
		return fmt.Errorf("--loss %g: expected a share from 0 to below 1; 20 %% are 0.2", f.scale.Radio.Loss)
	}
	f.scale.SpeedMps = f.speedKmh / 3.6
	f.scale.FlowStart = min(f.scale.FlowStart, f.scale.Duration/2)
	f.scale.Make, f.scale.PcapPort, f.scale.Carrier = protocols[at].make, protocols[at].port, protocols[at].carrier
	for _, n := range f.nodes {
		f.scale.Nodes = n
		if err := f.scale.Check(); err != nil {
			return fmt.Errorf("simulate routing: %w", err)
		}
	}
	var table screen.Table
	for i, n := range f.nodes {
		if err := c.Context().Err(); err != nil {
			return err
		}
		f.scale.Nodes = n
		began, err := processorTime()
		if err != nil {
			return err
		}
		result, err := f.run(protocols[at].proactive, i == len(f.nodes)-1)
		if err != nil {
			return fmt.Errorf("simulate routing: %w", err)
		}
		ended, err := processorTime()
		if err != nil {
			return err
		}
		if err := printScale(c.OutOrStdout(), &table, f.json, i == 0, &result, ended-began); err != nil {
			return fmt.Errorf("print result: %w", err)
		}
	}
	return table.Write(c.OutOrStdout(), screen.Columns(c.OutOrStdout()))
}

// processorTime is what this process has used, in all of its threads: how fast a
// simulation is by it does not depend on what else the machine does.
func processorTime() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

func (f *simulateFlags) run(proactive, last bool) (simulation.ScaleResult, error) {
	if f.pcap == "" || !last {
		return f.scale.Run(proactive)
	}
	file, err := os.Create(f.pcap)
	if err != nil {
		return simulation.ScaleResult{}, fmt.Errorf("write capture: %w", err)
	}
	f.scale.Pcap = file
	result, err := f.scale.Run(proactive)
	if closing := file.Close(); err == nil && closing != nil {
		err = fmt.Errorf("write capture: %w", closing)
	}
	return result, err
}

func printScale(w io.Writer, table *screen.Table, asJSON, first bool, r *simulation.ScaleResult,
	took time.Duration) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	if first {
		table.Row("nodes", "neighbours", "converged s", "discovery ms", "packets/s", "bytes/s", "messages/s a node",
			"delivered", "hops", "delay ms", "× real time")
	}
	table.Row(fmt.Sprint(r.Nodes), fmt.Sprintf("%.1f", r.NeighborsMean), known(r.ConvergedS, "%.1f", 1),
		known(r.DiscoveryMs, "%.1f", 1), fmt.Sprintf("%.2f", r.PacketsPerS), fmt.Sprintf("%.0f", r.BytesPerS),
		byKind(r.MessagesPerS), known(r.DeliveredShare, "%.1f %%", 100), known(r.HopsMean, "%.1f", 1),
		known(r.DelayMs, "%.1f", 1), fmt.Sprintf("%.1f", r.DurationS/took.Seconds()))
	return nil
}

func known(v *float64, format string, times float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v*times)
}

func byKind(rates map[string]float64) string {
	var kinds []string
	for kind := range rates {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %.2f", kind, rates[kind])
	}
	return strings.Join(kinds, ", ")
}
