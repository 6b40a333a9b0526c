package cmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/archive"
	"fieldmesh.dev/fieldmesh/controller/attached"
	"fieldmesh.dev/fieldmesh/controller/cmd/document"
	"fieldmesh.dev/fieldmesh/controller/cmd/output"
	"fieldmesh.dev/fieldmesh/controller/export"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/protocols/wire"
)

// ReportCommand is `fieldmesh report RUN`.
func ReportCommand() *cobra.Command {
	var asJSON, asPDF bool
	c := ofRun(&cobra.Command{Use: "report RUN"}, func(c *cobra.Command, a *archive.Archive) error {
		path, of, err := output.Report(a)
		if err != nil {
			return err
		}
		pdf := ""
		if asPDF {
			if pdf, err = output.PDF(c.Context(), path); err != nil {
				return err
			}
		}
		if n := len(of.Altered); n > 0 {
			c.PrintErrf("warning: %s changed or missing since the run; `fieldmesh verify %s` names them\n",
				words.Count(n, "file"), a.Dir())
		}
		if asJSON {
			return document.Write(c.OutOrStdout(), document.Report{Report: path, PDF: pdf,
				Metrics: filepath.Join(a.Dir(), "metrics.csv"),
				Altered: document.Findings(of.Altered)})
		}
		if pdf != "" {
			path += ", " + pdf
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "report: %s\n", path)
		return err
	})
	addJSON(c, &asJSON)
	c.Flags().BoolVar(&asPDF, "pdf", false, "print it to report.pdf too, with Chromium or Chrome")
	return c
}

// ExportCommand is `fieldmesh export RUN`.
func ExportCommand() *cobra.Command {
	var to string
	var o export.Options
	c := ofRun(&cobra.Command{Use: "export RUN"}, func(c *cobra.Command, a *archive.Archive) error {
		if to == "" {
			to = filepath.Join(a.Dir(), "export")
		}
		return exportRun(a, to, o, c.OutOrStdout())
	})
	c.Flags().StringVar(&to, "to", "", "folder to write into (default: export in the run's folder)")
	c.Flags().BoolVar(&o.Captures, "captures", false, "add the packet captures, pcapng, as they were taken")
	c.Flags().StringVar(&o.License, "license", "", "address of the licence under which the data may be used, for "+
		"ro-crate-metadata.json (default: it says that none was given)")
	c.Flags().BoolVar(&o.MCAP, "mcap", false, "add run.mcap, every attempt for Foxglove and Lichtblick")
	c.Flags().BoolVar(&o.Perfetto, "perfetto", false, "add perfetto/, a trace of each attempt for ui.perfetto.dev")
	c.Flags().BoolVar(&o.Redact, "redact", false, "give other people's radios and networks made-up names, and "+
		"leave out texts, and places and movement outside the measuring windows")
	return c
}

func exportRun(a *archive.Archive, to string, o export.Options, out io.Writer) error {
	paths, err := export.Run(a, to, o)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if _, err := fmt.Fprintln(out, path); err != nil {
			return err
		}
	}
	return nil
}

// VerifyCommand is `fieldmesh verify RUN`.
func VerifyCommand() *cobra.Command {
	var runs string
	var fleets []string
	var asJSON bool
	c := &cobra.Command{Use: "verify RUN", Args: flags.Exactly(1), RunE: func(c *cobra.Command, args []string) error {
		dir := runFolder(runs, args[0])
		if _, err := os.Stat(dir); err != nil {
			return explainRun(runs, args[0], fmt.Errorf("verify %q: %w", dir, archive.ErrNoRun))
		}
		findings, err := attached.Verify(dir)
		if err != nil {
			return err
		}
		var signed []string
		if len(archive.Altered(attached.Wrong(findings))) == 0 {
			var more []archive.Finding
			if signed, more, err = signers(dir, fleets); err != nil {
				return err
			}
			findings = append(findings, more...)
		}
		if asJSON {
			err = document.Write(c.OutOrStdout(), document.Verify{Run: dir, OK: len(attached.Wrong(findings)) == 0,
				Findings: document.Findings(findings), Signed: signed})
		} else {
			err = writeFindings(c.OutOrStdout(), signed, findings)
		}
		if err != nil {
			return err
		}
		if n := len(attached.Wrong(findings)); n > 0 {
			return unmet{fmt.Errorf("verify %q: %s", dir, words.Count(n, "finding"))}
		}
		if asJSON {
			return nil
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: OK: all files match the manifest\n", dir)
		return err
	}}
	addRuns(c, &runs)
	addJSON(c, &asJSON)
	c.Flags().StringArrayVar(&fleets, "fleet", nil, "fail unless the run is signed by this fleet's keys; may be given "+
		"again")
	c.ValidArgsFunction = completeRuns
	return c
}

// writeFindings prints who signed, and what was found.
func writeFindings(out io.Writer, signed []string, findings []archive.Finding) error {
	for _, line := range signed {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	for _, f := range findings {
		if _, err := fmt.Fprintln(out, f); err != nil {
			return err
		}
	}
	return nil
}

// signers returns who signed a run, and what is wrong with its signatures.
func signers(dir string, fleets []string) (said []string, findings []archive.Finding, err error) {
	a, err := archive.Read(dir)
	if err != nil {
		return nil, nil, err
	}
	nodes, findings, err := archive.VerifyRecords(dir)
	if err != nil {
		return nil, nil, err
	}
	// The controller's own words, and a field's, are the run's, and signed with it.
	nodes = slices.DeleteFunc(nodes, func(n archive.NodeSigned) bool {
		return !slices.ContainsFunc(a.Info().Plan.Nodes, func(p wire.PlanNode) bool { return p.Name == n.Node })
	})
	wholes, err := signedWholes(a)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range wholes {
		said = append(said, w.String())
	}
	for _, n := range nodes {
		said = append(said, n.String())
	}
	if len(fleets) == 0 {
		return said, findings, nil
	}
	strange, err := strangers(wholes, nodes, fleets)
	return said, append(findings, strange...), err
}

// signedWhole is a manifest or a plan, and by whom it is signed.
type signedWhole struct {
	what   string
	sealed bool // it is a plan, which is sealed before the first trial
	signed archive.Signature
}

func (w signedWhole) String() string {
	switch {
	case w.sealed && w.signed.Pin == "":
		return w.what + " was not sealed before the first trial"
	case w.sealed:
		return w.what + ", SHA-256 " + w.signed.SHA256 + ", was sealed before the first trial by key " + w.signed.Pin
	case w.signed.Pin == "":
		return w.what + " is not signed"
	}
	return w.what + " is signed by key " + w.signed.Pin + "; its manifest has SHA-256 " + w.signed.SHA256
}

// signedWholes are those of a run, or of the shards that it was merged of, whose
// plans were sealed where they were driven.
func signedWholes(a *archive.Archive) ([]signedWhole, error) {
	run, err := a.Signed()
	if err != nil {
		return nil, err
	}
	plan, err := a.PlanSealed()
	if err != nil {
		return nil, err
	}
	shards, err := a.Shards()
	if err != nil {
		return nil, err
	}
	if len(shards) == 0 {
		return []signedWhole{{"the run", false, run}, {"its plan", true, plan}}, nil
	}
	out := []signedWhole{{"the merge of " + words.Count(len(shards), "shard"), false, run}}
	for _, s := range shards {
		name := "shard " + s.Shard.String()
		out = append(out, signedWhole{name, false, s.Run}, signedWhole{"the plan of " + name, true, s.Plan})
	}
	return out, nil
}

// strangers finds signatures that are of none of the fleets, and those that are missing.
func strangers(wholes []signedWhole, nodes []archive.NodeSigned, fleets []string) (out []archive.Finding, err error) {
	controllers, pins := map[string]bool{}, map[string]map[string]bool{} // of nodes, by name
	for _, path := range fleets {
		fl, identity, err := loadFleet(path)
		if err != nil {
			return nil, err
		}
		controllers[identity.Pin] = true
		for name, n := range fl.Nodes {
			if pins[name] == nil {
				pins[name] = map[string]bool{}
			}
			pins[name][n.Pin] = true
		}
	}
	check := func(what, pin string, known map[string]bool) {
		switch {
		case pin == "": // also of a node that the fleet does not have
			out = append(out, archive.Finding{Path: what, Problem: archive.Missing, Detail: "it is not signed"})
		case !known[pin]:
			out = append(out, archive.Finding{Path: what, Problem: archive.Changed,
				Detail: "it is signed by key " + pin + ", which is not of the fleet"})
		}
	}
	for _, w := range wholes {
		if w.sealed || w.signed.SHA256 != "" { // an unfinished run has no manifest
			check(w.what, w.signed.Pin, controllers)
		}
	}
	for _, n := range nodes {
		if len(n.Pins) == 0 {
			check("records of "+n.Node, "", nil)
		}
		for _, pin := range n.Pins {
			check("records of "+n.Node, pin, pins[n.Node])
		}
	}
	return out, nil
}
