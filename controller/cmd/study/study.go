// Package study is the command line's way to a campaign of one's own.
package study

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"fieldmesh.dev/fieldmesh/controller/plan"
	"fieldmesh.dev/fieldmesh/controller/plan/show"
	"fieldmesh.dev/fieldmesh/controller/plan/tree"
	"fieldmesh.dev/fieldmesh/controller/report/words"
	"fieldmesh.dev/fieldmesh/internal/flags"
)

// study is what Command asks for; the text is what somebody answers.
type study struct {
	Name     string
	Question string
	Speeds   string // m/s
	Repeat   string // repetitions
	Window   string // s
	Nodes    string // the one in the car, and the one at the roadside
}

// The parts of the answer about nodes, for the template.
func (s study) Car() string      { return strings.TrimSpace(s.node(0)) }
func (s study) Roadside() string { return strings.TrimSpace(s.node(1)) }

func (s study) node(i int) string {
	if names := strings.Split(s.Nodes, ","); i < len(names) {
		return names[i]
	}
	return ""
}

//go:embed study.yaml.tmpl
var studyTemplate string

var studyFile = template.Must(template.New("study").Funcs(template.FuncMap{"quote": yamlText}).Parse(studyTemplate))

// yamlText is a text in YAML's single quotes, in which only the quote itself is special.
func yamlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Command is `fieldmesh init STUDY`.
func Command() *cobra.Command {
	s := study{}
	c := &cobra.Command{Use: "init STUDY", Args: flags.Exactly(1)}
	asked := []question{
		{"question", "The question", "Does TCP throughput fall with the speed of the moving node?", &s.Question},
		{"speeds-mps", "Speeds in m/s (km/h divided by 3.6), with commas between them", "2.8, 5.6, 8.3, 11.1, 13.9",
			&s.Speeds},
		{"repetitions", "Repetitions of each combination (three give each an interval of its own)", "4", &s.Repeat},
		{"window-s", "Seconds that each trial measures", "10", &s.Window},
		{"nodes", "The nodes: in the car, at the roadside", "alpha, bravo", &s.Nodes},
	}
	for _, q := range asked {
		c.Flags().StringVar(q.answer, q.flag, q.standard, strings.ToLower(q.prompt[:1])+q.prompt[1:])
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		path := strings.TrimSuffix(args[0], ".yaml") + ".yaml"
		s.Name = strings.TrimSuffix(filepath.Base(path), ".yaml")
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s is there already; name another study, or move it away", path)
		}
		if term.IsTerminal(int(os.Stdin.Fd())) {
			open := slices.DeleteFunc(asked, func(q question) bool { return c.Flags().Changed(q.flag) })
			if err := ask(c.InOrStdin(), c.ErrOrStderr(), open); err != nil {
				return err
			}
		}
		return writeStudy(c.OutOrStdout(), path, s)
	}
	return c
}

// question is what somebody is asked, unless a flag has the answer.
type question struct {
	flag, prompt, standard string
	answer                 *string
}

// ask puts questions; an empty line leaves an answer as it is.
func ask(from io.Reader, to io.Writer, questions []question) error {
	in := bufio.NewScanner(from)
	for _, q := range questions {
		fmt.Fprintf(to, "%s [%s]: ", q.prompt, *q.answer)
		if !in.Scan() {
			return errors.Join(errors.New("the answers ended; nothing was written"), in.Err())
		}
		if answer := strings.TrimSpace(in.Text()); answer != "" {
			*q.answer = answer
		}
	}
	return nil
}

// writeStudy writes the campaign of a study, if it has no fault, and says what it takes.
func writeStudy(w io.Writer, path string, s study) error {
	var text strings.Builder
	if err := studyFile.Execute(&text, s); err != nil {
		return fmt.Errorf("make %s: %w", path, err)
	}
	campaign, err := plan.Parse(path, []byte(text.String()))
	if problems, faulty := errors.AsType[tree.Problems](err); faulty {
		return fmt.Errorf("%s was not written, for it would have %s:\n%s", path, words.Count(len(problems), "problem"),
			problems.Error())
	}
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("write the campaign: %w", err)
	}
	_, err = f.WriteString(text.String())
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the campaign: %w", err)
	}
	fmt.Fprintf(w, "%s is written\n", path)
	if err := show.Summary(w, campaign); err != nil {
		return err
	}
	for _, warning := range campaign.Warnings {
		fmt.Fprintln(w, "warning:", warning.Message)
	}
	_, err = fmt.Fprintf(w, "\nnext: `fieldmesh plan show %[1]s` lists the trials, `sudo fieldmesh rehearse %[1]s` "+
		"rehearses them on this machine; then pair the nodes, and `fieldmesh run %[1]s` drives them\n", path)
	return err
}
