package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// request is what the host tells the guest's init.
type request struct {
	Token      string   `json:"token"`       // random; marks what init itself says
	Args       []string `json:"args"`        // the test and its arguments
	Env        []string `json:"env"`         // of the test
	Dir        string   `json:"dir"`         // where the test starts
	Modules    []string `json:"modules"`     // files below /modules in the order of loading
	ModulesDir string   `json:"modules_dir"` // on the host; becomes /lib/modules
}

// early are the modules without which the guest cannot reach its root and
// its way out. Those that a kernel has built in have no file.
var early = []string{"virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay"}

// moduleFiles lists the files to load for names, each after what it depends
// on, relative to dir (a /lib/modules/RELEASE).
func moduleFiles(dir string, names []string) ([]string, error) {
	f, err := os.Open(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	depends, file := map[string][]string{}, map[string]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		path, rest, _ := strings.Cut(lines.Text(), ":")
		depends[path] = strings.Fields(rest)
		name, _, _ := strings.Cut(filepath.Base(path), ".ko")
		file[strings.ReplaceAll(name, "-", "_")] = path
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	var out []string
	seen := map[string]bool{}
	var add func(path string)
	add = func(path string) {
		if path == "" || seen[path] {
			return
		}
		seen[path] = true
		for _, d := range depends[path] {
			add(d)
		}
		out = append(out, path)
	}
	for _, name := range names {
		add(file[name])
	}
	if len(out) == 0 {
		return nil, errors.New("modules.dep names none of the modules that a guest boots with")
	}
	return out, nil
}

// archive is a cpio archive in the format "newc", as the kernel reads it
// (Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	b     bytes.Buffer
	inode int
}

const (
	modeDir  = 0o040755
	modeFile = 0o100755
)

func (a *archive) add(name string, mode int, data []byte) {
	a.inode++
	fmt.Fprintf(&a.b, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		a.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0)
	a.b.WriteString(name + "\x00")
	a.pad()
	a.b.Write(data)
	a.pad()
}

func (a *archive) pad() {
	for a.b.Len()%4 != 0 {
		a.b.WriteByte(0)
	}
}

// writeInitramfs puts this program, the early modules and the request together.
func writeInitramfs(w io.Writer, modulesDir string, req []byte, files []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	var a archive
	for _, dir := range []string{"dev", "modules", "proc"} {
		a.add(dir, modeDir, nil)
	}
	a.add("init", modeFile, program)
	a.add("request.json", modeFile, req)
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(modulesDir, file))
		if err != nil {
			return err
		}
		a.add("modules/"+filepath.Base(file), modeFile, data)
	}
	a.add("TRAILER!!!", 0, nil)
	_, err = w.Write(a.b.Bytes())
	return err
}
