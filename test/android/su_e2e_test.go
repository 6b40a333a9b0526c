//go:build e2e

package android

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// suSocket is where Magisk's daemon is asked.
const suSocket = "/debug_ramdisk/magiskd.sock"

// manner is how a su gives a command root's rights.
type manner string

const (
	magisk   manner = "Magisk"
	kernelSU manner = "KernelSU" // and APatch
)

// modules is where the managers keep their modules.
const modules = "/data/adb/modules"

// lateStart starts the service of the module, as the managers do at boot: KernelSU's
// program has ended then, and Magisk's daemon has a child more.
func lateStart() (*exec.Cmd, error) {
	if _, err := os.Stat(modules + "/fieldmesh/disable"); err == nil {
		return nil, nil
	}
	cmd := exec.Command("/system/bin/sh", modules+"/fieldmesh/service.sh")
	cmd.Env, cmd.Dir = []string{"PATH=/system/bin"}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, cmd.Start()
}

// su is KernelSU's where it is root itself, as the kernel makes it there: the
// caller goes on as root. Elsewhere it is Magisk's client: it hands its words and its
// standard files to the daemon, waits, and ends as the command did. Whoever kills
// it kills nothing else (native/src/core/su/su.cpp).
func su(args []string) error {
	if len(args) != 2 || args[0] != "-c" {
		return fmt.Errorf("su -c COMMAND, not %q", args)
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(0), syscall.Setuid(0)); err != nil {
			return err
		}
		return syscall.Exec("/system/bin/sh", []string{"sh", "-c", args[1]}, []string{"PATH=/system/bin"})
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: suSocket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("ask Magisk's daemon: %w", err)
	}
	if _, _, err := conn.WriteMsgUnix([]byte(args[1]), unix.UnixRights(0, 1, 2), nil); err != nil {
		return fmt.Errorf("ask Magisk's daemon: %w", err)
	}
	status := make([]byte, 1)
	if _, err := conn.Read(status); err != nil {
		return fmt.Errorf("wait for Magisk's daemon: %w", err)
	}
	os.Exit(int(status[0]))
	return nil
}

// magiskd is Magisk's daemon: it starts each command as root's, a child of its
// own, and waits for it; that the client has gone it does not notice
// (native/src/core/daemon.rs).
func magiskd() error {
	if _, err := os.Stat(modules + "/fieldmesh/module.prop"); err == nil {
		cmd, err := lateStart()
		if err != nil {
			return err
		}
		if cmd != nil {
			go func() { _ = cmd.Wait() }()
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: suSocket, Net: "unix"})
	if err == nil {
		err = os.Chmod(suSocket, 0o666)
	}
	for err == nil {
		var conn *net.UnixConn
		if conn, err = l.AcceptUnix(); err == nil {
			go func() { _ = serveSu(conn) }() // a client may go before it hears the end
		}
	}
	return err
}

func serveSu(conn *net.UnixConn) error {
	command, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(3*4))
	n, have, _, _, err := conn.ReadMsgUnix(command, rights)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:have])
	if err != nil || len(messages) != 1 {
		return fmt.Errorf("read standard files: %d messages, %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	var std [3]*os.File
	for i, fd := range fds {
		unix.CloseOnExec(fd)
		std[i] = os.NewFile(uintptr(fd), "standard file of su's caller")
	}
	cmd := exec.Command("/system/bin/sh", "-c", string(command[:n]))
	cmd.Env, cmd.Dir = []string{"PATH=/system/bin"}, "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = std[0], std[1], std[2]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	for _, f := range std {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return err
	}
	_ = cmd.Wait() // how it ended is told by its status
	_, err = conn.Write([]byte{byte(cmd.ProcessState.ExitCode())})
	return err
}
