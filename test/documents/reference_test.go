package documents

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	controller "fieldmesh.dev/fieldmesh/controller/cmd"
	"fieldmesh.dev/fieldmesh/controller/reference"
	agent "fieldmesh.dev/fieldmesh/node-agent/cmd"
)

var update = flag.Bool("update", false, "write the pages that are made of the programs again")

// The pages of the reference are those that the programs' declarations make.
func TestTheReferenceIsCurrent(t *testing.T) {
	for name, text := range map[string]string{"reference.md": formats(t), "commands.md": commands(t)} {
		path := filepath.Join("..", "..", "field-guides", name)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if is, err := os.ReadFile(path); err != nil || !bytes.Equal(is, []byte(text)) {
			t.Errorf("field-guides/%s is not current (%v): go generate ./test/documents", name, err)
		}
	}
}

// formats is the page of all keys.
func formats(t *testing.T) string {
	t.Helper()
	all, err := reference.All()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Reference\n\nMade of the programs' own declarations. `fieldmesh explain KEY` says the same in a " +
		"terminal. `NAME` stands for a name\nthat is free, `[]` for the elements of a list. What is absent has no " +
		"default where none is given. Editors that know\nJSON Schema complete the keys of all three files.\n")
	plain := strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ")
	for _, f := range reference.Formats() {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| key | what it may be | meaning |\n|---|---|---|\n", f[0],
			strings.ToUpper(f[1][:1])+f[1][1:])
		for _, e := range all {
			if e.Format == f[0] {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.Key, plain.Replace(e.Traits()), plain.Replace(e.Meaning))
			}
		}
	}
	return b.String()
}

// commands is the page of all commands, with their flags.
func commands(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Commands\n\nWhat `--help` says, of both programs. [Reference](reference.md) has the files' keys " +
		"and the exit statuses.\n")
	for _, root := range []*cobra.Command{controller.Root(), agent.Root()} {
		root.InitDefaultCompletionCmd()
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", root.Name(), text(root.Long))
		each(t, &b, root)
	}
	return b.String()
}

func each(t *testing.T, b *strings.Builder, of *cobra.Command) {
	t.Helper()
	for _, c := range of.Commands() {
		if c.Hidden || c.Name() == "help" || of.Name() == "completion" {
			continue
		}
		if c.Short == "" {
			t.Errorf("%s does not say what it does", c.CommandPath())
		}
		fmt.Fprintf(b, "\n### %s\n\n%s.\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
		if c.Long != "" && c.Name() != "completion" {
			fmt.Fprintf(b, "\n%s\n", text(c.Long))
		}
		if c.Runnable() && !c.HasAvailableSubCommands() {
			fmt.Fprintf(b, "\n```text\n%s\n```\n", c.UseLine())
		}
		if c.Example != "" {
			fmt.Fprintf(b, "\nFor example:\n\n```text\n%s\n```\n", strings.TrimRight(c.Example, "\n"))
		}
		flagsOf(t, b, c)
		each(t, b, c)
	}
}

// text is a help's text as Markdown: what is indented is taken as it is.
func text(long string) string {
	paragraphs := strings.Split(strings.TrimSpace(long), "\n\n")
	for i, p := range paragraphs {
		if strings.Contains("\n"+p, "\n ") {
			paragraphs[i] = "```text\n" + p + "\n```"
		} else {
			paragraphs[i] = strings.ReplaceAll(p, "<", "&lt;")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

func flagsOf(t *testing.T, b *strings.Builder, c *cobra.Command) {
	t.Helper()
	var rows []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if f.Usage == "" {
			t.Errorf("%s --%s does not say what it does", c.CommandPath(), f.Name)
		}
		name, usage := pflag.UnquoteUsage(f)
		form := "--" + f.Name
		if f.Shorthand != "" {
			form = "-" + f.Shorthand + ", " + form
		}
		if name != "" {
			form += " " + name
		}
		if d := f.DefValue; !slices.Contains([]string{"", "0", "false", "[]", "0s"}, d) {
			usage += fmt.Sprintf(" (default `%s`)", d)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", form,
			strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(usage)))
	})
	if len(rows) > 0 {
		b.WriteString("\n| flag | |\n|---|---|\n" + strings.Join(rows, ""))
	}
}
