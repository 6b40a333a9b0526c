package cmd

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	joins "fieldmesh.dev/fieldmesh/node-agent/pairing"
	"fieldmesh.dev/fieldmesh/protocols/pairing"
)

// PairCommand is `fieldmesh-agent pair`: make this node part of a fleet.
func PairCommand() *cobra.Command {
	var path, bundle string
	c := &cobra.Command{Use: "pair", Args: func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return errors.New("the code does not belong on the command line, where other users of this machine " +
				"could read it; run `fieldmesh-agent pair` alone, and type the code when it asks")
		}
		return nil
	}, RunE: func(c *cobra.Command, _ []string) error {
		cfg, face, err := asOwner(c, path)
		if err != nil {
			return err
		}
		node := joins.Node{Name: cfg.Node, Listen: cfg.Listen, KeysDir: cfg.KeysDir, UID: face.uid, GID: face.gid}
		if cfg.AppKey != "" {
			node.Interface = cfg.Interface
		}
		controller, err := pair(c, bundle, node)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s is paired: it obeys the controller with key %.12s…\n", cfg.Node,
			controller)
		return err
	}}
	addConfig(c, &path)
	c.Flags().StringVar(&bundle, "bundle", "", "take the keys in this `folder`, a copy of what fieldmesh keys issue "+
		"made, and no code")
	return c
}

func pair(c *cobra.Command, bundle string, node joins.Node) (controller string, err error) {
	if bundle != "" {
		return joins.Adopt(bundle, node)
	}
	code, err := readCode(c)
	if err != nil {
		return "", err
	}
	return joins.Join(c.Context(), code, node)
}

// codeBytesMost is far more than a code has.
const codeBytesMost = 1024

// readCode reads the first line of standard input, and asks a person for it.
func readCode(c *cobra.Command) (pairing.Code, error) {
	in := c.InOrStdin()
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if _, err := fmt.Fprint(c.ErrOrStderr(), "code: "); err != nil {
			return pairing.Code{}, fmt.Errorf("ask for the code: %w", err)
		}
	}
	line, err := bufio.NewReader(io.LimitReader(in, codeBytesMost)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return pairing.Code{}, fmt.Errorf("read the code: %w", err)
	}
	if line = strings.TrimSpace(line); line == "" {
		return pairing.Code{}, errors.New("no code was given: type the one that `fieldmesh keys pair` shows")
	}
	return pairing.Parse(line)
}
