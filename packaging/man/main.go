// Command man writes the manual pages of both programs, and what shells complete,
// into a folder, for packaging/build.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	controller "fieldmesh.dev/fieldmesh/controller/cmd"
	agent "fieldmesh.dev/fieldmesh/node-agent/cmd"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: man FOLDER VERSION DATE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

// write puts man1 and the completions of each program into FOLDER/PROGRAM.
func write(folder, version, rfc3339 string) error {
	date, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		return fmt.Errorf("the date of the pages: %w", err)
	}
	for _, root := range []*cobra.Command{controller.Root(), agent.Root()} {
		root.DisableAutoGenTag = true
		root.InitDefaultCompletionCmd()
		to := filepath.Join(folder, root.Name())
		pages := filepath.Join(to, "man1")
		if err := os.MkdirAll(pages, 0o755); err != nil {
			return err
		}
		header := doc.GenManHeader{Section: "1", Date: &date, Source: "Fieldmesh " + version, Manual: "Fieldmesh"}
		if err := doc.GenManTree(root, &header, pages); err != nil {
			return err
		}
		if err := cmp.Or(root.GenBashCompletionFileV2(filepath.Join(to, "bash"), true),
			root.GenZshCompletionFile(filepath.Join(to, "zsh")),
			root.GenFishCompletionFile(filepath.Join(to, "fish"), true)); err != nil {
			return errors.Join(errors.New("write the completions"), err)
		}
	}
	return nil
}
