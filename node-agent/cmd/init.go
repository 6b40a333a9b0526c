package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fieldmesh.dev/fieldmesh/internal/flags"
	"fieldmesh.dev/fieldmesh/node-agent/config"
)

// InitCommand is `fieldmesh-agent init`: the configuration that a node begins with.
func InitCommand() *cobra.Command {
	var path, node, iface, privileges string
	c := &cobra.Command{Use: "init", Args: flags.None, RunE: func(c *cobra.Command, _ []string) error {
		all, err := radios()
		if err != nil {
			c.PrintErrf("the radios are unknown: %v\n", err)
		}
		text := config.First(cmp.Or(node, ownName()), cmp.Or(iface, bestInterface(all)))
		if privileges == config.NoPrivileges {
			if path, err = filepath.Abs(path); err != nil {
				return fmt.Errorf("find configuration: %w", err)
			}
			text += config.WithoutRoot(filepath.Dir(path))
		} else if privileges != "root" {
			return fmt.Errorf("--privileges %q is neither root nor none", privileges)
		}
		cfg, err := writeFirst(path, text)
		if err != nil {
			return err
		}
		next := "pair this node: `fieldmesh keys pair " + cfg.Node + "` at the controller shows the code for " +
			"`sudo fieldmesh-agent pair`"
		if cfg.Unprivileged() {
			next = strings.Replace(next, "sudo fieldmesh-agent pair", "fieldmesh-agent pair --config "+path, 1)
		}
		if _, err := faceUser(cfg); err != nil {
			next = err.Error() + "\nthen: " + next
		}
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: node %s, interface %s; correct them there\nnext: %s\n", path,
			cfg.Node, cfg.Interface, next)
		return err
	}}
	addConfig(c, &path)
	c.Flags().StringVar(&node, "node", "", "this node's name (default: the machine's)")
	c.Flags().StringVar(&iface, "interface", "", "interface under test (default: the first radio that can be a node, "+
		"or wlan0)")
	c.Flags().StringVar(&privileges, "privileges", "root", "root, or none: it runs as you, changes nothing, and "+
		"keeps its folders beside the configuration")
	return c
}

// writeFirst writes a new node's configuration where there is none.
func writeFirst(path, text string) (config.Config, error) {
	cfg, err := config.Parse(path, []byte(text))
	if err != nil {
		return config.Config{}, err
	}
	err = os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = writeNew(path, text)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		err = fmt.Errorf("%s exists and is left as it is: edit it, or name another file by --config", path)
	case errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("write configuration: %w; run sudo fieldmesh-agent init; without root, name a file of your "+
			"own by --config, and say --privileges none", err)
	case err != nil:
		err = fmt.Errorf("write configuration: %w", err)
	}
	return cfg, err
}

// writeNew writes a file that is not there yet.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// notOfNames are the characters that no node's name has.
var notOfNames = regexp.MustCompile(`[^a-z0-9]+`)

// ownName makes a node's name of the machine's, no longer than a key's may be (internal/keys).
func ownName() string {
	host, _ := os.Hostname() // without one the node has the default's name
	return nameOf(host)
}

func nameOf(host string) string {
	name := notOfNames.ReplaceAllString(strings.ToLower(host), "-")
	return cmp.Or(strings.Trim(name[:min(len(name), 32)], "-"), "node-1")
}

func bestInterface(all []radioOf) string {
	at := slices.IndexFunc(all, func(r radioOf) bool { return r.Interface != "" && r.canBeNode() })
	if at < 0 {
		return "wlan0"
	}
	return all[at].Interface
}
