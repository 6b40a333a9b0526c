package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/controller/reference"
	"fieldmesh.dev/fieldmesh/internal/nearest"
	"fieldmesh.dev/fieldmesh/internal/screen"
)

// ExplainCommand is `fieldmesh explain KEY`.
func ExplainCommand() *cobra.Command {
	c := printing(&cobra.Command{Use: "explain [KEY]"},
		func(_ *cobra.Command, args []string) (any, func(io.Writer) error, error) {
			all, err := reference.All()
			word := strings.Join(args, " ")
			if word == "" || err != nil {
				return all, listFormats, err
			}
			found := reference.Find(all, word)
			if found == nil {
				if near := reference.Near(all, word, nearest.Word); near != "" {
					return nil, nil, fmt.Errorf("no key is called %q; did you mean %q?", word, near)
				}
				return nil, nil, fmt.Errorf("no key is called %q; `fieldmesh explain` lists the formats", word)
			}
			return found, func(out io.Writer) error { return explain(out, all, found) }, nil
		})
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		all, err := reference.All()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, e := range all {
			if e.Format != reference.Status {
				out = append(out, e.Key)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

func listFormats(w io.Writer) error {
	var t screen.Table
	t.Row("format", "what it is")
	for _, f := range reference.Formats() {
		t.Row(f[0], f[1])
	}
	columns := screen.Columns(w)
	if err := t.Write(w, columns); err != nil {
		return err
	}
	_, err := io.WriteString(w, screen.Fold("\n`fieldmesh explain FORMAT` lists what is in one, `fieldmesh explain "+
		"KEY` explains a key.\n", columns))
	return err
}

// explain prints a key with what lies below it, or a list of several.
func explain(w io.Writer, all, found []reference.Entry) error {
	var b strings.Builder
	for i, e := range found {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s %s\n", e.Format, e.Key)
		if t := e.Traits(); t != "" {
			fmt.Fprintf(&b, "  %s\n", t)
		}
		fmt.Fprintf(&b, "  %s.\n", strings.TrimSuffix(e.Meaning, "."))
		if below := reference.Below(all, e); len(below) > 0 && len(found) == 1 {
			b.WriteString("\nIn it:\n")
			longest := 0
			for _, one := range below {
				longest = max(longest, len(one.Key))
			}
			for _, one := range below {
				fmt.Fprintf(&b, "  %-*s  %s\n", longest, one.Key, one.Meaning)
			}
		}
	}
	_, err := io.WriteString(w, screen.Fold(b.String(), screen.Columns(w)))
	return err
}
